// How long the unwinder takes for a frame, beside libgcc's.
//
// Good at: the cost of a walk whose rules are in the thread's cache (warm), and of one that looks
// every rule up in the tables (cold: the cache is emptied before each walk). Bad at: saying what a
// real program sees, whose stacks are spread over more code.

#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unwind.h>

#include "unwind/unwind.h"

#define FRAMES_MAX 256
#define ROUNDS     1000 // short ones, of which the best counts: other programs run as well

static struct unwind_space space;
static struct unwind_thread thread;
static struct unwind_memory memory;
static volatile uint64_t sink;
static bool done;

static int add_module(struct dl_phdr_info *info, size_t size, void *context) {
    struct unwind_image image;
    if (unwind_image_from_headers(&image, info->dlpi_phdr, info->dlpi_phnum, info->dlpi_addr))
        unwind_space_add(&space, &image);
    return 0;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static _Unwind_Reason_Code count_frame(struct _Unwind_Context *context, void *count) {
    sink = _Unwind_GetIP(context);
    ++*(size_t *)count;
    return _URC_NO_REASON;
}

static size_t walk_libgcc(void) {
    size_t count = 0;
    _Unwind_Backtrace(count_frame, &count);
    return count;
}

static __attribute__((noinline)) size_t walk_warm(void) {
    uint64_t pcs[FRAMES_MAX];
    struct unwind_registers registers;
    unwind_registers_here(&registers);
    size_t count = unwind_stack(&space, &thread, &registers, &memory, pcs, FRAMES_MAX, NULL);
    sink = pcs[count - 1];
    return count;
}

static size_t walk_cold(void) {
    for (size_t i = 0; i < UNWIND_CACHE_SIZE; i++)
        thread.cache[i].pc = 0;
    return walk_warm();
}

static void measure(const char *name, size_t (*walk)(void), int repeats) {
    double best = 1e30;
    size_t frames = walk();
    uint64_t missed = thread.counts.missed;
    for (int round = 0; round < ROUNDS; round++) {
        double start = now();
        for (int i = 0; i < repeats; i++)
            walk();
        double each = (now() - start) / repeats;
        best = each < best ? each : best;
    }
    printf("%-8s %3zu frames %9.1f ns per walk %8.2f ns per frame, %lu lookups per walk\n", name,
           frames, best, best / (double)frames,
           (thread.counts.missed - missed) / (ROUNDS * (unsigned long)repeats));
}

// Frames of two kinds in turn, through a library function: what callbacks look like.
static int compare_numbers(const void *left, const void *right);

static __attribute__((noinline)) int descend(int depth, int salt) {
    if (done)
        return salt;
    if (depth <= 0) {
        done = true;
        measure("warm", walk_warm, 100);
        measure("cold", walk_cold, 20);
        measure("libgcc", walk_libgcc, 5);
        return 0;
    }
    int numbers[2] = {depth, salt};
    if (depth % 4 == 0)
        qsort(numbers, 2, sizeof(int), compare_numbers);
    return descend(depth - 1, salt + numbers[0]) + numbers[1];
}

static int compare_numbers(const void *left, const void *right) {
    int depth = *(const int *)left;
    return descend(depth - 1, *(const int *)right) + depth;
}

int main(void) {
    pthread_attr_t attributes;
    void *low;
    size_t size;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &low, &size);
    memory = (struct unwind_memory){.low = (uint64_t)low, .high = (uint64_t)low + size};
    unwind_space_open(&space);
    dl_iterate_phdr(add_module, NULL);
    return descend(30, 1) == -1;
}
