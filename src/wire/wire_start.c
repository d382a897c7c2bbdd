#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/wire_start.h"

enum { FIXED_WORDS = 6 };

const int wire_limit_resources[WIRE_LIMITS] = {
    [WIRE_LIMIT_AS] = RLIMIT_AS,         [WIRE_LIMIT_DATA] = RLIMIT_DATA,
    [WIRE_LIMIT_STACK] = RLIMIT_STACK,   [WIRE_LIMIT_FSIZE] = RLIMIT_FSIZE,
    [WIRE_LIMIT_NOFILE] = RLIMIT_NOFILE,
};

int wire_limit_of(int resource) {
    for (int i = 0; i < WIRE_LIMITS; i++)
        if (wire_limit_resources[i] == resource)
            return i;
    return -1;
}

// As "SOFT HARD SOFT HARD …".
static void write_limits(char *text, size_t size, const struct rlimit *limits) {
    size_t used = 0;
    for (int i = 0; i < WIRE_LIMITS; i++)
        used += (size_t)snprintf(text + used, size - used, "%lu %lu ", limits[i].rlim_cur,
                                 limits[i].rlim_max);
}

static bool read_limits(const char *text, struct rlimit *limits) {
    for (int i = 0; i < 2 * WIRE_LIMITS; i++) {
        char *end;
        rlim_t value = strtoul(text, &end, 10);
        if (end == text || *end != ' ')
            return false;
        *(i % 2 ? &limits[i / 2].rlim_max : &limits[i / 2].rlim_cur) = value;
        text = end + 1;
    }
    return true;
}

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
    write_limits(line->limits, sizeof line->limits, start->limits);
    char **vector = line->vector;
    *vector++ = (char *)engine;
    *vector++ = line->wire;
    *vector++ = line->config;
    *vector++ = line->limits;
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
    unsigned long arguments = strtoul(vector[5], &end, 10);
    if (*end || end == vector[5] || arguments > (unsigned long)(count - FIXED_WORDS) ||
        !read_limits(vector[3], start->limits))
        return false;
    start->wire = atoi(vector[1]);
    start->config = atoi(vector[2]);
    start->path = vector[4];
    // The arguments move down by one word to make room for the NULL after them.
    start->argv = vector + FIXED_WORDS - 1;
    memmove(start->argv, vector + FIXED_WORDS, arguments * sizeof *vector);
    start->argv[arguments] = NULL;
    start->envp = vector + FIXED_WORDS + arguments;
    return true;
}
