// Loads a library into a process that runs, without a debugger: a thread of the process is borrowed
// for the length of one pthread_create, and the new thread, the helper, calls dlopen
// (docs/attach.md, "How it gets in"; wire/wire_attach.h).
//
// Words:
//   borrowed  the thread that makes the helper
//   safe      a thread that can be borrowed: it is in none of the functions whose locks
//             pthread_create needs, nor is a function that a signal handler has interrupted
//   cave      the end of the last page of a library's code, behind the code: nobody runs it
//   scratch   a block of memory that the borrowed thread maps
//
// All that is written into the process can stay as it is: whenever Quern ends, the process goes on.
// Supervisor context.
#ifndef QUERN_ATTACH_LOAD_H
#define QUERN_ATTACH_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/wire_attach.h"

#define LOAD_CAVE 2048 // bytes at most

struct load {
    int pid, pidfd;
    uint64_t scratch;
    uint64_t cave;
    size_t cave_size;
    uint8_t cave_was[LOAD_CAVE]; // what stood there
    uint64_t pause;              // nanoseconds of the longest stop
    unsigned stops;
};

// Brings the library into the process; `path` is where the process sees it. When the helper waits
// for its options, *wire is our end of its wire. NULL, or why it is not possible, to be freed.
char *load_begin(struct load *load, int pid, const char *path, int *wire);
// What is in the scratch now. False: the process has ended.
bool load_look(const struct load *load, struct wire_attach *now);
// Stops the process and writes the jumps, or what stood there before; then `active` becomes that.
// No thread stands among the bytes that change. NULL, or why it was not done, to be freed.
char *load_patch(struct load *load, const struct wire_attach *ready, bool active);
void load_end(struct load *load);

#endif
