// Takes memory piece by piece and touches it all; never frees.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
    for (int i = 0; i < 1000; i++) {
        char *piece = malloc(100000);
        memset(piece, i, 100000);
        *(char *volatile *)&piece = NULL;
    }
    puts("done");
    return 0;
}
