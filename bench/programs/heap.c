// heap COUNT SIZE: that many blocks of that size, each written to and held by a list; `heap 0 SIZE`
// is one array. For memory: how much more there is than the program's own.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct block {
    struct block *next;
};

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    long count = atol(argv[1]);
    size_t size = strtoul(argv[2], NULL, 0);
    struct block *all = NULL;
    for (long i = 0; i < count; i++) {
        struct block *block = malloc(size);
        memset(block, 1, size);
        block->next = all;
        all = block;
    }
    if (count == 0) {
        unsigned char *array = malloc(size);
        for (size_t i = 0; i < size; i++)
            array[i] = i * 7;
        printf("%d\n", array[size / 2]);
        all = (struct block *)array;
    }
    return all == NULL;
}
