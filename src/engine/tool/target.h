// The target's state, memory, threads and stacks.
//
// For inserted calls and hooks about events. Functions that say so may also be called where vector
// registers must be left alone (fast calls, plain hooks).
#ifndef QUERN_ENGINE_TOOL_TARGET_H
#define QUERN_ENGINE_TOOL_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "engine/tool/code.h"

// ---- the calling thread's registers; general registers only ----

// Numbered as instructions encode them: rax rcx rdx rbx rsp rbp rsi rdi r8 … r15.
uint64_t tool_register(unsigned number);
uint64_t *tool_registers(void); // all 16
uint64_t tool_pc(void);
uint64_t tool_flags(void);
int tool_direction(void);           // of string instructions: 1 or -1
uint64_t tool_thread_pointer(void); // fs
uint64_t tool_access_address(const struct tool_access *);
void *tool_thread_state(void); // the tool's own

// Registers as a debugger tells them apart, numbered from 0 within their kind.
enum tool_register_kind {
    TOOL_REGISTER_GENERAL, // in encoding order
    TOOL_REGISTER_FLAGS,
    TOOL_REGISTER_X87,         // physical
    TOOL_REGISTER_VECTOR,      // xmm
    TOOL_REGISTER_VECTOR_HIGH, // what ymm has more
};
// The others may use vector registers.
int tool_thread_number(void);                        // as reports number threads, from 1
bool tool_own_stack(uint64_t *start, uint64_t *end); // that the thread was started on

// Calls fn(argument) from a function that must leave vector registers alone; fn may use them.
void tool_with_vectors(tool_function *fn, void *argument);

// ---- memory ----

// Target memory that may not be there: 0 or -EFAULT.
long tool_read(void *to, uint64_t from, size_t size);
long tool_write(uint64_t to, const void *from, size_t size);
// Calls fn(argument), which may touch target memory freely. False: some of it was not there or not
// writable; fn went no further, and *address says where. fn may be started again after it has
// written to a page that is watched for changes of code. General registers only.
bool tool_try(tool_function *fn, void *argument, uint64_t *address);
// Whether only the engine has memory there. General registers only.
bool tool_is_engines(uint64_t address);
// From a function called by insert_saved_call or inside tool_try: the access under way is to such
// memory. It is not made, and the target gets the signal that it would get natively.
__attribute__((noreturn)) void tool_fault(uint64_t address, bool writes);

struct tool_mapping {
    uint64_t start, end;
    int prot;
    bool is_stack; // the main thread's, or that of a thread that has been created
    bool is_shared;
    bool is_file;
    bool is_module; // of an executable or library
    bool is_brk;
};
// The mapping that contains the address, or else the next one above. False: neither.
bool tool_mapping_at(uint64_t address, struct tool_mapping *);
// Anonymous memory for the target, readable and writable, from the area where its own mappings lie;
// 0: no room. Alignment: a power of two, at least a page. Not from memory hooks.
uint64_t tool_map(size_t size, size_t alignment);
// Whether the target's limits permit this much more memory.
bool tool_may_map(size_t size);
// The same at this very place, not reserved; false: there is something. The limits do not matter.
bool tool_map_at(uint64_t start, size_t size);
void tool_unmap(uint64_t start, size_t size);
// Moves whole pages of such memory, with their shadow, over other such memory. The old place has
// zeros and a shadow of 0 afterwards. False: the kernel cannot, or the target has changed one of
// the two; nothing has happened then.
bool tool_move_pages(uint64_t to, uint64_t from, size_t size);

// ---- threads ----

// Stops all other threads outside translated code. Until they are resumed, the caller must not wait
// for a lock of the engine or the C library that another thread may hold: allocate before.
void tool_stop_threads(void);
void tool_resume_threads(void);
struct tool_thread {
    int id;                    // as reports number threads, from 1
    const uint64_t *registers; // 16, in encoding order
    uint64_t pc, fs_base;
    void *state;
    uint64_t stack_start, stack_end; // 0, 0: not known
};
// The calling thread first; the others must be stopped.
void tool_each_thread(void (*)(const struct tool_thread *, void *), void *argument);
// Finds the thread that was started on the stack around the address, another than the caller, and
// where its stack pointer was a moment ago. It is stopped for that. False: there is none, or the
// answer is not certain.
bool tool_stack_pointer_around(uint64_t address, uint64_t *stack_pointer);

// ---- stacks ----

// The call stack, innermost pc first; returns how many.
size_t tool_stack(uint64_t *pcs, size_t max);
// The same with general registers only; 0: ask tool_stack.
size_t tool_stack_quickly(uint64_t *pcs, size_t max);
// The value (not 0) that the thread has noted for the stack that tool_stack_quickly would give,
// always with the same max; 0: walk the stack. General registers only.
uint32_t tool_stack_recall(void);
void tool_stack_note(const uint64_t *pcs, size_t count, uint32_t value);

// The thread whose stack contains the address, the number of the frame (0: innermost) and its pc.
// Another thread is seen as it was a moment ago. frame -1: not known, or in the red zone below the
// innermost frame, whose pc and end are given then. False: no stack.
struct tool_frame {
    int thread, frame;
    uint64_t pc;
    uint64_t end;  // of the frame: the stack pointer of its caller
    int64_t below; // bytes below the thread's stack pointer, 0: not below, or not known
};
bool tool_frame_of(uint64_t address, struct tool_frame *);

// Frames of the calling thread from the innermost outward to the one that contains the address. A
// frame that calls no other may reach below its stack pointer. Returns how many; 0: none of the
// first `max` contains it.
struct tool_stack_frame {
    uint64_t pc;         // a return address less one, unless the frame is innermost or interrupted
    uint64_t start, end; // from its stack pointer to its caller's
    bool is_handler;     // called by the kernel for a signal
    bool is_trampoline;  // what a handler returns to: its end is the interrupted stack pointer
};
size_t tool_frames_to(uint64_t address, struct tool_stack_frame *frames, size_t max);

#endif
