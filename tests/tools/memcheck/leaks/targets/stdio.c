// The C library's own blocks: what it frees when it is asked to at the end is not shown.
#include <locale.h>
#include <stdio.h>

#include "target.h"

int main(void) {
    setlocale(LC_ALL, "C.UTF-8");
    printf("a line\n");
    FILE *file = fopen("/dev/null", "w");
    if (!file)
        return 2;
    fprintf(file, "another\n");
    held[0] = words(10);
    wipe();
    return 0;
}
