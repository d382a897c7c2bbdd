// The C library keeps memory of its own until the end, and frees it then.
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    for (int i = 0; i < 20; i++) {
        void *block = malloc(100 * (i + 1));
        printf("%d\n", i);
        free(block);
    }
    return 0;
}
