// Never frees: its end is its peak.
#include <stdlib.h>

static void *blocks[1000];

int main(void) {
    for (int i = 0; i < 1000; i++)
        blocks[i] = malloc(320);
    return blocks[0] == NULL;
}
