// A program for the loader's tests, built in several ways. What matters is that it has initialised
// data, bss larger than a page, an alignment above that of data, and that it shows its arguments.
#include <stdio.h>

static char big[100000];
static _Alignas(64) int table[] = {1, 2, 3, 4};

int main(int argc, char **argv) {
    for (int i = 0; i < argc; i++)
        printf("%d <%s> %d\n", table[i & 3], argv[i], big[i]);
    return argc;
}
