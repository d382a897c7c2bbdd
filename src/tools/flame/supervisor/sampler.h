// Samples of a natively running target, in one of two ways.
//
//   perf    The kernel takes them (perf_event_open): a software clock interrupts each thread after
//           equal shares of its CPU time; registers and the top of the stack are noted in a ring
//           per CPU, together with what is needed to understand them: programs executed, files
//           mapped, processes forked. A software clock works in virtual machines, where hardware
//           counters often do not. Nothing is preloaded, and any program can be sampled.
//   timers  The target takes them itself, with a library preloaded (src/agent): threads have timers
//           of their CPU time. For dynamically linked programs where perf is not permitted. The
//           kernel looks after such timers when its clock ticks (mostly 250 times a second): a
//           sample stands for as many periods as have passed.
//
// In both cases the samples are in the supervisor's memory, so nothing is lost when the target is
// killed. Records are delivered in the order of their time. A record that finds no room is lost,
// and counted.
#ifndef QUERN_SUPERVISOR_SAMPLER_H
#define QUERN_SUPERVISOR_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "supervisor/tool.h"
#include "wire/wire_samples.h"

enum flame_sampler { FLAME_ANY, FLAME_PERF, FLAME_TIMERS };

struct sampler_sample {
    int pid, tid;
    bool left; // the thread leaves its CPU here; it is no sample of CPU time
    uint64_t time;
    uint64_t periods;   // it stands for
    bool has_registers; // false: the thread has no user state (it is in exec or exit)
    struct unwind_registers registers;
    const uint8_t *stack; // copied from the stack pointer on
    size_t stack_size;
    // Return addresses in the kernel, innermost first; 0: the thread was not in it, or they were
    // not asked for.
    const uint64_t *kernel;
    size_t kernel_count;
    // Frames of an interpreter, innermost first, by timers only.
    const struct python_frame *frames;
    size_t frame_count;
    bool stack_full; // as much as was asked for: there may be more
};

struct sampler_mapping {
    int pid;
    uint64_t start, end, offset;
    const char *path;
};

struct sampler_sink {
    void *context;
    // Whether samples of a process are needed. Those of others may be left out.
    bool (*wants)(void *context, int pid);
    void (*sample)(void *context, const struct sampler_sample *sample);
    void (*map)(void *context, const struct sampler_mapping *mapping); // of code only
    // Describes what frames of an interpreter refer to.
    void (*code)(void *context, const struct python_code *code, size_t size);
    // A new process, or a thread: then both are the same.
    void (*forked)(void *context, int parent, int child);
    void (*executed)(void *context, int pid, const char *name);
    void (*thread_ended)(void *context, int pid);
    // With off_cpu: after the sample that says that it left, or when it is back.
    void (*switched)(void *context, int tid, uint64_t time, bool back, bool displaced);
};

struct sampler_settings {
    enum flame_sampler kind;
    unsigned frequency;
    size_t stack_bytes;
    bool without_kernel; // perf only: time in the kernel does not count
    bool kernel_stacks;  // perf only: with the kernel's part of stacks, where permitted
    bool off_cpu;        // perf only: report when threads leave their CPUs and come back
    bool interpreters;   // timers only: with the frames of interpreters
    bool children;       // timers only: executed programs sample themselves, too
    const char *agent;   // path of quern-sampler.so
    bool is_static;      // the program: nothing can be preloaded
};

struct sampler_counts {
    uint64_t lost;      // records that found no room
    bool kernel_is_in;  // time in the kernel was sampled
    bool kernel_stacks; // the kernel's part of stacks as well
    bool by_timers;
    uint64_t taken;        // samples, by timers
    bool never_begun;      // by timers: the agent was not loaded
    uint32_t python;       // by timers: version of the interpreter, as in Py_Version; 0: none
    uint32_t python_state; // enum python_state, of that interpreter
    const char *cause;     // why not by perf; NULL: it was asked for so
};

struct sampler;

// Chooses the way, before the target is forked. NULL, and in *problem a line for the user, to be
// freed, that says what to do.
struct sampler *sampler_new(const struct sampler_settings *settings, char **problem);
// In the forked child, before it executes.
void sampler_enter(const struct sampler *sampler);
// Samples pid from its next exec on, with its threads and descendants. False after as above.
bool sampler_open(struct sampler *sampler, pid_t pid, const struct sampler_sink *sink,
                  char **problem);
// Switches sampling of CPU time on or off. It is on at first. Waits are reported in any case.
void sampler_switch(struct sampler *sampler, bool on);
// Delivers records. With `last`, all of them; otherwise those that no older one can follow.
void sampler_drain(struct sampler *sampler, bool last);
// Nanoseconds between two calls of sampler_drain that keep room for samples.
int64_t sampler_interval(const struct sampler *sampler);
struct sampler_counts sampler_counts(const struct sampler *sampler);
void sampler_close(struct sampler *sampler);

#endif
