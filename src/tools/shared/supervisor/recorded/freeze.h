// Holding a process still: all its threads are stopped as a debugger stops them, their registers
// are read, and they go on as if nothing had happened. A system call that waits is taken up again
// by the kernel, but for those that end with EINTR for a debugger too (epoll_wait, for one).
//
// The process must be a descendant, or tracing it must be permitted otherwise. Ends of processes
// are not taken away from whoever waits for them. Supervisor context.
#ifndef QUERN_SUPERVISOR_FREEZE_H
#define QUERN_SUPERVISOR_FREEZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FREEZE_REGISTERS 16

struct freeze_thread {
    int tid;
    bool is_first; // its end is the process's
    int signal;    // that was about to reach it
    bool stopped;  // else it did not stop in time; nothing below is known
    uint64_t stack_pointer, thread_pointer;
    uint64_t registers[FREEZE_REGISTERS];
};

struct freeze {
    struct freeze_thread *threads;
    size_t count;
};

// False with errno: the process could not be held; nothing has changed.
bool freeze_begin(struct freeze *freeze, int pid);
void freeze_end(struct freeze *freeze);

#endif
