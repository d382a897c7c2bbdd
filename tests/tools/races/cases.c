// Programs with two threads, in pairs: NAME_race has a data race, NAME_clean has none. The argument
// says which one runs. Conflicting accesses of a race are not ordered by anything in any schedule,
// unless the name says "any": then both must only happen.
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

typedef void *body(void *);

static int shared;
static char bytes[64];
static long numbers[4096];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_barrier_t barrier;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t semaphore;
static mtx_t c11_mutex;
static once_flag c11_once = ONCE_FLAG_INIT;
static int ready, pipes[2];

// Both at once, then joined.
static void run(body *a, body *b, void *argument) {
    pthread_t first, last;
    pthread_create(&first, NULL, a, argument);
    pthread_create(&last, NULL, b, argument);
    pthread_join(first, NULL);
    pthread_join(last, NULL);
}

#define THREAD(name) static void *name(void *argument)
#define RETURN       return NULL

// ---- plain accesses ----

THREAD(add) { shared++; RETURN; }
THREAD(read_only) { return (void *)(long)shared; }
THREAD(set) { shared = 1; RETURN; }
THREAD(low_byte) { bytes[0]++; RETURN; }
THREAD(high_byte) { bytes[1]++; RETURN; }
THREAD(whole_word) { *(int *)bytes = 1; RETURN; }
THREAD(across) { *(int *)(bytes + 6) = 1; RETURN; }
THREAD(behind) { bytes[10] = 1; RETURN; }
THREAD(inside) { bytes[9] = 1; RETURN; }
THREAD(fill_low) { for (int i = 0; i < 2048; i++) numbers[i] = i; RETURN; }
THREAD(fill_high) { for (int i = 2048; i < 4096; i++) numbers[i] = i; RETURN; }
THREAD(fill_more) { for (int i = 2047; i < 4096; i++) numbers[i] = i; RETURN; }
THREAD(sum) { long s = 0; for (int i = 0; i < 4096; i++) s += numbers[i]; return (void *)s; }
static void counter_race(void) { run(add, add, NULL); }
static void write_read_race(void) { run(set, read_only, NULL); }
static void read_read_clean(void) { shared = 5; run(read_only, read_only, NULL); }
static void write_write_race(void) { run(set, set, NULL); }
static void byte_race(void) { run(low_byte, low_byte, NULL); }
static void byte_clean(void) { run(low_byte, high_byte, NULL); }
static void word_and_byte_race(void) { run(whole_word, high_byte, NULL); }
static void unaligned_race(void) { run(across, inside, NULL); }
static void unaligned_clean(void) { run(across, behind, NULL); }
static void array_race(void) { run(fill_low, fill_more, NULL); }
static void array_clean(void) { run(fill_low, fill_high, NULL); }
static void shared_table_clean(void) { fill_low(NULL); run(sum, sum, NULL); }
static void table_race(void) { run(sum, fill_low, NULL); }

// ---- creating and joining ----

static void create_clean(void) {
    pthread_t thread;
    shared = 1;
    pthread_create(&thread, NULL, add, NULL);
    pthread_join(thread, NULL);
    shared++;
}
static void create_race(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, add, NULL);
    shared = 1;
    pthread_join(thread, NULL);
}
static void one_after_the_other_clean(void) {
    for (int i = 0; i < 5; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, add, NULL);
        pthread_join(thread, NULL);
    }
}
THREAD(create_another) {
    pthread_t thread;
    shared = 1;
    pthread_create(&thread, NULL, add, NULL);
    pthread_join(thread, NULL);
    shared++;
    RETURN;
}
static void nested_clean(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, create_another, NULL);
    pthread_join(thread, NULL);
    shared++;
}
static void nested_race(void) { run(create_another, read_only, NULL); }
THREAD(on_stack) { int values[1000]; for (int i = 0; i < 1000; i++) values[i] = i; return (void *)(long)values[rand() % 1000]; }
static void stacks_again_clean(void) {
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    for (int i = 0; i < 30; i++) {
        pthread_t thread;
        pthread_create(&thread, &detached, on_stack, NULL);
        usleep(500);
    }
}
static __thread int own;
THREAD(thread_local_) { int *at = &own; for (int i = 0; i < 100; i++) (*at)++; return (void *)(long)*at; }
static void thread_local_clean(void) { run(thread_local_, thread_local_, NULL); }
THREAD(local_of_main) { (*(int *)argument)++; RETURN; }
static void local_race(void) { int local = 0; run(local_of_main, local_of_main, &local); shared = local; }
static void local_clean(void) {
    int local = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, local_of_main, &local);
    pthread_join(thread, NULL);
    shared = local;
}
static int c11_add(void *argument) { shared++; return 0; }
static void c11_thread_race(void) {
    thrd_t a, b;
    thrd_create(&a, c11_add, NULL);
    thrd_create(&b, c11_add, NULL);
    thrd_join(a, NULL);
    thrd_join(b, NULL);
}
static void c11_thread_clean(void) {
    thrd_t a;
    thrd_create(&a, c11_add, NULL);
    thrd_join(a, NULL);
    shared++;
}
THREAD(until_cancelled) { shared = 1; for (;;) pause(); RETURN; }
static void cancel_clean(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, until_cancelled, NULL);
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    shared++;
}
static void try_join_clean(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, add, NULL);
    while (pthread_tryjoin_np(thread, NULL) == EBUSY)
        sched_yield();
    shared++;
}

// ---- mutexes ----

THREAD(locked_add) { for (int i = 0; i < 100; i++) { pthread_mutex_lock(&mutex); shared++; pthread_mutex_unlock(&mutex); } RETURN; }
THREAD(other_lock_add) { for (int i = 0; i < 100; i++) { pthread_mutex_lock(&second); shared++; pthread_mutex_unlock(&second); } RETURN; }
THREAD(tried_add) { while (pthread_mutex_trylock(&mutex)) sched_yield(); shared++; pthread_mutex_unlock(&mutex); RETURN; }
THREAD(timed_add) { struct timespec far = {.tv_sec = time(NULL) + 100}; pthread_mutex_timedlock(&mutex, &far); shared++; pthread_mutex_unlock(&mutex); RETURN; }
static void mutex_clean(void) { run(locked_add, locked_add, NULL); }
static void mutexes_race(void) { run(locked_add, other_lock_add, NULL); }
static void trylock_clean(void) { run(tried_add, locked_add, NULL); }
static void timedlock_clean(void) { run(timed_add, locked_add, NULL); }
static void recursive_clean(void) {
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&mutex, &kind);
    pthread_mutex_lock(&mutex);
    pthread_t thread;
    pthread_create(&thread, NULL, locked_add, NULL);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    shared++;
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
}
THREAD(c11_locked) { mtx_lock(&c11_mutex); shared++; mtx_unlock(&c11_mutex); RETURN; }
static void c11_mutex_clean(void) { mtx_init(&c11_mutex, mtx_plain); run(c11_locked, c11_locked, NULL); }
THREAD(spin_add) { for (int i = 0; i < 100; i++) { pthread_spin_lock(&spin); shared++; pthread_spin_unlock(&spin); } RETURN; }
static void spin_clean(void) { pthread_spin_init(&spin, 0); run(spin_add, spin_add, NULL); }
static void spin_race(void) { pthread_spin_init(&spin, 0); run(spin_add, other_lock_add, NULL); }
THREAD(file_add) { flockfile(stdout); shared++; funlockfile(stdout); RETURN; }
static void file_lock_clean(void) { run(file_add, file_add, NULL); }

// ---- read-write locks ----

THREAD(rw_read) { for (int i = 0; i < 50; i++) { pthread_rwlock_rdlock(&rwlock); if (shared == -1) puts("never"); pthread_rwlock_unlock(&rwlock); } RETURN; }
THREAD(rw_write) { for (int i = 0; i < 50; i++) { pthread_rwlock_wrlock(&rwlock); shared++; pthread_rwlock_unlock(&rwlock); } RETURN; }
THREAD(rw_wrong) { pthread_rwlock_rdlock(&rwlock); shared++; pthread_rwlock_unlock(&rwlock); RETURN; }
static void rwlock_clean(void) { run(rw_read, rw_write, NULL); }
static void rwlock_race(void) { run(rw_wrong, rw_wrong, NULL); }

// ---- conditions, semaphores, barriers, once ----

THREAD(give) { shared = 42; pthread_mutex_lock(&mutex); ready = 1; pthread_cond_signal(&condition); pthread_mutex_unlock(&mutex); RETURN; }
THREAD(take) { pthread_mutex_lock(&mutex); while (!ready) pthread_cond_wait(&condition, &mutex); pthread_mutex_unlock(&mutex); shared++; RETURN; }
THREAD(give_late) { pthread_mutex_lock(&mutex); ready = 1; pthread_cond_signal(&condition); pthread_mutex_unlock(&mutex); shared = 42; RETURN; }
static void condition_clean(void) { run(give, take, NULL); }
static void condition_race(void) { run(give_late, take, NULL); }
THREAD(post) { shared = 42; sem_post(&semaphore); RETURN; }
THREAD(wait_) { sem_wait(&semaphore); shared++; RETURN; }
THREAD(post_early) { sem_post(&semaphore); shared = 42; RETURN; }
static void semaphore_clean(void) { sem_init(&semaphore, 0, 0); run(post, wait_, NULL); }
static void semaphore_race(void) { sem_init(&semaphore, 0, 0); run(post_early, wait_, NULL); }
THREAD(before_barrier) { shared = 42; pthread_barrier_wait(&barrier); RETURN; }
THREAD(after_barrier) { pthread_barrier_wait(&barrier); shared++; RETURN; }
THREAD(rounds) {
    int odd = argument != NULL;
    for (int i = 0; i < 40; i++) {
        if (i % 2 == odd)
            shared++;
        pthread_barrier_wait(&barrier);
    }
    RETURN;
}
static void barrier_clean(void) { pthread_barrier_init(&barrier, NULL, 2); run(before_barrier, after_barrier, NULL); }
static void barrier_race(void) { pthread_barrier_init(&barrier, NULL, 2); run(after_barrier, after_barrier, NULL); }
static void rounds_clean(void) {
    pthread_t a, b;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&a, NULL, rounds, NULL);
    pthread_create(&b, NULL, rounds, &barrier);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
}
static void initialise(void) { shared = 42; }
THREAD(once_read) { pthread_once(&once, initialise); return (void *)(long)shared; }
THREAD(once_add) { pthread_once(&once, initialise); shared++; RETURN; }
static void once_clean(void) { run(once_read, once_read, NULL); }
static void once_race(void) { run(once_add, once_add, NULL); }
THREAD(c11_once_read) { call_once(&c11_once, initialise); return (void *)(long)shared; }
static void c11_once_clean(void) { run(c11_once_read, c11_once_read, NULL); }

// ---- the heap ----

THREAD(allocate) { for (int i = 0; i < 300; i++) { int *p = malloc(40); for (int k = 0; k < 10; k++) p[k] = k; free(p); } RETURN; }
static void heap_again_clean(void) { run(allocate, allocate, NULL); }
THREAD(heap_add) { (*(int *)argument)++; RETURN; }
static void heap_race(void) { int *p = calloc(4, 4); run(heap_add, heap_add, p + 1); free(p); }
static int *hand_over;
THREAD(make_block) { int *p = malloc(400); p[7] = 7; pthread_mutex_lock(&mutex); hand_over = p; pthread_mutex_unlock(&mutex); RETURN; }
THREAD(use_block) {
    int *p = NULL;
    while (!p) { pthread_mutex_lock(&mutex); p = hand_over; pthread_mutex_unlock(&mutex); sched_yield(); }
    p[7]++;
    free(p);
    RETURN;
}
static void hand_over_clean(void) { run(make_block, use_block, NULL); }
THREAD(map_memory) { for (int i = 0; i < 50; i++) { int *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); p[3] = i; munmap(p, 4096); } RETURN; }
static void maps_again_clean(void) { run(map_memory, map_memory, NULL); }
THREAD(grow) { char *p = NULL; for (int i = 1; i < 200; i++) { p = realloc(p, i * 10); p[i] = 1; } free(p); RETURN; }
static void realloc_clean(void) { run(grow, grow, NULL); }

// ---- atomics ----

static atomic_int counter, flag;
static int builtin_flag, lock_word;
THREAD(atomic_add_) { for (int i = 0; i < 100; i++) atomic_fetch_add(&counter, 1); RETURN; }
static void atomic_clean(void) { run(atomic_add_, atomic_add_, NULL); }
THREAD(publish) { shared = 42; atomic_store_explicit(&flag, 1, memory_order_release); RETURN; }
THREAD(consume) {
    while (!atomic_load_explicit(&flag, memory_order_acquire))
        sched_yield();
    shared++;
    RETURN;
}
THREAD(publish_late) {
    atomic_store_explicit(&flag, 1, memory_order_release);
    shared = 42;
    RETURN;
}
static void publish_clean(void) { run(publish, consume, NULL); }
THREAD(builtin_publish) { shared = 42; __atomic_store_n(&builtin_flag, 1, __ATOMIC_RELEASE); RETURN; }
THREAD(builtin_consume) { while (!__atomic_load_n(&builtin_flag, __ATOMIC_ACQUIRE)) sched_yield(); shared++; RETURN; }
static void builtin_clean(void) { run(builtin_publish, builtin_consume, NULL); }
THREAD(flag_exchange) { shared = 42; __atomic_exchange_n(&builtin_flag, 1, __ATOMIC_ACQ_REL); RETURN; }
static void exchange_clean(void) { run(flag_exchange, builtin_consume, NULL); }
THREAD(plain_mix) {
    shared++;
    atomic_fetch_add(&counter, 1);
    RETURN;
}
static void beside_atomic_race(void) { run(add, plain_mix, NULL); }
THREAD(own_lock) {
    for (int i = 0; i < 100; i++) {
        while (__atomic_exchange_n(&lock_word, 1, __ATOMIC_ACQUIRE))
            sched_yield();
        shared++;
        __atomic_store_n(&lock_word, 0, __ATOMIC_RELEASE);
    }
    RETURN;
}
static void own_lock_clean(void) { run(own_lock, own_lock, NULL); }
THREAD(cas_consume) { int one = 1; while (!__atomic_compare_exchange_n(&builtin_flag, &one, 2, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) { one = 1; sched_yield(); } shared++; RETURN; }
static void cas_clean(void) { run(builtin_publish, cas_consume, NULL); }
static void futex(int *at, int operation, int value) { syscall(SYS_futex, at, operation, value, NULL, NULL, 0); }
THREAD(futex_publish) { shared = 42; __atomic_store_n(&builtin_flag, 1, __ATOMIC_SEQ_CST); futex(&builtin_flag, FUTEX_WAKE, 1); RETURN; }
THREAD(futex_consume) { while (!__atomic_load_n(&builtin_flag, __ATOMIC_ACQUIRE)) futex(&builtin_flag, FUTEX_WAIT, 0); shared++; RETURN; }
static void futex_clean(void) { run(futex_publish, futex_consume, NULL); }

// ---- functions of the C library ----

static char source[300] = "text";
THREAD(copy_low) { memcpy(bytes, source, 30 + (argument != NULL)); RETURN; }
THREAD(copy_high) { memmove(bytes + 32, source, 30 + (argument != NULL)); RETURN; }
THREAD(clear_all) { memset(bytes, 0, 60 + (argument != NULL)); RETURN; }
static void memcpy_clean(void) { run(copy_low, copy_high, NULL); }
static void memcpy_race(void) { run(copy_low, copy_low, NULL); }
static void memset_race(void) { run(clear_all, copy_high, NULL); }

// ---- through the kernel ----

THREAD(write_pipe) { shared = 42; if (write(pipes[1], "x", 1) != 1) abort(); RETURN; }
THREAD(read_pipe) { char c; if (read(pipes[0], &c, 1) != 1) abort(); shared++; RETURN; }
THREAD(write_pipe_early) { if (write(pipes[1], "x", 1) != 1) abort(); shared = 42; RETURN; }
static void pipe_clean(void) { if (pipe(pipes)) abort(); run(write_pipe, read_pipe, NULL); }
static void pipe_race(void) { if (pipe(pipes)) abort(); run(write_pipe_early, read_pipe, NULL); }
static void socket_clean(void) { if (socketpair(AF_UNIX, SOCK_STREAM, 0, pipes)) abort(); run(write_pipe, read_pipe, NULL); }
THREAD(write_event) { uint64_t one = 1; shared = 42; if (write(pipes[0], &one, 8) != 8) abort(); RETURN; }
THREAD(read_event) { uint64_t n; if (read(pipes[0], &n, 8) != 8) abort(); shared++; RETURN; }
static void eventfd_clean(void) { pipes[0] = eventfd(0, 0); run(write_event, read_event, NULL); }
static void handler(int number) { shared++; }
static pthread_t main_thread;
THREAD(send_signal) { shared = 42; pthread_kill(main_thread, SIGUSR1); RETURN; }
static void signal_clean(void) {
    pthread_t thread;
    main_thread = pthread_self();
    signal(SIGUSR1, handler);
    pthread_create(&thread, NULL, send_signal, NULL);
    pthread_join(thread, NULL);
}
static void fork_clean(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, locked_add, NULL);
    pid_t child = fork();
    if (!child) {
        shared++;
        _exit(0);
    }
    waitpid(child, NULL, 0);
    pthread_join(thread, NULL);
    shared++;
}
static void late_publish_race(void) { run(publish_late, consume, NULL); }

#define CASE(name) {#name, name}
static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    CASE(counter_race), CASE(write_read_race), CASE(read_read_clean), CASE(write_write_race),
    CASE(byte_race), CASE(byte_clean), CASE(word_and_byte_race), CASE(unaligned_race),
    CASE(unaligned_clean), CASE(array_race), CASE(array_clean), CASE(shared_table_clean),
    CASE(table_race), CASE(create_clean), CASE(create_race), CASE(one_after_the_other_clean),
    CASE(nested_clean), CASE(nested_race), CASE(stacks_again_clean), CASE(thread_local_clean),
    CASE(local_race), CASE(local_clean), CASE(c11_thread_race), CASE(c11_thread_clean),
    CASE(cancel_clean), CASE(try_join_clean), CASE(mutex_clean), CASE(mutexes_race),
    CASE(trylock_clean), CASE(timedlock_clean), CASE(recursive_clean), CASE(c11_mutex_clean),
    CASE(spin_clean), CASE(spin_race), CASE(file_lock_clean), CASE(rwlock_clean),
    CASE(rwlock_race), CASE(condition_clean), CASE(condition_race), CASE(semaphore_clean),
    CASE(semaphore_race), CASE(barrier_clean), CASE(barrier_race), CASE(rounds_clean),
    CASE(once_clean), CASE(once_race), CASE(c11_once_clean), CASE(heap_again_clean),
    CASE(heap_race), CASE(hand_over_clean), CASE(maps_again_clean), CASE(realloc_clean),
    CASE(atomic_clean), CASE(publish_clean), CASE(builtin_clean), CASE(exchange_clean),
    CASE(beside_atomic_race), CASE(own_lock_clean), CASE(cas_clean), CASE(futex_clean),
    CASE(pipe_clean), CASE(pipe_race), CASE(socket_clean), CASE(eventfd_clean),
    CASE(signal_clean), CASE(fork_clean), CASE(memcpy_clean),
    CASE(memcpy_race), CASE(memset_race), CASE(late_publish_race),
};

int main(int argc, char **argv) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (argc < 2)
            puts(cases[i].name);
        else if (strcmp(cases[i].name, argv[1]) == 0)
            cases[i].run();
    }
    return 0;
}
