// Stops all threads of a process as a debugger does, reads their registers, and lets them continue.
// The kernel restarts most system calls that wait. Others end with EINTR whenever the thread is
// stopped (epoll_wait, for example): freeze_begin makes them start again, with their whole timeout,
// unless a signal is pending that ends them anyway.
//
// The process must be a descendant, or tracing it must be permitted otherwise. Other processes that
// wait for its end still see it. Supervisor context.
#ifndef QUERN_ATTACH_FREEZE_H
#define QUERN_ATTACH_FREEZE_H

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
    int policy, priority; // with which this thread was scheduled before
    uint64_t began;       // when the first was asked to stop (base/clock.h)
};

// In between, this thread runs before all others, as far as that is permitted: the threads that are
// let go first would keep it from letting the others go.
//
// False with errno: the process could not be held; nothing has changed.
bool freeze_begin(struct freeze *freeze, int pid);
// For how many nanoseconds the process stood still.
uint64_t freeze_end(struct freeze *freeze);

#endif
