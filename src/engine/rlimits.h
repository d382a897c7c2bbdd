// The target's resource limits.
//
// The engine's own memory, files and descriptors must not count against them. So the kernel keeps
// other limits for the process than the target sees:
//
//   address space, data, stack   The kernel's are as high as permitted. What the target maps is
//                                compared with the target's own limits (sys/limits.c).
//   file size, descriptors       The kernel's soft limit is the target's, so that the kernel judges
//                                every write and every new descriptor. The hard limit stays as high
//                                as permitted: for the engine's own files, rlimits_lift() raises
//                                the soft one. The engine's descriptors have numbers above it.
//
// Limits belong to a process. Threads share them; a vfork child has a copy. A program that is
// executed and followed gets them by its command line (wire/wire_start.h), others by the kernel.
#ifndef QUERN_ENGINE_RLIMITS_H
#define QUERN_ENGINE_RLIMITS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include "wire/wire_start.h"

struct limits {
    struct rlimit of[WIRE_LIMITS]; // as the target sees them
    pthread_mutex_t lock;          // guards what follows, and the kernel's limits
    unsigned lifted;               // how many threads have lifted the limits
};

// At start: takes the target's limits. The kernel's stay as they are until rlimits_enforce().
void rlimits_init(const struct rlimit limits[WIRE_LIMITS]);
void rlimits_enforce(void);
// The target's soft limit.
uint64_t rlimits_soft(enum wire_limit);
void rlimits_set(enum wire_limit, const struct rlimit *);
// For a vfork child; and for the only thread of a forked one.
struct limits *rlimits_copy(const struct limits *);
void rlimits_forked(void);

// Between these two, the engine's own files and descriptors are not limited. They nest.
void rlimits_lift(void);
void rlimits_restore(void);

// Gives the kernel's limits to a program that is executed and not followed, and takes them back
// when that failed.
void rlimits_give(void);
void rlimits_take_back(void);

// What to do when there is no memory for the engine, to be appended to a message; or "".
const char *rlimits_advice(void);

#endif
