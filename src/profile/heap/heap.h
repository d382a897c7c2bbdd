// The neutral model of a heap's history: what every source (a running target, a recording) tells,
// and every report reads.
//
// Words:
//   block     a piece of heap memory from its allocation to its release. Its number counts the
//             allocations of the run; a resize keeps it
//   capacity  what Valgrind's allocator would have set aside for the block: its size rounded up to
//             16; a block that shrinks, or grows within its capacity, keeps it
//   stack     where something was allocated: a small number, 0 for unknown; its return addresses,
//             innermost first, are told once, before or after the number is first used
//   thread    a small number from 1 on; its system number is told when it starts
//   event     an allocation, a release or a resize, in the order in which they happened
//   region    memory that the program itself mapped, or got by brk: not what the allocator maps to
//             serve the heap. Numbered from 1 on; it may go away piece by piece
//   sample    what the kernel says of the process as a whole at a moment
//   mark      what the program has said about itself: a point in time, the begin or end of a scope
//   moment    what only translated code can tell of the process: instructions, stacks
//   merged    of an event: it is one of many in a step of time whose order is not known any more
//             (--max-size). What is alive is right at the end of a step only, and that is told by
//             an event that is skipped and not merged
//
// A source calls the functions of its sinks; a sink keeps what it needs. Supervisor context.
#ifndef QUERN_PROFILE_HEAP_H
#define QUERN_PROFILE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEAP_FRAMES_MAX 256
#define HEAP_SIZE_MAX   (1ull << 56) // of a block; more is not believed

struct heap_block {
    uint64_t number;
    uint64_t size; // as asked for
    uint64_t capacity;
    uint64_t time; // of its allocation
    uint32_t stack;
    uint32_t thread; // that allocated it
    uint32_t marks;  // a sink's own; kept over resizes
    uint32_t place;  // the writer's of a recording; kept likewise
};

// The last is an event that somebody between source and sink has left out: it has no blocks.
enum heap_kind { HEAP_ALLOCATED, HEAP_FREED, HEAP_RESIZED, HEAP_SKIPPED };

struct heap_event {
    enum heap_kind kind;
    uint32_t thread;          // where it happened
    uint64_t time;            // nanoseconds since recording began
    struct heap_block before; // of a release or resize
    struct heap_block *block; // of an allocation or resize: as it is now; marks may be changed
    bool is_merged;
    bool is_temporary; // of a merged release: it came straight after the allocation
};

// What merged events do not tell, to be added to the sums of a stack and of the thread that has
// allocated the blocks. May be negative.
struct heap_correction {
    uint32_t stack, thread;
    int64_t temporary, resized, bytes;
};

enum heap_region_kind { HEAP_REGION_ANONYMOUS, HEAP_REGION_FILE, HEAP_REGION_BREAK };
#define HEAP_REGION_KINDS 3

// A region comes, or a part of it goes.
struct heap_region {
    bool is_mapped; // false: goes
    enum heap_region_kind kind;
    uint64_t number;
    uint64_t bytes;
    uint64_t time;
    uint32_t thread;
    uint32_t stack; // where it was mapped
};

struct heap_sample {
    uint64_t time;
    uint64_t resident;                   // bytes in memory
    uint64_t minor_faults, major_faults; // since the process began
};

enum heap_mark_kind {
    HEAP_MARK_POINT,
    HEAP_MARK_SCOPE_BEGAN,
    HEAP_MARK_SCOPE_ENDED, // the thread's latest
    HEAP_MARK_SNAPSHOT,    // wanted here
};
#define HEAP_MARK_KINDS 4
#define HEAP_MARK_NAME  64 // bytes at most

struct heap_mark {
    enum heap_mark_kind kind;
    uint32_t thread;
    uint64_t time;
    const char *name; // empty at the end of a scope
};

struct heap_moment {
    uint64_t time;
    uint64_t instructions; // executed so far
    uint64_t stacks;       // bytes of all threads' stacks
    bool falls;            // a stack is about to become smaller
};

// A part of a file in the target's memory. What tells the file from a later one at the same path is
// 0 where it is not known.
struct heap_mapping {
    uint64_t start, end, offset;
    uint64_t device, inode, size, changed_seconds;
    uint32_t changed_nanoseconds;
    const char *path;
};

struct heap_sink {
    void *context;
    // Any of these may be NULL.
    void (*event)(void *context, const struct heap_event *event);
    void (*stack)(void *context, uint32_t id, const uint64_t *pcs, size_t count, bool truncated);
    void (*thread)(void *context, uint32_t thread, int tid);
    // A thread has got a name, or another one.
    void (*name)(void *context, uint32_t thread, const char *name);
    void (*mapping)(void *context, const struct heap_mapping *mapping);
    void (*region)(void *context, const struct heap_region *region);
    void (*sample)(void *context, const struct heap_sample *sample);
    void (*mark)(void *context, const struct heap_mark *mark);
    // Holds for the events that follow.
    void (*moment)(void *context, const struct heap_moment *moment);
    void (*corrected)(void *context, const struct heap_correction *correction);
    // What holds most of the blocks of a stack that were not freed, in words. Recordings only.
    void (*held)(void *context, uint32_t stack, const char *holder);
    // A block that was not freed: told for each of them before the end. Recordings only.
    void (*left)(void *context, const struct heap_block *block, uint64_t time);
    // Nothing more will come; `time` as in events.
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
