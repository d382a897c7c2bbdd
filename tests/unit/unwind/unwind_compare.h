// Walks a stack with the unwinder and with libgcc's, and compares them frame by frame.
// Shared by the unwind tests; plain C that a C++ compiler accepts, too.
#ifndef QUERN_TESTS_UNWIND_COMPARE_H
#define QUERN_TESTS_UNWIND_COMPARE_H

#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#ifdef __cplusplus
extern "C" {
#endif

// Opens the space with all modules of the process. Again after dlopen or dlclose.
void compare_setup(void);

// Compares the walks from the caller on. Counts a difference, and prints the first ones.
void compare_here(void);

// Compares the walks from the place that a signal interrupted; called by its handler. libgcc starts
// in the handler and passes through the signal frame.
void compare_interrupted(const ucontext_t *context);

// What was compared since the last call, how deep the deepest walk was, and how many walks reached
// the bottom of the stack where libgcc's ended at once for want of unwind information.
struct compare_result {
    long walks, differences, deepest, beyond;
};
struct compare_result compare_result(void);

// The walk alone, from a place that a signal interrupted.
size_t walk_interrupted(const ucontext_t *context, uint64_t *pcs, size_t max, int *end);

// The same with nothing but a copy of the stack, which begins at the stack pointer.
size_t walk_copied(const ucontext_t *context, uint64_t *pcs, size_t max, int *end);

// Frames found by frame pointer so far.
long walk_guessed(void);

#ifdef __cplusplus
}
#endif
#endif
