// The call stack of each thread, followed at run time: which function runs, and where its costs are
// counted. See wire/call_counts.h for the words.
//
// A frame is pushed when a function's first instruction is reached by a call or a jump, and popped
// when the stack pointer is above the place where its return address was. So frames survive tail
// calls, and longjmp ends them.
//
// The functions named event_* are fast calls (engine/tool.h): general registers only, no C library.
#ifndef QUERN_TOOLS_CALLGRIND_EVENTS_H
#define QUERN_TOOLS_CALLGRIND_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/tool.h"
#include "wire/call_counts.h"

// The thread's words: the last site; with simulation, reads and writes; and its instructions so
// far, as the sum of several: additions to one word, one after the other, would wait for each
// other.
enum { WORD_READS, WORD_SITE, WORD_WRITES, WORD_TOTALS = 4, TOTALS = TOOL_WORDS - WORD_TOTALS };
// The low half of WORD_SITE is the last site, the high half the last one that is a jump: if it is
// the same, that is what it is. While a skipped function runs, the low half stays the site that it
// was called from. A jump in code without symbols is noted in the high half alone: where it leads
// is no function's beginning, unless a symbol says so.
enum { SITE_LAST, SITE_JUMP };
// Besides the number in the high half: jumps to what the loader has just bound, and stands for the
// call that led there.
#define SITE_RESOLVES 0x80000000u

enum { EDGE_BUCKETS = 1 << 16, RECENT_EDGES = 1 << 12 };
enum { FIRST_OWN_AREA = 4 };

// What is to happen when a function is entered, and left.
enum {
    FUNCTION_TOGGLES = 1,
    FUNCTION_DUMPS_BEFORE = 2,
    FUNCTION_DUMPS_AFTER = 4,
    FUNCTION_ZEROES_BEFORE = 8,
    FUNCTION_SKIPPED = 16,      // what it does counts at the site that it was called from
    FUNCTION_ENDS_AT_JUMP = 32, // into another function, which is its caller's then
};

struct simulation;    // simulate.c
struct context_index; // callers.c

// A thread's part of the file, and what is needed to find things in it.
struct thread {
    struct counts_thread *counts;
    struct counts_edge *edges;
    struct counts_frame *frames, *top; // the innermost is below top
    uint64_t *counters;
    uint64_t *words;
    uint32_t *depth;     // by function: how often it is active
    uint32_t *last_edge; // by site
    uint32_t *recent;    // edges of sites that call several functions, by recent_edge
    uint32_t function;   // of the context; 0: none yet
    uint32_t area;
    uint32_t shown; // the area that counts go to: not always the same, see counts_recurses
    uint8_t *recurses;
    uint32_t *buckets; // of edges
    uint32_t *next_edge;
    uint16_t (*own_areas)[COUNTS_LEVELS]; // by function and level - 1; 0: none
    uint32_t number;                      // of the part of the file
    struct counts_context *contexts;
    struct context_index *index;   // if contexts are numbered
    struct thread *child;          // of vfork, as long as it runs: its state; and in that, itself
    bool collects;                 // by --toggle-collect and requests
    bool paused;                   // costs go to COUNTS_OFF_AREA
    uint64_t at_pause[TOOL_WORDS]; // the words when it paused; all but the site are put back
    // If there are more events than instructions.
    struct simulation *simulation;
    uint64_t totals[COUNTS_EVENTS];          // but for what is in words
    uint64_t (*edge_events)[COUNTS_EVENTS];  // costs
    uint64_t (*frame_events)[COUNTS_EVENTS]; // totals on entry
    struct counts_frame *noted;              // see counts_thread
    // With --collect-systime: the system call under way.
    uint32_t system_call; // id of its events
    uint64_t system_wall, system_cpu;
};

// Defined in counts.c, declared here because fast and quick calls need them.
extern struct counts_header *counts_shared; // `plain` there says whether quick calls may be made
extern struct counts_id *counts_ids;
extern bool counts_many_events;    // there are others than instructions
extern unsigned counts_events_end; // behind the last of them
// The ids after a site, by event: what was skipped, code of PLT entries and functions that count at
// the site that they were reached from.
extern uint8_t counts_group[COUNTS_EVENTS];

extern bool events_may_be_plain;    // if nothing is paused
extern uint8_t *events_of_function; // FUNCTION_*
// Where a function without symbol begins: whose code that is (owners.h). Of all functions: the file
// that they are in.
extern uint32_t *events_owner, *events_object;

// The halves of WORD_SITE; inserted code writes one of them, and reading both at once would wait
// for the store.
static inline uint32_t *thread_site(const struct thread *thread) {
    return (uint32_t *)&thread->words[WORD_SITE];
}
static inline bool thread_was_called(const struct thread *thread) {
    const uint32_t *site = thread_site(thread);
    return site[SITE_LAST] && site[SITE_LAST] != (site[SITE_JUMP] & ~SITE_RESOLVES);
}

// Where costs go.
static inline uint64_t *thread_counters(const struct thread *thread) {
    return thread->counters +
           (uint64_t)(thread->paused ? (uint32_t)COUNTS_OFF_AREA : thread->shown) * COUNTS_IDS;
}

// The counter of an event in skipped code. Without a call site it is the first counter, which is
// never read.
static inline uint64_t *thread_skipped_counter(const struct thread *thread,
                                               enum counts_event event) {
    uint32_t site = *thread_site(thread);
    return thread_counters(thread) + (site ? site + counts_group[event] : 0);
}

// The counter of an event at an instruction, or of the `offset`-th after it.
static inline uint64_t *thread_counter(const struct thread *thread, uint32_t id, unsigned offset,
                                       enum counts_event event) {
    return counts_ids[id].kind == COUNTS_SKIPPED_EVENT ? thread_skipped_counter(thread, event)
                                                       : thread_counters(thread) + id + offset;
}

// Whether the jump that was noted last, if it led here, is a call of code without symbols: into
// another file, or by way of the PLT. One of a function that has returned led elsewhere.
bool thread_jumped_into(const struct thread *, uint32_t object);
// Whether it counts in an area of its context's own, as other functions' code must be.
bool thread_is_alone(const struct thread *);
void thread_note_frames(struct thread *); // something rare is about to be counted

static inline void thread_count(struct thread *thread, uint32_t id, unsigned offset,
                                enum counts_event event, uint64_t amount) {
    if (thread->paused)
        return;
    if (thread->noted < thread->top)
        thread_note_frames(thread);
    *thread_counter(thread, id, offset, event) += amount;
    thread->totals[event] += amount;
}

// Applies counts_shared->on and thread->collects.
void thread_update(struct thread *);
void threads_forked(const struct thread *); // it is the only one now
// A child of vfork is gone.
void thread_child_gone(const struct thread *, const struct thread *child);

// At a function's first instruction.
void event_enter(uint32_t function, uint64_t rsp, void *thread);
// At a call of it.
void event_enter_from_call(uint32_t function, uint64_t rsp, void *thread);
// The same of one whose code is another's.
void event_enter_others_from_call(uint32_t function, uint64_t rsp, void *thread);
// Where no symbol says what begins.
void event_maybe_enter(uint32_t function, uint64_t rsp, void *thread);
// At a return.
void event_leave(uint32_t popped, uint64_t rsp, void *thread);
// Where code of a function begins other than by entering it; 0: of whatever function.
void event_cross(uint32_t function, uint64_t rsp, void *thread);
// At a jump with another stack pointer.
void event_stack_moved(uint32_t unused, uint64_t rsp, void *thread);
// At a jump of a skipped function.
void event_skipped_jump(uint32_t resolves, uint64_t rsp, void *thread);

// With --collect-jumps. The argument is a branch's id, or an indirect jump's site.
void event_taken(uint32_t branch, uint64_t rsp, void *thread);
void event_jumped(uint32_t site, uint64_t rsp, void *thread, uint64_t target);

// What most of the above come to, as quick calls.
TOOL_QUICK bool event_enter_quick(uint32_t function);
TOOL_QUICK bool event_enter_from_call_quick(uint32_t function);
TOOL_QUICK bool event_maybe_enter_quick(uint32_t function);
TOOL_QUICK bool event_leave_quick(uint32_t popped);
TOOL_QUICK bool event_cross_quick(uint32_t function);

// With more events than instructions.
TOOL_QUICK bool event_enter_quick_events(uint32_t function);
TOOL_QUICK bool event_leave_quick_events(uint32_t popped);

void thread_interrupted(struct thread *, uint64_t rsp); // a signal handler begins
void thread_continued(struct thread *);                 // it has returned
void thread_finish(struct thread *);                    // nothing is active any more
// A part that another thread has used before: finds its edges again.
void edges_index(struct thread *);
void edges_forget(struct thread *); // those of the parent, in a fork child
// In a child, whose counts are new: what was active stays so.
void frames_restore(struct thread *, const struct counts_frame *, uint32_t count, uint32_t area);

#endif
