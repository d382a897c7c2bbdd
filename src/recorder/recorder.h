// The recorder: a library preloaded into a target that runs natively. It sees every call of the
// malloc family and of operator new and delete, and tells the supervisor through shared memory
// (wire/wire_heap.h).
//
// How it works: interpose.c and operators.c hold the functions that take the place of the
// allocator's. They call the real one and hand what happened to record.c, which writes it into the
// ring of the calling thread. regions.c stands in for what maps memory, and for what gives a thread
// a name; requests.c answers what the program itself says. Where a block was allocated is a number:
// stacks.c walks the stack, looks it up in a table of all stacks known, and tells the supervisor
// only of new ones. modules.c keeps the unwinder informed of what is loaded. start.c sets all this
// up.
//
// Rules for everything in this folder: it runs inside the target, at any moment of its life.
//   - No allocation, no stdio, no lock that a signal handler or a forked child could find taken:
//     locks here are only ever tried, for a bounded time.
//   - errno is as it was when a function that the target did not mean to call returns.
//   - After fork, the child finds `*recorder_active` zero (the page is wiped by the kernel) and
//     never touches the parent's rings, which it does not even have mapped.
//
// Words: *ended* is a thread whose last destructor has run: what it still frees goes through the
// shared ring. *Nested* is an event in a signal handler that interrupted the recorder: likewise.
#ifndef QUERN_RECORDER_RECORDER_H
#define QUERN_RECORDER_RECORDER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "unwind/unwind.h"
#include "wire/wire_heap.h"

#define EXPORT      __attribute__((visibility("default")))
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
// Thread-local storage that never allocates: the library is there when the program starts.
#define PER_THREAD static __thread __attribute__((tls_model("initial-exec")))

// In a function that stands in for the allocator's: its frame, the caller's rbp and then the return
// address.
#define RECORDER_FRAME ((const uint64_t *)__builtin_frame_address(0))

// Most frames of this library itself at the inner end of a stack.
#define RECORDER_FRAMES 8

// What a thread needs for recording. Made once per ring and used again by later threads.
struct recorder_thread {
    struct wire_heap_ring *ring;
    uint64_t limit;   // words that may be written before `head` must be looked at again
    uint64_t busy;    // stack pointer of the event being recorded; 0: none
    uint64_t unknown; // page of code outside all modules that has been looked for in vain
    // The thread's stack; zero until it is looked up. Other stacks are read with more care.
    uint64_t stack_low, stack_high;
    uint32_t index;
    uint32_t rounds; // of the thread's destructors that have run
    bool resizing;
    pthread_t handle;
    uint64_t pcs[WIRE_HEAP_FRAMES + RECORDER_FRAMES];
    // The stack of the last event, and its number; 0: none.
    uint32_t last_stack;
    bool last_truncated;
    size_t last_count;
    uint64_t last_pcs[WIRE_HEAP_FRAMES];
    struct unwind_thread unwind;
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
extern struct wire_heap_header *recorder_area;
extern int recorder_depth; // frames recorded at most

// Finds the real functions and starts recording if that is wanted. False while the former is still
// going on: the caller is the dynamic linker or this library itself, and is to be served by
// recorder_early.
bool recorder_ready(void);
// Memory for those: never given back.
void *recorder_early(size_t size, size_t alignment);
bool recorder_is_early(const void *block);
// The place of a ring in this process; NULL: cannot be mapped.
struct wire_heap_ring *recorder_map_ring(uint32_t index);
void *recorder_map_private(size_t size);
void recorder_unmap_private(void *memory, size_t size);
// Whether the supervisor is still there to read.
bool recorder_is_heard(void);
// The process is about to end: waits until the supervisor has looked for leaks, if that is wanted.
void recorder_ending(void);
// Remembers to call record_thread_ended when this thread ends.
void recorder_watch_end(struct recorder_thread *thread);

static inline bool recorder_on(void) {
    return *recorder_active != 0;
}

// ---- record.c ----

// `frame` is RECORDER_FRAME of the function that the program has called, or NULL if the stack is to
// be walked from here.
void record_allocated(const void *block, size_t size, const uint64_t *frame);
void record_freed(const void *block);
// Around the real realloc; `began` is what the first one returned. `old_usable` is only needed when
// the block could not be resized.
bool record_resize_began(const void *block);
void record_resize_ended(bool began, const void *old, size_t old_usable, const void *block,
                         size_t size, const uint64_t *frame);
// Instead of record_resize_ended: the block was freed.
void record_resize_released(bool began);
// Around the real operator delete: records the release, and keeps the free inside from doing so
// again. What the first one returned is handed to the second.
const void *record_delete_began(const void *block);
void record_delete_ended(const void *outer);
bool record_is_deleting(const void *block);
// The program has mapped memory itself, or is about to unmap some. `kind` is enum wire_heap_region.
void record_mapped(const void *address, size_t size, unsigned kind);
void record_unmapped(const void *address, size_t size);
// The name of a thread, if it has a ring.
void record_name(pthread_t thread, const char *name);
// What the kernel says of this process now.
void record_sample(void);
// What the program says about itself (enum wire_heap_mark), and what it asks: WIRE_HEAP_ANSWERS
// words. False: there is no answer.
void record_mark(unsigned kind, const char *name);
bool record_ask(uint64_t *answers);
// A block serves an allocator of the program's own.
void record_chunk(const void *block, size_t size);
// A stack is new: tells the supervisor.
void record_stack(struct recorder_thread *thread, uint32_t id, const uint64_t *pcs, size_t count,
                  bool truncated);
// Gives the ring back; called by the thread itself.
void record_thread_ended(struct recorder_thread *thread);
// In a forked child that is to be recorded too: there are no rings and one thread.
void record_after_fork(void);
// The block that the innermost allocation of this thread recorded last, inverted; see operators.c.
uint64_t *record_latest(void);

// ---- stacks.c ----

// The number of the caller's stack; 0 when there is no more room for new ones. `frame` as for
// record_allocated.
uint32_t stacks_here(struct recorder_thread *thread, const uint64_t *frame);

// ---- requests.c ----

// Whether the call of prctl was meant for the recorder; it is done then.
bool requests_link(int option, unsigned long place);

// ---- modules.c ----

extern struct unwind_space modules_space;

bool modules_start(void);
// Looks whether modules have come or gone. True if so. Does nothing while another thread looks.
bool modules_refresh(void);
// In a forked child that is to be recorded too.
void modules_after_fork(void);
// Whether a pc is in this library.
bool modules_is_own(uint64_t pc);
// Whether a pc is in the library that the real malloc is in.
bool modules_is_allocator(uint64_t pc);
// Whether that is libc.
bool modules_allocator_is_libc(void);
// Whether a pc is in the dynamic linker, whose first function has no unwind information: what is
// called before main ends there.
bool modules_is_start(uint64_t pc);
// The mapping around an address; false: none.
bool modules_mapping(uint64_t address, uint64_t *low, uint64_t *high, bool *is_stack);

#endif
