// Blocks that are held, lost, and in part undefined; then it waits.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *kept, *undefined, **holder;

int main(void) {
    kept = malloc(100);
    memset(kept, 'A', 50);
    undefined = malloc(16);
    undefined[3] = 'x';
    holder = malloc(8);
    *holder = malloc(24);
    volatile char *lost = malloc(77);
    lost = malloc(33);
    lost = NULL;
    kept[99] = 2;
    fprintf(stderr, "READY %p %p %p %p\n", (void *)kept, (void *)undefined, (void *)lost,
            (void *)*holder);
    for (;;)
        pause();
}
