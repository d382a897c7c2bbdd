// Samples of a natively running target, taken by the kernel (perf_event_open).
//
// A software clock interrupts each thread of the target after equal shares of its CPU time; the
// kernel notes registers and the top of the stack in a ring per CPU, together with what is needed
// to understand them: programs executed, files mapped, processes forked. The rings are the
// supervisor's memory, so nothing is lost when the target is killed. A software clock works in
// virtual machines, where hardware counters often do not.
//
// Records are told in the order of their time across all rings. A record that arrives when its ring
// is full is lost, and counted.
#ifndef QUERN_SUPERVISOR_SAMPLER_H
#define QUERN_SUPERVISOR_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "unwind/unwind.h"

struct sampler_sample {
    int pid, tid;
    bool has_registers; // false: the thread has no user state (it is in exec or exit)
    struct unwind_registers registers;
    const uint8_t *stack; // copied from the stack pointer on
    size_t stack_size;
    bool stack_full; // as much as was asked for: there may be more
};

struct sampler_mapping {
    int pid;
    uint64_t start, end, offset;
    const char *path;
};

struct sampler_sink {
    void *context;
    void (*sample)(void *context, const struct sampler_sample *sample);
    void (*map)(void *context, const struct sampler_mapping *mapping); // of code only
    // A new process, or a thread: then both are the same.
    void (*forked)(void *context, int parent, int child);
    void (*executed)(void *context, int pid, const char *name);
    void (*thread_ended)(void *context, int pid);
};

struct sampler_counts {
    uint64_t lost;     // records that found their ring full
    bool kernel_is_in; // time in the kernel was sampled
};

struct sampler;

// Samples pid from its next exec on, with its threads and descendants. NULL, and in *problem a line
// for the user, to be freed, that says what to do.
struct sampler *sampler_open(pid_t pid, unsigned frequency, size_t stack_bytes,
                             const struct sampler_sink *sink, char **problem);
// Tells what has come. With `last`, everything; else what cannot be overtaken any more.
void sampler_drain(struct sampler *sampler, bool last);
// Nanoseconds between two calls of sampler_drain that keep the rings from filling up.
int64_t sampler_interval(const struct sampler *sampler);
struct sampler_counts sampler_counts(const struct sampler *sampler);
void sampler_close(struct sampler *sampler);

#endif
