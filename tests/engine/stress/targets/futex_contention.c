// Mutexes, conditions, read-write locks, semaphores and bare atomics under contention; every count
// must come out exact.
#include "stress.h"
#include <semaphore.h>

enum { THREADS = 6, ROUNDS = 4000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static sem_t semaphore;
static long by_mutex, by_recursive, by_spin, by_write, by_sem, baton;
static _Atomic long by_atomic;
static long by_cas;
static __int128 by_wide __attribute__((aligned(16)));

static void add_wide(void) {
    uint64_t low, high;
    unsigned char done;
    uint64_t *p = (uint64_t *)&by_wide;
    do {
        low = p[0];
        high = p[1];
        __asm__ volatile("lock cmpxchg16b %1; sete %0"
                         : "=q"(done), "+m"(by_wide), "+a"(low), "+d"(high)
                         : "b"(low + 1), "c"(high + 2)
                         : "cc", "memory");
    } while (!done);
}

static void *work(void *arg) {
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_lock(&mutex);
        by_mutex++;
        pthread_mutex_unlock(&mutex);
        pthread_mutex_lock(&recursive);
        pthread_mutex_lock(&recursive);
        by_recursive++;
        pthread_mutex_unlock(&recursive);
        pthread_mutex_unlock(&recursive);
        if (i % 8 == 0) {
            pthread_spin_lock(&spin);
            by_spin++;
            pthread_spin_unlock(&spin);
            pthread_rwlock_wrlock(&rwlock);
            by_write++;
            pthread_rwlock_unlock(&rwlock);
        }
        pthread_rwlock_rdlock(&rwlock);
        CHECK(by_write >= 0);
        pthread_rwlock_unlock(&rwlock);
        sem_wait(&semaphore);
        by_sem++;
        sem_post(&semaphore);
        by_atomic++;
        long old = __atomic_load_n(&by_cas, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(&by_cas, &old, old + 3, 0, __ATOMIC_SEQ_CST,
                                            __ATOMIC_SEQ_CST))
            ;
        add_wide();
    }
    long id = (long)arg;
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&mutex);
        while (baton % THREADS != id)
            pthread_cond_wait(&turn, &mutex);
        baton++;
        pthread_cond_broadcast(&turn);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

int main(void) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&recursive, &attributes);
    pthread_spin_init(&spin, 0);
    sem_init(&semaphore, 0, 1);
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        threads[i] = stress_thread(work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        stress_join(threads[i]);
    printf("%ld %ld %ld %ld %ld %ld %ld %ld %lld %lld\n", by_mutex, by_recursive, by_spin, by_write,
           by_sem, (long)by_atomic, by_cas, baton, (long long)by_wide, (long long)(by_wide >> 64));
    return 0;
}
