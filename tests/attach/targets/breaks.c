// Takes memory from the break itself, between blocks of malloc's. Prints the bytes of its blocks
// and waits for the end of stdin.
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *blocks[3000];

int main(void) {
    char line[64], byte;
    size_t sum = 0;
    for (int i = 0; i < 3000; i++) {
        blocks[i] = malloc(333);
        sum += malloc_usable_size(blocks[i]);
        if (i % 1000 == 999) {
            void *mine = sbrk(5000);
            memset(mine, 7, 5000);
        }
    }
    int size = snprintf(line, sizeof line, "%zu\n", sum);
    return write(1, line, (size_t)size) < 0 || read(0, &byte, 1) < 0;
}
