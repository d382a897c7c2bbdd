// The neutral model of a heap's history. Every source (a running target, a recording) writes it,
// and every report reads it.
//
// Words:
//   block     a piece of heap memory from its allocation to its release. Its number counts the
//             allocations of the run; a resize keeps it
//   capacity  what Valgrind's allocator would have reserved for the block: its size rounded up to
//             16; a block that shrinks, or grows within its capacity, keeps it
//   stack     where something was allocated: a small number, 0 for unknown. A source sends its
//             return addresses, innermost first, once, before or after it first uses the number
//   thread    a small number from 1 on; a source sends its system number when it starts
//   event     an allocation, a release or a resize, in the order in which they happened
//   region    memory that the program itself mapped, or got by brk, but not what the allocator maps
//             for the heap. Numbered from 1 on; it may be unmapped piece by piece
//   sample    what the kernel reports about the whole process at one time
//   mark      a request of the program: a point in time, the begin or end of a scope
//   moment    what only translated code knows about the process: instructions, stacks
//   merged    an event that is one of many in a step of time whose order is lost (--max-size). The
//             set of live blocks is exact only at the end of a step. A skipped event that is not
//             merged marks it
//
// A source calls the functions of its sinks; a sink keeps what it needs. Supervisor context.
#ifndef QUERN_PROFILE_HEAP_H
#define QUERN_PROFILE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEAP_FRAMES_MAX 256
#define HEAP_SIZE_MAX   (1ull << 56) // of a block; a larger size is an error
#define HEAP_UNKNOWN    UINT64_MAX

struct heap_block {
    uint64_t number;
    uint64_t size; // as requested
    uint64_t capacity;
    uint64_t time; // of its allocation
    uint32_t stack;
    uint32_t thread; // that allocated it
    uint32_t marks;  // for the sink's own use; kept over resizes
    uint32_t place;  // for the writer of a recording; kept likewise
};

// HEAP_SKIPPED is an event that a filter between source and sink has left out: it has no blocks.
enum heap_kind { HEAP_ALLOCATED, HEAP_FREED, HEAP_RESIZED, HEAP_SKIPPED };

struct heap_event {
    enum heap_kind kind;
    uint32_t thread;          // where it happened
    uint64_t time;            // nanoseconds since recording began
    struct heap_block before; // of a release or resize
    struct heap_block *block; // of an allocation or resize: as it is now; marks may be changed
    bool is_merged;
    bool is_temporary; // for a merged release: it directly followed the allocation
};

// What merged events lack. Add it to the sums of the stack and of the thread that allocated the
// blocks. Numbers may be negative.
struct heap_correction {
    uint32_t stack, thread;
    int64_t temporary, resized, bytes;
};

enum heap_region_kind { HEAP_REGION_ANONYMOUS, HEAP_REGION_FILE, HEAP_REGION_BREAK };
#define HEAP_REGION_KINDS 3

// A region is mapped, or a part of it is unmapped.
struct heap_region {
    bool is_mapped; // false: unmapped
    enum heap_region_kind kind;
    uint64_t number;
    uint64_t bytes;
    uint64_t time;
    uint32_t thread;
    uint32_t stack; // where it was mapped
};

struct heap_sample {
    uint64_t time;
    uint64_t resident;  // bytes in memory
    uint64_t anonymous; // of these, private memory of no file; HEAP_UNKNOWN: not reported
    uint64_t minor_faults, major_faults; // since the process began
};

enum heap_mark_kind {
    HEAP_MARK_POINT,
    HEAP_MARK_SCOPE_BEGAN,
    HEAP_MARK_SCOPE_ENDED, // the thread's latest
    HEAP_MARK_SNAPSHOT,    // requested here
};
#define HEAP_MARK_KINDS 4
#define HEAP_MARK_NAME  64 // bytes at most

struct heap_mark {
    enum heap_mark_kind kind;
    uint32_t thread;
    uint64_t time;
    const char *name; // empty at the end of a scope
};

// What is known of a thread beside its events. Sources report that a thread ran now and then only.
enum heap_thread_state { HEAP_THREAD_RAN, HEAP_THREAD_ENDED };
#define HEAP_THREAD_STATES 2

struct heap_moment {
    uint64_t time;
    uint64_t instructions; // executed so far
    uint64_t stacks;       // bytes of all threads' stacks
    bool falls;            // a stack is about to shrink
};

// A part of a file in the target's memory. The fields that distinguish the file from a later one at
// the same path are 0 where unknown.
struct heap_mapping {
    uint64_t start, end, offset;
    uint64_t device, inode, size, changed_seconds;
    uint32_t changed_nanoseconds;
    const char *path;
};

// Code in no file: a runtime has generated it.
struct heap_code {
    uint64_t start, end;
    const char *name;
    const char *file; // NULL: not known
    uint32_t line;
};

// The holder of blocks that a search for leaks found lost.
#define HEAP_HELD_BY_NOBODY "Nothing points to these blocks any more: they are lost."

struct heap_sink {
    void *context;
    // Any of these may be NULL.
    void (*event)(void *context, const struct heap_event *event);
    void (*stack)(void *context, uint32_t id, const uint64_t *pcs, size_t count, bool truncated);
    void (*thread)(void *context, uint32_t thread, int tid);
    // A thread has got a new name.
    void (*name)(void *context, uint32_t thread, const char *name);
    void (*state)(void *context, uint32_t thread, enum heap_thread_state state, uint64_t time);
    void (*mapping)(void *context, const struct heap_mapping *mapping);
    void (*region)(void *context, const struct heap_region *region);
    void (*sample)(void *context, const struct heap_sample *sample);
    void (*mark)(void *context, const struct heap_mark *mark);
    // Valid for the events that follow.
    void (*moment)(void *context, const struct heap_moment *moment);
    void (*corrected)(void *context, const struct heap_correction *correction);
    // A text that says what holds most unfreed blocks of a stack. Recordings only.
    void (*held)(void *context, uint32_t stack, const char *holder);
    // Names for addresses in no mapping. Recordings only.
    void (*code)(void *context, const struct heap_code *code);
    // Called for each unfreed block before the end. Recordings only.
    void (*left)(void *context, const struct heap_block *block, uint64_t time);
    // The last call; `time` as in events.
    void (*end)(void *context, uint64_t time);
};

static inline uint64_t heap_rounded(uint64_t size) {
    return (size + 15) & ~15ull;
}

// The capacity of a block after a resize.
static inline uint64_t heap_resized(uint64_t capacity, uint64_t size) {
    return size > capacity ? heap_rounded(size) : capacity;
}

#endif
