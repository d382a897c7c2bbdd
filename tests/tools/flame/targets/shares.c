// Three functions that take 70, 20 and 10 of 100 parts of the time; says how much CPU time that
// was. Then, if asked, an end by SIGKILL.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "work.h"

__attribute__((noinline)) static void seventy(unsigned long unit) {
    turn(70 * unit);
    sink += 1;
}

__attribute__((noinline)) static void twenty(unsigned long unit) {
    turn(20 * unit);
    sink += 2;
}

__attribute__((noinline)) static void ten(unsigned long unit) {
    turn(10 * unit);
    sink += 3;
}

int main(int count, char **words) {
    unsigned rounds = count > 1 ? (unsigned)atoi(words[1]) : 3000;
    unsigned seed = 1;
    for (unsigned i = 0; i < rounds; i++) {
        seed = seed * 1103515245 + 12345;
        unsigned long unit = 2000 + (seed >> 16) % 4000;
        seventy(unit);
        twenty(unit);
        ten(unit);
    }
    printf("%f\n", (double)clock() / CLOCKS_PER_SEC);
    fflush(stdout);
    if (count > 2 && strcmp(words[2], "kill") == 0)
        raise(SIGKILL);
    return 7;
}
