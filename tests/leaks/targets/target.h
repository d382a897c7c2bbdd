// What the programs share. They print nothing, so that the C library allocates nothing.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Held to the end.
static void *volatile held[64] __attribute__((unused));

// A block of words, all zero, so that every word counts as known. Not inlined: Valgrind takes the
// header's lines for those of the program then.
static __attribute__((noinline, unused)) void **words(int count) {
    return (void **)calloc((size_t)count, sizeof(void *));
}
// Overwrites what calls have left on the stack and in registers.
static void __attribute__((noinline, unused)) wipe(void) {
    volatile char stack[4096];
    for (size_t i = 0; i < sizeof stack; i++)
        stack[i] = 0;
}
