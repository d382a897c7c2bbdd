// Frames of an interpreter, behind the native ones of a stack.
#include <dlfcn.h>
#include <string.h>

#include "python/python.h"
#include "recorder/recorder.h"
#include "wire/wire_target.h"

// Code that the supervisor has been told of, by number. A number that takes the place of another is
// described again when that one comes back.
#define CODES_KNOWN 16384
static _Atomic uint64_t *codes;
static bool are_wanted; // there are frames to be read

PER_THREAD struct recorder_thread *describing;

void interpreters_start(void) {
    enum python_state state;
    are_wanted = false;
    if (!wire_option_yes("python-stacks"))
        return;
    uint32_t version = python_find(&state);
    // What says that there is none is freed now, and not by the program's next call of dlerror.
    dlerror();
    dlerror();
    atomic_store(&recorder_area->python_state, state);
    atomic_store(&recorder_area->python, version);
    if (!version || state != PYTHON_UNSEEN)
        return;
    // Whoever attaches again has been told of no code yet.
    if (codes)
        memset((void *)codes, 0, CODES_KNOWN * sizeof *codes);
    else
        codes = recorder_map_private(CODES_KNOWN * sizeof *codes);
    are_wanted = codes != NULL;
}

void interpreters_after_fork(void) {
    if (codes)
        recorder_unmap_private(codes, CODES_KNOWN * sizeof *codes);
    codes = NULL;
    interpreters_start();
}

bool interpreters_found(void) {
    return are_wanted;
}

static void describe(uintptr_t code, uint64_t number) {
    _Atomic uint64_t *known = &codes[number % CODES_KNOWN];
    struct recorder_thread *thread = describing;
    if (atomic_load_explicit(known, memory_order_acquire) == number)
        return;
    size_t size =
        python_describe(code, number, (struct python_code *)thread->code, sizeof thread->code);
    if (!size)
        return;
    record_code(thread, thread->code, size);
    atomic_store_explicit(known, number, memory_order_release);
}

size_t interpreters_frames(struct recorder_thread *thread, struct python_frame *frames) {
    describing = thread;
    return python_frames(frames, WIRE_HEAP_PYTHON_FRAMES, describe);
}
