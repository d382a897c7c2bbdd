// A program for the loader's test to map; it is built in several ways. What matters is that it has
// initialised data, bss larger than a page, and an alignment above one.
#include <stdio.h>

static char big[100000];
static _Alignas(64) int table[] = {1, 2, 3, 4};

int main(int argc, char **argv) {
    big[argc] = 1;
    printf("%d %d %s\n", table[argc & 3], big[argc], argv[0]);
    return 0;
}
