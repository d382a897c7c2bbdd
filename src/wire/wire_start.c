#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/wire_start.h"

enum { FIXED_WORDS = 5 };

static size_t length_of(char *const *words) {
    size_t count = 0;
    while (words[count])
        count++;
    return count;
}

size_t wire_start_size(char *const *argv, char *const *envp) {
    return FIXED_WORDS + length_of(argv) + length_of(envp) + 1;
}

void wire_start_write(struct wire_start_line *line, const char *engine,
                      const struct wire_start *start) {
    size_t arguments = length_of(start->argv), variables = length_of(start->envp);
    snprintf(line->wire, sizeof line->wire, "%d", start->wire);
    snprintf(line->config, sizeof line->config, "%d", start->config);
    snprintf(line->count, sizeof line->count, "%zu", arguments);
    char **vector = line->vector;
    *vector++ = (char *)engine;
    *vector++ = line->wire;
    *vector++ = line->config;
    *vector++ = (char *)start->path;
    *vector++ = line->count;
    memcpy(vector, start->argv, arguments * sizeof *vector);
    memcpy(vector + arguments, start->envp, variables * sizeof *vector);
    vector[arguments + variables] = NULL;
}

bool wire_start_read(int count, char **vector, struct wire_start *start) {
    if (count < FIXED_WORDS)
        return false;
    char *end;
    unsigned long arguments = strtoul(vector[4], &end, 10);
    if (*end || end == vector[4] || arguments > (unsigned long)(count - FIXED_WORDS))
        return false;
    start->wire = atoi(vector[1]);
    start->config = atoi(vector[2]);
    start->path = vector[3];
    // The arguments move down by one word to make room for the NULL after them.
    start->argv = vector + FIXED_WORDS - 1;
    memmove(start->argv, vector + FIXED_WORDS, arguments * sizeof *vector);
    start->argv[arguments] = NULL;
    start->envp = vector + FIXED_WORDS + arguments;
    return true;
}
