// Robust mutexes whose owners die, as threads and as processes; process-shared mutexes, conditions
// and barriers across fork; priority inheritance.
#include "stress.h"

struct shared {
    pthread_mutex_t robust, plain, inherit;
    pthread_cond_t condition;
    pthread_barrier_t barrier;
    long count, inherited, turn;
};

static struct shared *shared;

static void *die_holding(void *arg) {
    CHECK(pthread_mutex_lock(&shared->robust) == 0);
    return NULL;
}

static void recover(int expected) {
    SAME(pthread_mutex_lock(&shared->robust), expected);
    if (expected == EOWNERDEAD)
        CHECK(pthread_mutex_consistent(&shared->robust) == 0);
    CHECK(pthread_mutex_unlock(&shared->robust) == 0);
}

static void robustness(void) {
    for (int i = 0; i < 50; i++) {
        stress_join(stress_thread(die_holding, NULL));
        recover(EOWNERDEAD);
        recover(0);
        pid_t pid = fork();
        if (pid == 0) {
            die_holding(NULL);
            if (i % 2)
                kill(getpid(), SIGKILL);
            _exit(0);
        }
        stress_wait(pid);
        recover(EOWNERDEAD);
        recover(0);
    }
    puts("recovered");
}

static void count(int id) {
    pthread_barrier_wait(&shared->barrier);
    for (int i = 0; i < 1000; i++) {
        pthread_mutex_lock(&shared->plain);
        shared->count++;
        pthread_mutex_unlock(&shared->plain);
        pthread_mutex_lock(&shared->inherit);
        shared->inherited++;
        pthread_mutex_unlock(&shared->inherit);
    }
    for (int i = 0; i < 50; i++) {
        pthread_mutex_lock(&shared->plain);
        while (shared->turn % 4 != id)
            pthread_cond_wait(&shared->condition, &shared->plain);
        shared->turn++;
        pthread_cond_broadcast(&shared->condition);
        pthread_mutex_unlock(&shared->plain);
    }
}

int main(void) {
    shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&shared->plain, &attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&shared->inherit, &attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_NONE);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&shared->robust, &attributes);
    pthread_condattr_t condition;
    pthread_condattr_init(&condition);
    pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
    pthread_cond_init(&shared->condition, &condition);
    pthread_barrierattr_t barrier;
    pthread_barrierattr_init(&barrier);
    pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->barrier, &barrier, 4);
    robustness();
    fflush(stdout);
    pid_t pids[4];
    for (int i = 0; i < 4; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            count(i);
            _exit(0);
        }
    }
    for (int i = 0; i < 4; i++)
        SAME(stress_wait(pids[i]), 0);
    printf("turns %ld counted %ld %ld\n", shared->turn, shared->count, shared->inherited);
    return 0;
}
