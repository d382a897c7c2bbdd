// Thread-local storage: many variables with initial values, alignment, storage of libraries that
// are opened while threads run, pthread keys with destructors.
#include "stress.h"
#include <dlfcn.h>
#include <libgen.h>

static __thread int a = 1, b = 2, c = 3;
static __thread long table[1000];
static __thread char text[] = "initial text";
static __thread _Alignas(64) char aligned[64];
static _Atomic int keyed;
static pthread_key_t keys[50];
static long (*next)(int);
static pthread_barrier_t barrier;

static void forget(void *value) {
    keyed += (int)(long)value;
}

static void *work(void *arg) {
    long id = (long)arg;
    SAME(a + b + c, 6);
    CHECK(strcmp(text, "initial text") == 0);
    SAME((uintptr_t)aligned % 64, 0);
    for (int i = 0; i < 1000; i++) {
        SAME(table[i], 0);
        table[i] = id * i;
    }
    for (int i = 0; i < 50; i++)
        pthread_setspecific(keys[i], (void *)(id + 1));
    a = (int)id;
    pthread_barrier_wait(&barrier); // the library is opened between
    pthread_barrier_wait(&barrier);
    SAME(next(1), 101);
    SAME(next((int)id), 101 + id);
    SAME(a, id);
    return NULL;
}

int main(int argc, char **argv) {
    char path[4096];
    snprintf(path, sizeof(path), "%s/libstress_tls.so", dirname(strdup(argv[0])));
    pthread_barrier_init(&barrier, NULL, 9);
    for (int i = 0; i < 50; i++)
        CHECK(pthread_key_create(&keys[i], forget) == 0);
    for (int round = 0; round < 10; round++) {
        pthread_t threads[8];
        for (long i = 0; i < 8; i++)
            threads[i] = stress_thread(work, (void *)i);
        pthread_barrier_wait(&barrier);
        void *library = dlopen(path, RTLD_NOW);
        CHECK(library != NULL);
        next = (long (*)(int))dlsym(library, "library_next");
        CHECK(next != NULL);
        SAME(next(0), 100);
        pthread_barrier_wait(&barrier);
        for (int i = 0; i < 8; i++)
            stress_join(threads[i]);
        CHECK(dlclose(library) == 0);
    }
    printf("keyed %d\n", keyed);
    return 0;
}
