// The engine's command line. The process that starts the engine writes it; the engine reads it:
//
//   ENGINE WIRE CONFIGURATION LIMITS PATH COUNT ARGUMENT… VARIABLE…
//
// WIRE and CONFIGURATION are descriptor numbers. LIMITS are the target's own resource limits, which
// are not those that the engine runs with (engine/rlimits.h). PATH is the file to run. COUNT is the
// number of the target's arguments, which follow; the rest is the target's environment. The
// engine's own environment is empty: variables for the target (LD_PRELOAD, MALLOC_ARENA_MAX …) must
// not reach the engine's loader and library.
#ifndef QUERN_WIRE_WIRE_START_H
#define QUERN_WIRE_WIRE_START_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>

// The resources whose limits the target has for itself: what the engine uses does not count.
enum wire_limit {
    WIRE_LIMIT_AS,
    WIRE_LIMIT_DATA,
    WIRE_LIMIT_STACK,
    WIRE_LIMIT_FSIZE,
    WIRE_LIMIT_NOFILE,
    WIRE_LIMITS
};
extern const int wire_limit_resources[WIRE_LIMITS]; // RLIMIT_*
// The limit of a resource; -1: it is not one of these.
int wire_limit_of(int resource);

struct wire_start {
    int wire, config;
    struct rlimit limits[WIRE_LIMITS];
    const char *path;
    char **argv; // both NULL-terminated
    char **envp;
};

struct wire_start_line {
    char wire[12], config[12], count[24]; // texts that the vector points to
    char limits[WIRE_LIMITS * 44];
    char **vector; // has room for wire_start_size words
};

size_t wire_start_size(char *const *argv, char *const *envp);
void wire_start_write(struct wire_start_line *, const char *engine, const struct wire_start *);

// Splits the vector in place. False if it is not such a command line.
bool wire_start_read(int count, char **vector, struct wire_start *);

#endif
