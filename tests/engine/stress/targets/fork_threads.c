// fork while other threads compute, allocate and hold locks; the children check themselves.
#include "stress.h"

static volatile int stop;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int prepared, in_parent, in_child;

static void prepare(void) {
    pthread_mutex_lock(&mutex);
    prepared++;
}
static void parent(void) {
    in_parent++;
    pthread_mutex_unlock(&mutex);
}
static void child(void) {
    in_child++;
    pthread_mutex_unlock(&mutex);
}

static void *churn(void *arg) {
    uint64_t h = (uint64_t)arg;
    while (!stop) {
        char *p = malloc(1 + h % 5000);
        *p = (char)h;
        h = stress_mix(h, 1);
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
        free(p);
    }
    return NULL;
}

static void *small(void *arg) {
    return (void *)((long)arg * 2);
}

static int check_child(int i, pid_t parent_pid) {
    CHECK(getppid() == parent_pid && getpid() != parent_pid);
    CHECK(stress_tid() == getpid());
    char *p = malloc(100000);
    memset(p, i, 100000);
    free(p);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    SAME(in_child, 1);
    // Only this thread is left, and new ones can be made.
    SAME(stress_join(stress_thread(small, (void *)(long)i)), i * 2);
    return i & 127;
}

int main(void) {
    pthread_t threads[4];
    pthread_atfork(prepare, parent, child);
    for (long i = 0; i < 4; i++)
        threads[i] = stress_thread(churn, (void *)(i + 1));
    pid_t self = getpid();
    for (int i = 0; i < 60; i++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0)
            _exit(check_child(i, self));
        SAME(stress_wait(pid), (i & 127) << 8);
    }
    stop = 1;
    for (int i = 0; i < 4; i++)
        stress_join(threads[i]);
    printf("prepared %d parent %d child %d\n", prepared, in_parent, in_child);
    return 0;
}
