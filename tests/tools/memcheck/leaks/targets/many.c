// Two million blocks of 24 bytes, held by a list.
#include <stdlib.h>

enum { COUNT = 2000000 };

struct block {
    struct block *next;
    long content[2];
};

struct block *volatile first;

int main(void) {
    for (long i = 0; i < COUNT; i++) {
        struct block *block = malloc(sizeof *block);
        block->next = first;
        block->content[0] = block->content[1] = i;
        first = block;
    }
    return 0;
}
