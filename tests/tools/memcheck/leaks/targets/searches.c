// Searches while the program runs: what is new, more, changed; what was counted.
#include <stdio.h>
#include <valgrind/memcheck.h>

#include "target.h"

static void __attribute__((noinline)) leak(size_t size) {
    calloc(1, size);
}
static void __attribute__((noinline)) keep(int place, size_t size) {
    held[place] = calloc(1, size);
}
static void counts(int number) {
    unsigned long lost = 1, possible = 1, reachable = 1, suppressed = 1;
    VALGRIND_COUNT_LEAKS(lost, possible, reachable, suppressed);
    fprintf(stderr, "%d: bytes %lu %lu %lu %lu", number, lost, possible, reachable, suppressed);
    VALGRIND_COUNT_LEAK_BLOCKS(lost, possible, reachable, suppressed);
    fprintf(stderr, " blocks %lu %lu %lu %lu\n", lost, possible, reachable, suppressed);
}
int main(void) {
    counts(0);
    leak(100);
    keep(0, 30);
    wipe();
    VALGRIND_DO_LEAK_CHECK;
    counts(1);
    leak(100);
    keep(1, 40);
    wipe();
    VALGRIND_DO_ADDED_LEAK_CHECK;
    counts(2);
    free(held[1]);
    held[1] = NULL;
    wipe();
    VALGRIND_DO_CHANGED_LEAK_CHECK;
    counts(3);
    VALGRIND_DO_QUICK_LEAK_CHECK;
    VALGRIND_DO_CHANGED_LEAK_CHECK;
    counts(4);
    return 0;
}
