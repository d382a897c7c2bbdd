// The engine's command line. The process that starts the engine writes it; the engine reads it:
//
//   ENGINE WIRE CONFIGURATION PATH COUNT ARGUMENT… VARIABLE…
//
// WIRE and CONFIGURATION are descriptor numbers. PATH is the file to run. COUNT is the number of
// the target's arguments, which follow; the rest is the target's environment. The engine's own
// environment is empty: variables for the target (LD_PRELOAD, MALLOC_ARENA_MAX …) must not reach
// the engine's loader and library.
#ifndef QUERN_WIRE_WIRE_START_H
#define QUERN_WIRE_WIRE_START_H

#include <stdbool.h>
#include <stddef.h>

struct wire_start {
    int wire, config;
    const char *path;
    char **argv; // both NULL-terminated
    char **envp;
};

struct wire_start_line {
    char wire[12], config[12], count[24]; // texts that the vector points to
    char **vector;                        // has room for wire_start_size words
};

size_t wire_start_size(char *const *argv, char *const *envp);
void wire_start_write(struct wire_start_line *, const char *engine, const struct wire_start *);

// Splits the vector in place. False if it is not such a command line.
bool wire_start_read(int count, char **vector, struct wire_start *);

#endif
