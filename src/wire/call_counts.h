// The counts of callgrind and cachegrind, in a memory file. The target's process fills the file.
// The supervisor reads it for a requested dump, and when the process has ended, however it ended.
// The file is sparse: every table has room for its maximum, and only the used part takes memory.
//
// Words
//   id        names a run, a site, a repeat or an event at an instruction: counts_id[id]
//   run       a sequence of instructions of which only the last may branch. Its counter says how
//             often it was begun
//   site      an instruction from which other functions may be entered, or left
//   repeat    a string instruction with a rep prefix; its counter has the steps beyond the first
//   event     what is counted: instructions, accesses, misses … The number of times that a run was
//             begun gives its instructions and accesses; all other events have ids
//   function  a piece of code with a symbol, or, without one, code that was called: its first pc
//   context   a function and its recursion level (1, or 2 for all deeper levels, unless options
//             ask for more), whose costs are being counted
//   area      counters of one thread, by id. Area 0 has all contexts of level 1 that run their own
//             function's code, area 1 those of level 2. A context that runs other code (a jump into
//             the middle of another function, or code without symbols that several functions jump
//             to) has its own area, from 4 on, while there are free ones. While collection is off,
//             counts go to COUNTS_OFF_AREA, which nobody reads
//   recurses  a function that has been in a context of level 2. Before that, its costs may be in
//             area 0 or 1, so that the area need not change with every level. COUNTS_MOVED_AREA
//             keeps what area 1 had when the function began to recurse; it belongs to level 1
//   numbered  contexts, if functions are separated by their callers, or by more or fewer levels
//             than two (header.contexts). struct counts_context says whose costs are in which area.
//             The contexts of one function have different areas; different functions share areas.
//             In edges and frames, "area" is then the number of the context. In an edge, "level" is
//             the callee's context, with COUNTS_TO_CONTEXT. No function "recurses"
//   skipped   instructions of PLT entries and of skipped functions. They count for the caller, two
//             areas further on, by the id of the site from which they were reached
//   group     a site and the ids after it: events other than instructions that are skipped there
//   edge      calls from a site in one context to another function; or an indirect jump within one
//             (COUNTS_TO_ADDRESS)
//   branch    with --collect-jumps, a direct jump or a branch. Its counter says how often it was
//             taken; the counters of its runs say how often it was reached
//   frame     a call that has not returned
//
// The reader trusts nothing here: the target may write anywhere in its own process.
#ifndef QUERN_WIRE_CALL_COUNTS_H
#define QUERN_WIRE_CALL_COUNTS_H

#include <stdint.h>

#define COUNTS_MAGIC 0x4c4c4143u

enum {
    COUNTS_IDS = 1 << 21,
    COUNTS_LENGTHS = 1 << 24,
    COUNTS_FUNCTIONS = 1 << 18,
    COUNTS_THREADS = 1 << 9,
    COUNTS_AREAS = 2048, // of a thread
    COUNTS_LEVELS = 2,   // unless contexts are numbered
    COUNTS_CALLERS = 16, // in a context, at most
    COUNTS_CONTEXTS = 1 << 19,
    COUNTS_SKIPPED = 2, // from an area to its skipped one
    COUNTS_MOVED_AREA = COUNTS_AREAS - 8,
    COUNTS_OFF_AREA = COUNTS_AREAS - 4,
    COUNTS_EDGES = 1 << 20,
    COUNTS_FRAMES = (1 << 22) - 2,
};

enum counts_event {
    COUNTS_IR,
    COUNTS_DR,
    COUNTS_DW,
    COUNTS_RARE, // from here on
    COUNTS_I1MR = COUNTS_RARE,
    COUNTS_D1MR,
    COUNTS_D1MW,
    COUNTS_ILMR,
    COUNTS_DLMR,
    COUNTS_DLMW,
    COUNTS_BC,
    COUNTS_BCM,
    COUNTS_BI,
    COUNTS_BIM,
    COUNTS_SYS_COUNT,
    COUNTS_SYS_TIME,
    COUNTS_SYS_CPU_TIME,
    COUNTS_GE,
    COUNTS_ILDMR,
    COUNTS_DLDMR,
    COUNTS_DLDMW,
    COUNTS_ACCOST1,
    COUNTS_SPLOSS1,
    COUNTS_ACCOST2,
    COUNTS_SPLOSS2,
    COUNTS_EVENTS,
};

enum counts_kind {
    COUNTS_RUN,
    COUNTS_REPEAT,
    COUNTS_CALL,
    COUNTS_JUMP,
    COUNTS_EVENT,
    COUNTS_SKIPPED_EVENT, // counts in a site's group
    COUNTS_BRANCH,
};

// In an edge's level: the edge is a jump, and level and function are the halves of its destination.
#define COUNTS_TO_ADDRESS 0x80000000u
#define COUNTS_TO_CONTEXT 0x40000000u

// The length and the accesses of an instruction in a run, in one byte.
static inline unsigned counts_length(uint8_t byte) {
    return byte & 15;
}
static inline unsigned counts_reads(uint8_t byte) {
    return byte >> 4 & 3;
}
static inline unsigned counts_writes(uint8_t byte) {
    return byte >> 6;
}

struct counts_id {
    uint64_t pc;
    uint32_t function;
    uint32_t lengths; // of a run: where its instructions' lengths are; of an event: bytes
                      // concerned, or what the tool notes; of a branch: where it leads, less pc
    uint16_t count;   // of a run: instructions; of an event: which; of a branch: 1 if conditional;
                      // of a jump: 1 if it leads to the PLT
    uint16_t kind;
};

struct counts_area {
    uint32_t function; // 0: each run's own
    uint32_t level;
};

struct counts_context {
    uint32_t function, level;
    uint32_t area;
    uint32_t alone; // 1: no other context has the area; it runs other functions' code
    uint32_t caller_count;
    uint32_t callers[COUNTS_CALLERS]; // functions, the nearest first
};

struct counts_edge {
    uint32_t site, area; // of the caller
    uint32_t function, level;
    uint64_t calls, cost; // cost: instructions; of other events see COUNTS_AT_EDGE_EVENTS
};

struct counts_frame {
    uint64_t sp;             // on entry to the callee: below it, the frame is over; 0: no frame
    uint64_t entered;        // the thread's total then
    uint32_t edge;           // 0: none
    uint32_t callee;         // of a marker: the site noted when the signal came
    uint32_t function, area; // of the caller
    uint32_t marker;         // an interruption by a signal rather than a call
    uint32_t jump;           // of a marker: as `callee`, if a jump
};

struct counts_thread {
    uint32_t edges, areas;
    uint32_t in_use, contexts; // the last context's number
    uint32_t noted; // frames from here on have no totals of rare events on entry yet: they are
                    // the current ones
    struct counts_area area[COUNTS_AREAS];
};

struct counts_cache {
    uint64_t size;
    uint32_t assoc, line;
};

struct counts_header {
    uint32_t magic;
    uint32_t ids, lengths, functions, threads;
    uint32_t incomplete; // 1: a table was full, so counts are missing
    uint32_t answers;    // number of the target's requests that the supervisor has served; a futex
    uint32_t events;     // bit e: event e is counted
    uint32_t collects_jumps;       // 1: branches are there
    uint32_t on;                   // 0: do not count; the supervisor may change it
    uint32_t plain;                // 0: calls take the general way, which notices changes of `on`
    uint32_t time_unit;            // of COUNTS_SYS_TIME: nanoseconds in one
    uint32_t contexts;             // 1: contexts are numbered
    struct counts_cache caches[3]; // I1, D1, LL, if they are simulated
};

// Where everything lies in the file.
#define COUNTS_AT_IDS       0x100000ul
#define COUNTS_AT_LENGTHS   0x4000000ul
#define COUNTS_AT_FUNCTIONS 0x6000000ul // uint64_t, the first pc of each
#define COUNTS_AT_THREADS   0x8000000ul

// Within a thread.
#define COUNTS_AT_RECURSES     0x40000ul // uint8_t, by function: 1 if it recurses
#define COUNTS_AT_EDGES        0x100000ul
#define COUNTS_AT_CONTEXTS     0x3000000ul
#define COUNTS_AT_FRAMES       0x8000000ul  // the first and the last are bounds, not calls
#define COUNTS_AT_EDGE_EVENTS  0x20000000ul // uint64_t [COUNTS_EVENTS] for each edge
#define COUNTS_AT_FRAME_EVENTS 0x30000000ul // the same for each frame: totals on entry
#define COUNTS_AT_COUNTERS     0x80000000ul
#define COUNTS_AREA_SIZE       (8ul * COUNTS_IDS)
#define COUNTS_THREAD_SIZE     (COUNTS_AT_COUNTERS + COUNTS_AREAS * COUNTS_AREA_SIZE)

#define COUNTS_SIZE (COUNTS_AT_THREADS + COUNTS_THREADS * COUNTS_THREAD_SIZE)

_Static_assert(COUNTS_AT_IDS + COUNTS_IDS * sizeof(struct counts_id) <= COUNTS_AT_LENGTHS, "");
_Static_assert(COUNTS_AT_LENGTHS + COUNTS_LENGTHS <= COUNTS_AT_FUNCTIONS, "");
_Static_assert(COUNTS_AT_FUNCTIONS + 8ul * COUNTS_FUNCTIONS <= COUNTS_AT_THREADS, "");
_Static_assert(sizeof(struct counts_thread) <= COUNTS_AT_RECURSES, "");
_Static_assert(COUNTS_AT_RECURSES + COUNTS_FUNCTIONS <= COUNTS_AT_EDGES, "");
_Static_assert(COUNTS_AT_EDGES + COUNTS_EDGES * sizeof(struct counts_edge) <= COUNTS_AT_CONTEXTS,
               "");
_Static_assert(COUNTS_AT_CONTEXTS + COUNTS_CONTEXTS * sizeof(struct counts_context) <=
                   COUNTS_AT_FRAMES,
               "");
_Static_assert(COUNTS_AT_FRAMES + (COUNTS_FRAMES + 2ul) * sizeof(struct counts_frame) <=
                   COUNTS_AT_EDGE_EVENTS,
               "");
_Static_assert(COUNTS_AT_EDGE_EVENTS + 8ul * COUNTS_EVENTS * COUNTS_EDGES <= COUNTS_AT_FRAME_EVENTS,
               "");
_Static_assert(COUNTS_AT_FRAME_EVENTS + 8ul * COUNTS_EVENTS * COUNTS_FRAMES <= COUNTS_AT_COUNTERS,
               "");

#endif
