// The recorder: a library preloaded into a target that runs natively. It sees every call of the
// malloc family and of operator new and delete, and reports it to the supervisor through shared
// memory (wire/wire_heap.h).
//
// How it works:
//   - interpose.c and operators.c replace the allocator's functions. They call the real function
//   and
//     pass the event to record.c, which writes it into the ring of the calling thread.
//   - families.c diverts the functions of allocators that are called past these; code.c changes the
//     code.
//   - regions.c replaces the functions that map memory, and those that name a thread.
//   - requests.c serves the requests of the program itself.
//   - stacks.c walks the stack of an allocation and finds its number in a table of all known
//   stacks.
//     It sends only new stacks to the supervisor.
//   - interpreters.c adds the frames of CPython to a stack.
//   - modules.c tells the unwinder which modules are loaded.
//   - start.c sets all this up.
//   - attached.c does so in a process that runs already: the library comes late, nothing is
//     preloaded, and libc's allocator is diverted as those of families.c are.
//
// Rules for everything in this folder: it runs inside the target, at any moment of its life.
//   - No allocation, no stdio, no lock that a signal handler or a forked child could find taken:
//     the code only tries locks, for a bounded time.
//   - A function that the target did not mean to call preserves errno.
//   - After fork, the child finds `*recorder_active` zero (the kernel wipes the page). It never
//     touches the parent's rings, which it does not have mapped.
//
// Words: an *ended* thread is one whose last destructor has run. A *nested* event happens in a
// signal handler that interrupted the recorder. Events of both kinds go through the shared ring.
#ifndef QUERN_RECORDER_RECORDER_H
#define QUERN_RECORDER_RECORDER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "unwind/unwind.h"
#include "wire/wire_attach.h"
#include "wire/wire_heap.h"

#define EXPORT      __attribute__((visibility("default")))
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
// Thread-local storage that never allocates: the library is there when the program starts.
#define PER_THREAD static __thread __attribute__((tls_model("initial-exec")))

// In a replacement function: its frame, that is the caller's rbp and then the return address.
#define RECORDER_FRAME ((const uint64_t *)__builtin_frame_address(0))

// Maximum of this library's own frames at the inner end of a stack.
#define RECORDER_FRAMES 8

// The data of a recording thread. Made once per ring and reused by later threads.
struct recorder_thread {
    struct wire_heap_ring *ring;
    uint64_t limit;   // words that may be written before `head` must be read again
    uint64_t busy;    // stack pointer of the event being recorded; 0: none
    uint64_t unknown; // page of code outside all modules for which a search was in vain
    // The thread's stack; zero until looked up. Other stacks are read with system calls that cannot
    // fault.
    uint64_t stack_low, stack_high;
    uint32_t index;
    int tid;
    uint32_t rounds; // number of rounds of the thread's destructors
    bool resizing;
    bool is_over; // its thread has ended
    pthread_t handle;
    uint64_t pcs[WIRE_HEAP_FRAMES + RECORDER_FRAMES];
    // The stack of the last event, and its number; 0: none. With an interpreter in the program, its
    // frames stand behind the pcs.
    uint32_t last_stack;
    bool last_truncated;
    size_t last_count, last_frames;
    uint64_t last_words[WIRE_HEAP_STACK_WORDS];
    struct unwind_thread unwind;
    uint64_t words[WIRE_HEAP_STACK_WORDS];              // of the stack in hand, the same way
    _Alignas(uint64_t) uint8_t code[PYTHON_CODE_BYTES]; // that is being described
};

// ---- start.c ----

// The allocator's own functions.
struct recorder_next {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    void *(*memalign)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
    size_t (*malloc_usable_size)(void *);
    int (*dlclose)(void *);
    void *(*mmap)(void *, size_t, int, int, int, off_t);
    int (*munmap)(void *, size_t);
    void *(*mremap)(void *, size_t, size_t, int, void *);
    int (*brk)(void *);
    void *(*sbrk)(intptr_t);
    int (*setname)(pthread_t, const char *);
    int (*prctl)(int, unsigned long, unsigned long, unsigned long, unsigned long);
    void (*exit)(int);
};
extern struct recorder_next recorder_next;
// Not zero while this process is recorded. Zero in a forked child.
extern const volatile uint32_t *recorder_active;
// The same for the preloaded functions of allocators.
extern const volatile uint32_t *recorder_preloaded;
extern struct wire_heap_header *recorder_area;
extern int recorder_depth; // maximum of recorded frames

// Finds the real functions and starts recording if requested. False while it still searches the
// functions: the caller is then the dynamic linker or this library itself, and recorder_early must
// serve it.
bool recorder_ready(void);
// The same without the start: an allocator that is linked into the program may be the caller.
bool recorder_resolved(void);
// Memory for these callers; it is never freed.
void *recorder_early(size_t size, size_t alignment);
bool recorder_is_early(const void *block);
// The address of a ring in this process; NULL: it cannot be mapped.
struct wire_heap_ring *recorder_map_ring(uint32_t index);
void *recorder_map_private(size_t size);
void recorder_unmap_private(void *memory, size_t size);
// Whether the supervisor still reads.
bool recorder_is_heard(void);
// Before the process ends: waits until the supervisor has searched for leaks, if requested.
void recorder_ending(void);
// In a process that runs (attached.c). NULL, or why it cannot be recorded. Nothing is recorded
// before the word at *active becomes 1.
const char *recorder_start_attached(int wire, int config, const volatile uint32_t **active);
// Recording is over; whoever waits for room in a ring goes on.
void recorder_stopped(void);
// Nobody reads any more: gives the memory back.
void recorder_end_attached(void);
// Arranges that record_thread_ended is called when this thread ends.
void recorder_watch_end(struct recorder_thread *thread);

static inline bool recorder_on(void) {
    return *recorder_active != 0;
}

static inline bool recorder_preloaded_on(void) {
    return *recorder_preloaded != 0;
}

// ---- record.c ----

// `frame` is RECORDER_FRAME of the function that the program has called. NULL: walk the stack from
// here.
void record_allocated(const void *block, size_t size, const uint64_t *frame);
void record_freed(const void *block);
// Around the real realloc; `began` is the result of the first function. `old_usable` is only needed
// when the resize failed.
bool record_resize_began(const void *block);
void record_resize_ended(bool began, const void *old, size_t old_usable, const void *block,
                         size_t size, const uint64_t *frame);
// Instead of record_resize_ended: the block was freed.
void record_resize_released(bool began);
// Around the real operator delete: records the release, and prevents the free inside from recording
// it again. Pass the result of the first function to the second.
const void *record_delete_began(const void *block);
void record_delete_ended(const void *outer);
bool record_is_deleting(const void *block);
// The program has mapped memory itself, or is about to unmap memory. `kind` is enum
// wire_heap_region.
void record_mapped(const void *address, size_t size, unsigned kind);
void record_unmapped(const void *address, size_t size);
// The name of a thread, if it has a ring.
void record_name(pthread_t thread, const char *name);
// Records what the kernel reports about this process now.
void record_sample(void);
// Record a mark of the program (enum wire_heap_mark); answer its question with WIRE_HEAP_ANSWERS
// words. False: there is no answer.
void record_mark(unsigned kind, const char *name);
bool record_ask(uint64_t *answers);
// A block serves a custom allocator of the program.
void record_chunk(const void *block, size_t size);
// Sends a new stack to the supervisor: pcs, and behind them frames of an interpreter.
void record_stack(struct recorder_thread *thread, uint32_t id, const uint64_t *words, size_t count,
                  bool truncated, size_t frames);
// Sends a description of an interpreter's code.
void record_code(struct recorder_thread *thread, const void *code, size_t size);
// Gives the ring back; called by the thread itself.
void record_thread_ended(struct recorder_thread *thread);
// For a process that is attached to again: its threads have rings already, which are empty now.
void record_again(void);
// For a forked child that is recorded too: it has no rings and one thread.
void record_after_fork(void);
// The block that the innermost allocation of this thread recorded last, inverted; see operators.c.
uint64_t *record_latest(void);

// ---- stacks.c ----

// The number of the caller's stack; 0: the table of stacks is full. `frame` as for
// record_allocated.
uint32_t stacks_here(struct recorder_thread *thread, const uint64_t *frame);

// ---- interpreters.c ----

// Finds an interpreter in the program, if its frames are wanted.
void interpreters_start(void);
void interpreters_after_fork(void);
bool interpreters_found(void);
// The frames of the calling thread, at most WIRE_HEAP_PYTHON_FRAMES, innermost first.
size_t interpreters_frames(struct recorder_thread *thread, struct python_frame *frames);

// ---- requests.c ----

// Handles the call of prctl if it was meant for the recorder. False: it was not.
bool requests_link(int option, unsigned long place);

// ---- families.c ----

// Finds allocators that the preloaded functions do not stand before, and diverts their functions.
// After modules_start, before anything is recorded.
void families_start(void);
// The same for a module that was loaded later. One whose code may be running already is left alone.
struct dl_phdr_info;
void families_meet(struct dl_phdr_info *info, bool is_loading);
// The same for a process that runs, and with libc's functions: what is to be written so that they
// are diverted.
const struct wire_attach_patch *families_attach(unsigned *count);
// Lets these allocators initialise themselves. Only where none of them can be the caller.
void families_wake_up(void);
bool families_found(void);
// Whether the functions that the preloaded ones call are diverted: these record then, not those.
bool families_is_next(void);
// Whether the caller was called by such a function: what it maps is the allocator's own.
bool families_is_inside(void);

// ---- modules.c ----

extern struct unwind_space modules_space;

bool modules_start(void);
// Looks for loaded and unloaded modules. True if there are any. Does nothing while another thread
// looks.
bool modules_refresh(void);
// The same, while the dynamic linker allocates: code of a module that is new now has not run yet.
void modules_loading(void);
// Tells a supervisor that is new what is loaded.
void modules_tell(void);
// For a forked child that is recorded too.
void modules_after_fork(void);
// Whether a pc is in this library.
bool modules_is_own(uint64_t pc);
// Whether a pc is in the library that contains the real malloc.
bool modules_is_allocator(uint64_t pc);
// Whether that library is libc.
bool modules_allocator_is_libc(void);
// The code of the dynamic linker. Its first function has no unwind information, so stacks of calls
// before main end there.
extern struct modules_code { uint64_t start, end; } modules_linker;
static inline bool modules_is_linker(uint64_t pc) {
    return pc >= modules_linker.start && pc < modules_linker.end;
}
// The mapping around an address; false: none.
bool modules_mapping(uint64_t address, uint64_t *low, uint64_t *high, bool *is_stack);

#endif
