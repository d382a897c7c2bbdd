// Every line gets a block of 4000 bytes, whatever its length. Fixed: as many as it needs.
#include <stdlib.h>
#include <string.h>

#include "common.h"

enum { LINES = 500 };

static char *lines[LINES];

static char *read_line(const char *text) {
    size_t length = strlen(text) + 1;
    char *line = malloc(IS_FIXED ? length : 4000);
    memcpy(line, text, length);
    return line;
}

int main(void) {
    size_t sum = 0;
    for (unsigned i = 0; i < LINES; i++)
        lines[i] = read_line("a line as long as most lines are, which is not very long");
    for (unsigned i = 0; i < LINES; i++)
        sum += strlen(lines[i]);
    return sum == 0;
}
