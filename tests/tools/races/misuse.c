// Misuse of locks, and orders in which they are taken. The argument says which.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER,
                       c = PTHREAD_MUTEX_INITIALIZER;

static void *lock_and_end(void *unused) {
    pthread_mutex_lock(&a);
    return NULL;
}

static void run(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, lock_and_end, NULL);
    pthread_join(thread, NULL);
}

// One within the other.
static void nest(pthread_mutex_t *outer, pthread_mutex_t *inner) {
    pthread_mutex_lock(outer);
    pthread_mutex_lock(inner);
    pthread_mutex_unlock(inner);
    pthread_mutex_unlock(outer);
}

static pthread_mutex_t *make(void) {
    static const pthread_mutex_t start = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_t *made = malloc(sizeof *made);
    *made = start;
    return made;
}

// Mutexes that nobody makes or destroys by a function, as std::mutex: the block is all there is.
static void nest_in_blocks(void) {
    pthread_mutex_t *outer = make(), *inner = make();
    nest(outer, inner);
    free(outer);
    free(inner);
    pthread_mutex_t *one = make(), *other = make();
    if ((one == inner && other == outer) || (one == outer && other == inner))
        puts("the same memory");
    nest(one == inner ? one : other, one == inner ? other : one);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "order") == 0) {
        nest(&a, &b);
        nest(&b, &a);
    } else if (strcmp(what, "circle") == 0) {
        nest(&a, &b);
        nest(&b, &c);
        nest(&c, &a);
    } else if (strcmp(what, "same_order") == 0) {
        nest(&a, &b);
        nest(&a, &c);
        nest(&b, &c);
        nest(&a, &b);
    } else if (strcmp(what, "gate") == 0) {
        pthread_mutex_lock(&c);
        nest(&a, &b);
        pthread_mutex_unlock(&c);
        pthread_mutex_lock(&c);
        nest(&b, &a);
        pthread_mutex_unlock(&c);
    } else if (strcmp(what, "made_anew") == 0) {
        nest(&a, &b);
        pthread_mutex_destroy(&b);
        pthread_mutex_init(&b, NULL);
        nest(&b, &a);
    } else if (strcmp(what, "freed") == 0) {
        nest_in_blocks();
    } else if (strcmp(what, "unlocked") == 0) {
        pthread_mutex_lock(&a);
        pthread_mutex_unlock(&a);
        pthread_mutex_unlock(&a);
    } else if (strcmp(what, "foreign") == 0) {
        run();
        pthread_mutex_unlock(&a);
    } else if (strcmp(what, "destroyed") == 0) {
        pthread_mutex_lock(&a);
        pthread_mutex_destroy(&a);
    } else if (strcmp(what, "still_held") == 0) {
        run();
    }
    return 0;
}
