// A large heap, in which red zones are narrow: every access up to eight bytes before and behind a
// block is found all the same.
//
// case zones_large_heap -DACCESS=char
// case zones_large_heap_O2 -O2 -DACCESS=char
// case zones_large_heap_8 -DACCESS=long
// case zones_small_heap -DSMALL -DACCESS=char
#include <stdio.h>
#include <stdlib.h>
#include <valgrind/memcheck.h>

enum { FILL = 24, HEAP = 48 << 20, LARGEST = 64, NEAR = 8, EACH = 3 };

volatile long kept;

// Whether an access is reported.
__attribute__((noinline)) static int is_found(const volatile char *place)
{
    unsigned before = VALGRIND_COUNT_ERRORS;
    kept = *(const volatile ACCESS *)place; // bug
    return VALGRIND_COUNT_ERRORS - before;
}

int main(void)
{
    void **list = NULL;
    int wrong = 0;
#ifndef SMALL
    for (size_t made = 0; made < HEAP; made += FILL) {
        void **next = malloc(FILL);
        *next = list;
        list = next;
    }
#endif
    for (int size = 1; size <= LARGEST; size++)
        for (int i = 0; i < EACH; i++) {
            char *block = malloc(size);
            for (int at = 0; at < NEAR; at++) {
                wrong += is_found(block + size + at) != 1;
                wrong += is_found(block - 1 - at) != 1;
            }
            free(block);
        }
    printf("%d accesses were not found\n", wrong);
    while (list) {
        void **next = *list;
        free(list);
        list = next;
    }
    return 0;
}
