// Allocates a step further for every line it reads, and says it again.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *held[8];

static char *first(void) {
    return malloc(1000);
}

static char *second(void) {
    return malloc(20000);
}

int main(void) {
    char line[100];
    for (int i = 0; i < 8 && fgets(line, sizeof line, stdin); i++) {
        held[i] = strcmp(line, "second\n") == 0 ? second() : first();
        fputs(line, stdout);
        fflush(stdout);
    }
    return 0;
}
