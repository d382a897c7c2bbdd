// Threads: errors in them, blocks and stacks that cross from one to another, what they hold.
//
// case thread_invalid_write -DWAY=1
// case thread_undefined -DWAY=2
// case thread_named -DWAY=3
// case thread_frees_for_other -DWAY=4
// case thread_uses_freed_by_other -DWAY=5
// case thread_local_undefined -DWAY=6
// case thread_local_leak -DWAY=7
// case thread_leak -DWAY=8
// case thread_not_joined -DWAY=9
// case thread_detached -DWAY=10
// case thread_other_stack -DWAY=11
// case thread_other_stack_O2 -DWAY=11 -O2
// case thread_other_stack_waits -DWAY=27
// case thread_main_stack -DWAY=28
// case thread_own_stack_below -DWAY=12 clean
// case thread_stack_holds -DWAY=13
// case thread_key_leak -DWAY=14
// case thread_key_destroyed -DWAY=15 clean
// case thread_result_undefined -DWAY=16
// case thread_given_stack -DWAY=17
// case thread_many -DWAY=18
// case thread_many_clean -DWAY=19 clean
// case thread_main_exits -DWAY=20
// case thread_mutex_undefined -DWAY=21
// case thread_condition -DWAY=22 clean
// case thread_errors_alternate -DWAY=23
// case thread_cancelled -DWAY=24
// case thread_clean_up -DWAY=25 clean
// case thread_origins -DWAY=2 --track-origins=yes
// case thread_xml -DWAY=3 xml
// case thread_undefined_O2 -DWAY=2 -O2
// case thread_invalid_clang clang -DWAY=1
// case thread_roundtrip -DWAY=8 roundtrip
// case thread_stack_returned -DWAY=26 clean
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <valgrind/memcheck.h>

static pthread_barrier_t barrier;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_key_t key;
static __thread char own[100];
static __thread void *held;
volatile int kept;
int ready;

static void run(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    pthread_create(&thread, NULL, function, argument);
    pthread_join(thread, NULL);
}

static void *invalid_write(void *block)
{
    ((char *)block)[10] = 1; // bug
    return NULL;
}

static void *undefined(void *unused)
{
    int value[4];
    __asm__ volatile("" : : "r"(value) : "memory");
    if (value[2]) // bug
        kept = 1;
    return NULL;
}

static void *named(void *unused)
{
    pthread_setname_np(pthread_self(), "worker");
    return undefined(NULL); // bug
}

static void *release(void *block)
{
    free(block); // bug
    return NULL;
}

static void *make(void *unused)
{
    return malloc(48); // leak
}

static void *local_undefined(void *unused)
{
    VALGRIND_MAKE_MEM_UNDEFINED(own, 50);
    if (own[49]) // bug
        kept = 1;
    if (own[50])
        kept = 2;
    return NULL;
}

static void *local_leak(void *unused)
{
    held = malloc(33); // leak
    return NULL;
}

static void *leak(void *unused)
{
    char *lost = malloc(21); // leak
    lost[0] = 1;
    return NULL;
}

static void *waits(void *unused)
{
    pthread_barrier_wait(&barrier);
    pause();
    return NULL;
}

// A place is shown only where the number of frames inside of its own does not change any more.
static char *volatile shown;
static volatile int done;
static int ends[2];

__attribute__((noinline)) static void show_and_spin(char *place)
{
    shown = place;
    while (!done)
        ;
}

__attribute__((noinline)) static void show_and_read(char *place)
{
    long result = 0; // of read, which has no frame of its own here
    char byte;
    shown = place;
    __asm__ volatile("syscall" : "+a"(result) : "D"(ends[0]), "S"(&byte), "d"(1) : "rcx", "r11", "memory");
}

static void *shows_stack(void *show)
{
    char local[64] = "here";
    VALGRIND_MAKE_MEM_NOACCESS(local + 16, 16);
    ((void (*)(char *))show)(local);
    VALGRIND_MAKE_MEM_DEFINED(local + 16, 16);
    return NULL;
}

static char *wait_for_place(void)
{
    while (!shown)
        sched_yield();
    return shown;
}

static void *reads_shown(void *unused)
{
    char *place = wait_for_place();
    kept = place[20]; // bug
    done = 1;
    return NULL;
}

static void *below(void *unused)
{
    char *sp = __builtin_frame_address(0);
    kept = *(volatile char *)(sp - 3000); // bug
    return NULL;
}

static void *holds(void *unused)
{
    void *volatile block = malloc(65); // leak
    pthread_barrier_wait(&barrier);
    pause();
    return block;
}

static void *sets_key(void *unused)
{
    pthread_setspecific(key, malloc(19)); // leak
    return NULL;
}

static void *returns_undefined(void *unused)
{
    long *heap = malloc(8), value = *heap;
    free(heap);
    return (void *)value;
}

static void *numbered(void *number)
{
    for (int i = 0; i < 100; i++) {
        char *block = malloc(i + 1);
        memset(block, 1, i + 1);
        free(block);
    }
    malloc(5); // leak
    return NULL;
}

static void *tidy(void *unused)
{
    for (int i = 0; i < 1000; i++) {
        char *block = malloc(i + 1);
        memset(block, i, i + 1);
        pthread_mutex_lock(&mutex);
        kept += block[i];
        pthread_mutex_unlock(&mutex);
        free(block);
    }
    return NULL;
}

static void *waits_for_ready(void *unused)
{
    pthread_mutex_lock(&mutex);
    while (!ready)
        pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void clean_up(void *block)
{
    free(block);
}

static void *cancelled(void *unused)
{
    char *lost = malloc(27); // leak
    lost[0] = 1;
    pthread_barrier_wait(&barrier);
    for (;;)
        pause();
    return lost;
}

static void *cancelled_tidily(void *unused)
{
    pthread_cleanup_push(clean_up, malloc(27));
    pthread_barrier_wait(&barrier);
    for (;;)
        pause();
    pthread_cleanup_pop(1);
    return NULL;
}

static void *returns_frame(void *place)
{
    char local[64];
    *(char *volatile *)place = local;
    return NULL;
}

static void cancel(void *(*function)(void *))
{
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, function, NULL);
    pthread_barrier_wait(&barrier);
    pthread_cancel(thread);
    pthread_join(thread, NULL);
}

int main(void)
{
    pthread_t thread, threads[8];
    pthread_attr_t attributes;
    void *result;
    char *place = NULL;
    char *block = malloc(10);
#if WAY == 1
    run(invalid_write, block);
#elif WAY == 2
    run(undefined, NULL);
#elif WAY == 3
    run(named, NULL);
#elif WAY == 4
    run(release, block);
    free(block); // bug
    return 0;
#elif WAY == 5
    run(release, block);
    block[3] = 1; // bug
    return 0;
#elif WAY == 6
    run(local_undefined, NULL);
#elif WAY == 7
    run(local_leak, NULL);
#elif WAY == 8
    run(leak, NULL);
#elif WAY == 9
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, waits, NULL); // leak
    pthread_barrier_wait(&barrier);
#elif WAY == 10
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, &attributes, waits, NULL); // leak
    pthread_barrier_wait(&barrier);
#elif WAY == 11
    pthread_create(&thread, NULL, shows_stack, show_and_spin);
    place = wait_for_place();
    kept = place[20]; // bug
    done = 1;
    pthread_join(thread, NULL);
#elif WAY == 12
    run(below, NULL);
#elif WAY == 13
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, holds, NULL); // leak
    pthread_barrier_wait(&barrier);
#elif WAY == 14
    pthread_key_create(&key, NULL);
    run(sets_key, NULL);
#elif WAY == 15
    pthread_key_create(&key, free);
    run(sets_key, NULL);
#elif WAY == 16
    pthread_create(&thread, NULL, returns_undefined, NULL);
    pthread_join(thread, &result);
    if (result) // bug
        kept = 1;
#elif WAY == 17
    void *stack = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack, 1 << 16);
    pthread_create(&thread, &attributes, undefined, NULL);
    pthread_join(thread, NULL);
#elif WAY == 18
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, numbered, NULL);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
#elif WAY == 19
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, tidy, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
#elif WAY == 20
    pthread_create(&thread, NULL, leak, NULL); // leak
    pthread_exit(NULL);
#elif WAY == 21
    pthread_mutex_t *fresh = malloc(sizeof(*fresh));
    memset(fresh, 0, sizeof(*fresh));
    VALGRIND_MAKE_MEM_UNDEFINED(fresh, sizeof(*fresh));
    pthread_mutex_trylock(fresh); // bug
    free(fresh);
#elif WAY == 22
    pthread_create(&thread, NULL, waits_for_ready, NULL);
    pthread_mutex_lock(&mutex);
    ready = 1;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
#elif WAY == 23
    run(undefined, NULL);
    block[11] = 1; // bug
    run(undefined, NULL);
    block[12] = 1; // bug
    run(invalid_write, block);
#elif WAY == 24
    cancel(cancelled);
#elif WAY == 25
    cancel(cancelled_tidily);
#elif WAY == 26
    run(returns_frame, &place);
    kept = place[5]; // bug
#elif WAY == 27
    pipe(ends);
    pthread_create(&thread, NULL, shows_stack, show_and_read);
    place = wait_for_place();
    kept = place[20]; // bug
    write(ends[1], "", 1);
    pthread_join(thread, NULL);
#elif WAY == 28
    pthread_create(&thread, NULL, reads_shown, NULL);
    shows_stack(show_and_spin);
    pthread_join(thread, NULL);
#endif
    free(block);
    return 0;
}
