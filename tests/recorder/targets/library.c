// Allocations inside libc: streams, sorting, strings.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b) {
    return memcmp(a, b, 1024);
}

int main(void) {
    static char many[100][1024];
    FILE *file = fopen("/dev/null", "w");
    for (int i = 0; i < 100; i++)
        many[i][0] = (char)(i * 37);
    fprintf(file, "%s\n", strdup("a line"));
    qsort(many, 100, 1024, compare);
    char *text = NULL;
    if (asprintf(&text, "%d %s", 42, "formatted") < 0)
        return 1;
    free(text);
    fclose(file);
    return 0;
}
