// Works for a while in the function whose number it reads, says so, and reads the next.
#include <stdio.h>
#include <time.h>

#include "work.h"

static inline __attribute__((always_inline)) void work(void) {
    clock_t start = clock();
    do
        turn(100000);
    while (clock() - start < CLOCKS_PER_SEC / 3);
}

__attribute__((noinline)) static void first(void) {
    work();
    sink += 1;
}

__attribute__((noinline)) static void second(void) {
    work();
    sink += 2;
}

__attribute__((noinline)) static void third(void) {
    work();
    sink += 3;
}

int main(void) {
    static void (*const phases[])(void) = {first, second, third};
    unsigned number;
    while (scanf("%u", &number) == 1) {
        phases[number % 3]();
        printf("%u\n", number);
        fflush(stdout);
    }
    return 0;
}
