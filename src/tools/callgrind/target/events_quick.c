#pragma GCC target("general-regs-only")

#include "engine/tool.h"
#include "tools/callgrind/target/events_parts.h"

// The fewer registers a quick function uses, the quicker it is: what is at hand is read again
// rather than kept, and rare cases are functions of their own.

// Two numbers that lie side by side, read and written at once: a number that was written by halves
// cannot be read as a whole before both have reached memory.
static inline uint64_t *pair_at(const uint32_t *first) {
    return (uint64_t *)first;
}

static inline uint32_t *quick_site(void) {
    return (uint32_t *)(tool_quick_words() + WORD_SITE);
}

static __attribute__((noinline)) TOOL_QUICK void show(struct thread *thread, uint32_t area) {
    if (must_show(thread, area, thread->function)) {
        thread->shown = area;
        tool_set_counters_quickly(thread->counters + (uint64_t)area * COUNTS_IDS);
    }
}

static inline void set_context_quickly(struct thread *thread, uint64_t context) {
    *pair_at(&thread->function) = context;
    if (__builtin_expect(thread->shown != context >> 32, 0))
        show(thread, context >> 32);
}

static inline bool edge_leads(const struct counts_edge *edge, const struct thread *thread,
                              uint32_t function, uint32_t level) {
    return edge->function == function && edge->level == level && edge->area == thread->area;
}

// A call or jump that was made before; `rsp` is where its frame begins.
static inline bool push_quickly(struct thread *thread, uint32_t site, uint32_t function,
                                uint64_t rsp, bool many_events) {
    uint32_t *depth = &thread->depth[function];
    uint32_t level = *depth ? LEVELS : 1;
    uint32_t at = thread->last_edge[site];
    struct counts_edge *edge = &thread->edges[at];
    if (!edge_leads(edge, thread, function, level)) {
        at = *recent_edge(thread, site, function);
        edge = &thread->edges[at];
        if (!edge_leads(edge, thread, function, level) || edge->site != site)
            return false;
    }
    tool_quick_words()[WORD_SITE] = 0;
    edge->calls++;
    struct counts_frame *frame = thread->top++;
    frame->sp = rsp;
    frame->entered = total_in(tool_quick_words());
    frame->edge = at;
    frame->callee = function;
    *pair_at(&frame->function) = *pair_at(&thread->function);
    *pair_at(&frame->marker) = 0;
    if (many_events)
        note_totals(thread, frame);
    ++*depth;
    set_context_quickly(thread, (uint64_t)(level - 1) << 32 | function);
    return true;
}

// By a jump, which goes on in its function's frame; or by nothing that is known.
static inline bool enter_by_jump(uint32_t function, bool many_events) {
    struct thread *thread = tool_quick_state();
    const struct counts_frame *top = thread->top - 1;
    uint32_t jump = quick_site()[SITE_JUMP];
    if (!jump)
        return thread->function;
    return !top->marker && top->sp != UINT64_MAX &&
           push_quickly(thread, jump, function, top->sp, many_events);
}

static __attribute__((noinline)) TOOL_QUICK bool enter_by_jump_plainly(uint32_t function) {
    return enter_by_jump(function, false);
}

static __attribute__((noinline)) TOOL_QUICK bool enter_by_jump_with_events(uint32_t function) {
    return enter_by_jump(function, true);
}

// With nothing to unwind.
static inline bool enter_quickly(uint32_t function, unsigned pushed, bool many_events) {
    struct thread *thread = tool_quick_state();
    const struct counts_frame *frame = thread->top;
    if (!counts_shared->plain || frame[-1].sp < tool_quick_rsp() - pushed || frame->sp)
        return false;
    uint32_t site = quick_site()[SITE_LAST], jump = quick_site()[SITE_JUMP];
    if (!site || site == jump)
        return many_events ? enter_by_jump_with_events(function) : enter_by_jump_plainly(function);
    if (site == (jump & ~SITE_RESOLVES))
        return false;
    return push_quickly(thread, site, function, tool_quick_rsp() - pushed, many_events);
}

bool event_enter_quick(uint32_t function) {
    return enter_quickly(function, 0, false);
}

bool event_enter_quick_events(uint32_t function) {
    return enter_quickly(function, 0, true);
}

bool event_enter_from_call_quick(uint32_t function) {
    return !counts_many_events && enter_quickly(function, 8, false);
}

// By a jump to code of the function that runs.
static __attribute__((noinline)) TOOL_QUICK bool go_on(uint32_t function) {
    const struct thread *thread = tool_quick_state();
    if (thread->function != events_owner[function] || thread->area >= FIRST_OWN_AREA ||
        !counts_shared->plain)
        return false;
    tool_quick_words()[WORD_SITE] = 0;
    return true;
}

bool event_maybe_enter_quick(uint32_t function) {
    if (!thread_was_called(tool_quick_state()))
        return go_on(function);
    return !counts_many_events && events_owner[function] == function &&
           enter_quickly(function, 0, false);
}

bool event_cross_quick(uint32_t function) {
    struct thread *thread = tool_quick_state();
    uint32_t area = thread->area;
    if (!counts_shared->plain || !thread->function)
        return false;
    if ((thread->function == function) == (area < FIRST_OWN_AREA))
        return true;
    area = area < FIRST_OWN_AREA ? thread->own_areas[thread->function][area]
                                 : thread->counts->area[area].level - 1;
    if (!area && thread->function != function)
        return false;
    set_context_quickly(thread, (uint64_t)area << 32 | thread->function);
    return true;
}

static inline bool leave_quickly(uint64_t rsp, bool many_events) {
    struct thread *thread = tool_quick_state();
    struct counts_frame *frame = thread->top - 1;
    if (!counts_shared->plain || frame->marker)
        return false;
    if (frame->sp >= rsp)
        return true;
    uint64_t total = total_in(tool_quick_words());
    do {
        thread->edges[frame->edge].cost += total - frame->entered;
        if (many_events)
            add_event_costs(thread, frame);
        thread->depth[frame->callee]--;
        frame->sp = 0;
        frame--;
    } while (frame->sp < rsp && !frame->marker);
    thread->top = frame + 1;
    set_context_quickly(thread, *pair_at(&frame[1].function));
    return !frame->marker || frame->sp != rsp; // that a handler returns is seen to in full
}

bool event_leave_quick(uint32_t popped) {
    return leave_quickly(tool_quick_rsp() + popped, false);
}

bool event_leave_quick_events(uint32_t popped) {
    return leave_quickly(tool_quick_rsp() + popped, true);
}
