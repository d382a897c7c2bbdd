// Reads what a recorded process writes into its shared area (wire/wire_heap.h) and tells it, in the
// order in which it happened, to the sinks of a heap profile.
//
// The area belongs to the target and may hold anything: every index, count and size is checked, and
// a record that cannot be believed ends the reading of that process with `broken` set. Memory is
// bounded by the live blocks (64 bytes each, up to a third of them unused) and the stacks.
#ifndef QUERN_SUPERVISOR_HEAP_SOURCE_H
#define QUERN_SUPERVISOR_HEAP_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/heap/heap.h"
#include "wire/wire_python.h"

#define HEAP_SOURCE_SINKS     3
#define HEAP_SOURCE_RAN_SHARE 16

struct heap_source_counts {
    uint64_t allocated, freed, resized; // events told
    uint64_t unknown;                   // releases of blocks that were never seen
    uint64_t repaired;                  // allocations at an address that was still in use
    uint64_t missed;                    // by the target's own word
};

struct heap_source;

// Takes the descriptor over. NULL: it is not an area that can be used; *problem says why.
struct heap_source *heap_source_open(int fd, uint64_t size, const char **problem);
void heap_source_add(struct heap_source *source, const struct heap_sink *sink);
// What gives a meaning to the frames of an interpreter; to be set before the first drain, and to
// stay.
struct heap_interpreter {
    void *context;
    void (*code)(void *context, const struct python_code *code, size_t size);
    uint64_t (*mark)(void *context, const struct python_frame *frame); // 0: it is not known
    bool (*is_call)(void *context, uint64_t address);
};
void heap_source_interpreter(struct heap_source *source, const struct heap_interpreter *);
// The version of the interpreter that was found, as in Py_Version (0: none), and the enum
// python_state of its frames, by the target's word.
uint32_t heap_source_python(const struct heap_source *source, uint32_t *state);
void heap_source_mapping(struct heap_source *source, const struct heap_mapping *mapping);
// Takes what can be put in order by now; how many words that were. With `last`, everything: the
// process has ended.
size_t heap_source_drain(struct heap_source *source, bool last);
// What the kernel said of the process after the last drain. The sample's time is not used.
void heap_source_sample(struct heap_source *source, const struct heap_sample *sample);
// Asks for the CPU time of each thread, in any unit (0: not known), and tells the sinks which ones
// have run since they were last told so. They are told seldom, to within 1/HEAP_SOURCE_RAN_SHARE of
// the run.
void heap_source_watch_threads(struct heap_source *source,
                               uint64_t (*cpu_time)(void *context, int tid), void *context);
// Tells the target what it need not tell (wire_heap.h): stacks that make no more than `total`
// bytes, before this many instructions and this time (nanoseconds; UINT64_MAX: whenever).
void heap_source_gate(struct heap_source *source, uint64_t total, uint64_t instructions,
                      uint64_t time);
// Blocks that were there before the recording began (--pid) are looked for while it goes on. Before
// that, call the first of these with true: it notes which blocks are freed meanwhile, and none of
// them is added. With false it forgets them.
void heap_source_note_frees(struct heap_source *source, bool is_noting);
uint32_t heap_source_new_stack(struct heap_source *source, const uint64_t *pcs, size_t count);
// False: the block was known, or is gone.
bool heap_source_add_block(struct heap_source *source, uint64_t address, uint64_t size,
                           uint32_t stack);
// Tells the sinks that it is over.
void heap_source_end(struct heap_source *source);
// Whether the process was about to end when it was last heard of: it ended as the program it was.
bool heap_source_has_ended(const struct heap_source *source);
// A forked child that has become another program.
bool heap_source_is_void(const struct heap_source *source);
struct heap_source_counts heap_source_counts(const struct heap_source *source);
// All blocks that are alive, in no order.
void heap_source_blocks(const struct heap_source *source,
                        void (*block)(void *context, uint64_t address,
                                      const struct heap_block *block),
                        void *context);
// The same, to be changed.
void heap_source_change(struct heap_source *source,
                        void (*change)(void *context, struct heap_block *block), void *context);
// Memory that the program has mapped itself (is_own false), and what the recorder has for its own
// use, by the target's word.
void heap_source_memory(const struct heap_source *source,
                        void (*piece)(void *context, uint64_t start, uint64_t end, bool is_own),
                        void *context);
// Whether the allocator is libc's, by the target's word.
bool heap_source_is_libc(const struct heap_source *source);
// Between these two, which come once, the clock stands still: the process is searched for leaks at
// its end, and the time that takes is not the program's.
void heap_source_halt(struct heap_source *source);
void heap_source_continue(struct heap_source *source);
// Lets a process end that waits for that.
void heap_source_answer(struct heap_source *source);
bool heap_source_broken(const struct heap_source *source);
void heap_source_free(struct heap_source *source);

#endif
