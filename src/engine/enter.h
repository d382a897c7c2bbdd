// Ways between C and the cache, in assembly (enter.S).
//
// Labels delimit the places where a signal handler must know exactly how far the thread has got.
#ifndef QUERN_ENGINE_ENTER_H
#define QUERN_ENGINE_ENTER_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Loads the target's registers from `self` and jumps to self->entry. Returns an EXIT_* reason when
// the cache has been left, with the target's registers in `self` again.
uint32_t cache_enter(void);
// The same without a look at what is pending, to go on in the middle of a block.
uint32_t cache_resume(void);
// Between these two the target's registers are being loaded: single-step through it.
extern const char cache_enter_begin[], cache_enter_end[];
// Where exits of the cache go: saves everything and returns from cache_enter.
extern const char cache_leave[];
// From C that was called in the middle of a block with general registers saved: leaves the cache
// for the signal that has been raised.
__attribute__((noreturn)) void cache_abandon(void);
// Where a signal handler sends the thread after it has saved the target's state itself.
extern const char cache_leave_saved[];

// A system call on the target's behalf that a signal may interrupt: not begun if something is
// pending. Returns the kernel's result, or SYSCALL_NOT_BEGUN.
#define SYSCALL_NOT_BEGUN (-0x51517151l)
long target_syscall(long number, const uint64_t arguments[6]);
// [begin, end): the call has not been made; at end and after, it has.
extern const char target_syscall_begin[], target_syscall_end[], target_syscall_abort[];

// Copies between the engine and target memory that may not be there. Returns 0 or -EFAULT, and then
// self->guarded_fault says what happened.
long copy_guarded(void *to, const void *from, size_t size);
extern const char copy_guarded_begin[], copy_guarded_end[], copy_guarded_fault[];

// Calls fn(argument). False: it touched target memory that is not there, or not in that way, and
// went no further; self->guarded_fault says what happened. General registers only.
bool call_guarded(void (*fn)(void *), void *argument);
extern const char call_guarded_fault[];
// Called by fn: goes no further.
__attribute__((noreturn)) void call_guarded_abandon(void);

// clone(2) for a child that shares memory: the child calls fn(argument) on the given stack.
// pidfd goes where clone takes the place for the parent's copy of the tid, or of a CLONE_PIDFD.
// child_tid is where CLONE_CHILD_CLEARTID writes.
long clone_vm(unsigned long flags, void *stack, void (*fn)(void *), void *argument, void *pidfd,
              uint32_t *child_tid);

// The engine's own signal handler: clears flags that C code must not meet, then host_signal.
extern const char host_signal_entry[];
void host_signal(int number, siginfo_t *, void *context); // signal/host.c
// Return from it.
extern const char host_sigreturn[];
// Becomes what the kernel's signal frame (without its return address) describes.
__attribute__((noreturn)) void become_context(const void *frame);

#endif
