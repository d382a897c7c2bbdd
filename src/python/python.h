// The frames of CPython, versions 3.11 to 3.13, read by the thread that runs them.
//
// The interpreter keeps its frames apart from the stack of C. From 3.11 on, one call of
// _PyEval_EvalFrameDefault runs several of them: a *segment*, whose outermost frame is its *entry*.
// The offsets below are those of the published headers for release builds.
//
// A thread may be interrupted while it changes its frames, so nothing is trusted: memory is read
// only where the kernel has read it first, and whatever is taken for code must have the type of
// code. If anything does not fit, there are no frames for this sample.
//
// python_find is to be called when the process starts. All else may be called in a signal handler.
// Used by what is preloaded: the sampler's agent and the recorder.
#ifndef QUERN_PYTHON_PYTHON_H
#define QUERN_PYTHON_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/wire_python.h"

// Looks for an interpreter in the process. Its version as in Py_Version; 0: there is none. *state
// says whether its frames can be read.
uint32_t python_find(enum python_state *state);
// Drops what is known of memory that can be read. To be called before frames of a thread that was
// interrupted anywhere; one that has called us itself has its frames in order.
void python_forget_memory(void);
// The frames of the calling thread, innermost first. `describe` is called for the code of each,
// before the frame counts. 0: there are none.
size_t python_frames(struct python_frame *frames, size_t max,
                     void (*describe)(uintptr_t code, uint64_t number));
// Writes what the supervisor must know of a code object; the number of bytes, 0: it does not fit.
size_t python_describe(uintptr_t code, uint64_t number, struct python_code *to, size_t room);

#endif
