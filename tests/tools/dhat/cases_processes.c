// Threads, child processes, signal handlers, and what a program tells dhat itself.
#include "cases.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <valgrind/dhat.h>

// Valgrind leaves out what lies less than 16 KiB above the stack pointer, heap or not.
static void *use_block(void *argument) {
    volatile char away[65536] = {0};
    char *block = malloc(100);
    sink += away[0];
    memset(block, 1, 100);
    sink += block[(long)argument];
    free(block);
    return malloc(24);
}

static void threads(void) {
    for (long i = 0; i < 6; i++) {
        pthread_t thread;
        void *block;
        pthread_create(&thread, NULL, use_block, (void *)i);
        pthread_join(thread, &block);
        *(long *)block = i;
        free(block);
    }
}

static void *take_over(void *block) {
    volatile char away[65536] = {0};
    sink += away[0];
    sink += *(long *)block;
    free(block);
    return NULL;
}

static void handed_over(void) {
    for (long i = 0; i < 4; i++) {
        pthread_t thread;
        long *block = malloc(32);
        *block = i;
        pthread_create(&thread, NULL, take_over, block);
        pthread_join(thread, NULL);
    }
}

enum { WORKERS = 3, HELD = 8 };
static pthread_barrier_t all_workers;

static void *work(void *argument) {
    volatile char away[65536] = {0};
    struct node *held = NULL;
    sink += away[0];
    for (int i = 0; i < 3000; i++) {
        struct node *node = push(held, i);
        sink += node->value;
        if (i < HELD)
            held = node;
        else
            free(node);
        if (i + 1 == HELD) {
            pthread_barrier_wait(&all_workers);
            drop(held);
            held = NULL;
            pthread_barrier_wait(&all_workers);
        }
    }
    return NULL;
}

// At the same time: sums do not depend on the order of threads, and no block is shared. The peak is
// where all hold their first blocks; what they hold later is less, whatever the order.
static void at_once(void) {
    pthread_t workers[WORKERS];
    pthread_barrier_init(&all_workers, NULL, WORKERS);
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&workers[i], NULL, work, NULL);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    pthread_barrier_destroy(&all_workers);
}

enum { CROWD = 4, CROWD_BLOCKS = 700 };
static long *crowded[CROWD][CROWD_BLOCKS];

static void *crowd_in(void *argument) {
    volatile char away[65536] = {0};
    long number = (long)argument;
    sink += away[0];
    for (int i = 0; i < CROWD_BLOCKS; i++) {
        crowded[number][i] = malloc(40);
        *crowded[number][i] = i;
    }
    pthread_barrier_wait(&all_workers);
    for (int i = 0; i < CROWD_BLOCKS; i++) {
        long *block = crowded[(number + 1) % CROWD][i];
        sink += *block;
        free(block);
    }
    pthread_barrier_wait(&all_workers);
    for (int i = 0; i < 4 * CROWD_BLOCKS; i++)
        free(malloc(8 + i % 64));
    return NULL;
}

// Blocks are freed by another thread than the one that made them. The peak is where all are there.
static void crowd(void) {
    pthread_t threads[CROWD];
    pthread_barrier_init(&all_workers, NULL, CROWD);
    for (long i = 0; i < CROWD; i++)
        pthread_create(&threads[i], NULL, crowd_in, (void *)i);
    for (int i = 0; i < CROWD; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&all_workers);
}

static void forked(void) {
    char *before = malloc(60);
    before[0] = 1;
    pid_t child = fork();
    if (child == 0) {
        before[1] = 2;
        free(before);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    before[2] = 3;
    free(before);
}

static char *volatile block_of_handler;

static void handle(int number) {
    block_of_handler[number] = 1;
}

static void signals(void) {
    block_of_handler = calloc(1, 64);
    signal(SIGUSR1, handle);
    for (int i = 0; i < 5; i++)
        raise(SIGUSR1);
    free(block_of_handler);
}

static void events(void) {
    for (int i = 0; i < 10; i++)
        DHAT_AD_HOC_EVENT(i);
    DHAT_AD_HOC_EVENT(1000000000000);
    free(malloc(10));
}

static void other_event(void) {
    DHAT_AD_HOC_EVENT(3);
}

static void events_by_stack(void) {
    other_event();
    for (int i = 0; i < 3; i++)
        other_event();
}

const struct test_case processes_cases[] = {
    CASE(threads), CASE(handed_over), CASE(at_once),         CASE(crowd), CASE(forked),
    CASE(signals), CASE(events),      CASE(events_by_stack), {0},
};
