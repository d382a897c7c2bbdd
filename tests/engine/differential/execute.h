// Runs the code of a form in a given state and records the outcome.
//
// Between entering and leaving a form the thread's fs base may be the form's: what runs then (the
// signal handler included) uses no thread-local storage.
#ifndef DIFFERENTIAL_EXECUTE_H
#define DIFFERENTIAL_EXECUTE_H

#include "state.h"

// Signal handlers and the context page. Call once after memory_map and state_init.
void execute_init(void);

// Runs the form at `entry` in the state at CONTEXT_IN; the outcome is at CONTEXT_OUT.
void execute(const struct form *form, uint64_t entry);

#endif
