/* Allocations with known work between them: a loop of three instructions, 1,000,000 times; a copy
   of 100,000 bytes by a string instruction. */
#include <stdlib.h>

static void loop(long times) {
    __asm__ volatile("1: nop\n dec %0\n jnz 1b" : "+r"(times) : : "cc");
}

static void copy(char *to, char *from, long size) {
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}

int main(void) {
    static char from[100000], to[100000];
    char *first = malloc(100000);
    loop(1000000);
    char *second = malloc(200000);
    copy(to, from, sizeof to);
    char *third = malloc(400000);
    return !first + !second + !third;
}
