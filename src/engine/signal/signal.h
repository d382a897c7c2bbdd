// Signals: the host's arrive here, the target's are made here.
//
// The host's dispositions mirror the target's (default, ignored, restarting …), so that the kernel
// itself gives stop, continue, child and restart semantics. Only where the target has a handler, or
// where the default is to end the process, the engine's own handler is installed (host.c). It
//   - finds a thread in the engine: notes the signal; the dispatcher delivers it;
//   - finds it in the cache: takes it out with the target's exact state, at once where an
//     instruction begins, else after single-stepping to such a place;
//   - finds it about to make a system call: keeps it from beginning, or lets the kernel's restart
//     logic decide and then delivers.
// From then on until the delivery all signals are blocked, so there is never more than one of each
// kind under way in a thread. Delivery (deliver.c) builds the frame that the kernel would have
// built.
//
// Synchronous signals (SIGSEGV …) are never blocked and always handled on the host.
#ifndef QUERN_ENGINE_SIGNAL_H
#define QUERN_ENGINE_SIGNAL_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include "engine/task.h"

// The kernel's form of a handler's registration.
struct kernel_action {
    uint64_t handler, flags, restorer, mask;
};

struct sighand {
    struct kernel_action actions[65];
};

static inline uint64_t signal_bit(int number) {
    return 1ull << (number - 1);
}

#define SYNCHRONOUS_SIGNALS                                                                        \
    (1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1) | 1ull << (SIGFPE - 1) | 1ull << (SIGILL - 1) |  \
     1ull << (SIGTRAP - 1) | 1ull << (SIGSYS - 1))

// host.c
void signal_init_process(void); // takes over the dispositions and the mask that exec left
void signal_init_thread(void);  // alternate stack for the engine's handler
void signal_mirror(int number); // makes the host's disposition fit the target's
// The target's mask becomes this one, and the host's follows.
void signal_set_mask(uint64_t mask);
void signal_block_all(void);
void signal_restore_mask(void); // the host's, from self->sigmask
// The disposition and mask that a program started by exec expects.
void signal_prepare_exec(void);

// deliver.c
void signal_deliver_pending(void); // what self->queued* hold
// Raises a synchronous signal at the current pc.
void signal_raise(int number, int code, uint64_t address, uint64_t trap, uint64_t error);
void signal_return(void); // rt_sigreturn
// Ends the process by a signal's default action.
__attribute__((noreturn)) void signal_die(int number, const siginfo_t *info);
extern bool signal_trace;

// actions.c: system calls about signals; results as the kernel's
long signal_action(int number, uint64_t new_action, uint64_t old_action, uint64_t size);
long signal_procmask(int how, uint64_t set, uint64_t old, uint64_t size);
long signal_pending(uint64_t set, uint64_t size);
long signal_altstack(uint64_t new_stack, uint64_t old_stack);
struct sighand *sighand_copy(const struct sighand *);

// The alternate stack, by the kernel's rules: flags are kept as they were given.
#ifndef SS_AUTODISARM
#define SS_AUTODISARM ((int)(1u << 31))
#endif
bool on_altstack(uint64_t sp);
long altstack_set(const stack_t *, uint64_t sp);
void altstack_reset(void);
// Of the default action: is the process ended?
bool signal_default_is_fatal(int number);

#endif
