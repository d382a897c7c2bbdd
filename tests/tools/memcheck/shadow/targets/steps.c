// Grows blocks in small steps, several at once, for a time that only fits if a step does not copy
// its block; then many blocks of 256 KiB, more than there may be mappings. Prints its peak in KB.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 8, STEPS = 60000, STEP = 48 };

int main(void)
{
    static unsigned char *blocks[BLOCKS];
    for (unsigned i = 1; i <= STEPS; i++)
        for (unsigned block = 0; block < BLOCKS; block++) {
            blocks[block] = realloc(blocks[block], i * STEP);
            memset(blocks[block] + (i - 1) * STEP, i + block, STEP);
        }
    for (unsigned i = 0; i < STEPS; i++)
        for (unsigned block = 0; block < BLOCKS; block++)
            if (blocks[block][i * STEP + i % STEP] != (unsigned char)(i + 1 + block))
                printf("wrong at %u\n", i);
    for (unsigned block = 0; block < BLOCKS; block++)
        free(blocks[block]);
    puts("end");
    return 0;
}
