#pragma GCC target("general-regs-only")

#include "tools/callgrind/events_parts.h"

// Two numbers that lie side by side, read and written at once: the fewer registers a quick function
// uses, the quicker it is.
static inline uint64_t *pair_at(const uint32_t *first) {
    return (uint64_t *)first;
}

static inline uint64_t pair(uint32_t first, uint64_t second) {
    return first | second << 32;
}

static inline void set_context_quickly(struct thread *thread, uint64_t context) {
    uint32_t area = context >> 32;
    *pair_at(&thread->function) = context;
    if (must_show(thread, area, context)) {
        thread->shown = area;
        tool_set_counters_quickly(thread->counters + (uint64_t)area * COUNTS_IDS);
    }
}

// A call or jump that was made before, with nothing to unwind.
static inline bool enter_quickly(struct thread *thread, uint32_t function, uint64_t rsp,
                                 bool many_events) {
    struct counts_frame *frame = thread->top;
    uint32_t site = thread_site(thread)[SITE_LAST], jump = thread_site(thread)[SITE_JUMP];
    if (!counts_shared->plain || frame[-1].sp < rsp || frame->sp)
        return false;
    if (!site)
        site = jump;
    if (!site)
        return thread->function;
    if (site == jump) {
        rsp = frame[-1].sp;
        if (frame[-1].marker || rsp == UINT64_MAX)
            return false;
    } else if (site == (jump & ~SITE_RESOLVES)) {
        return false;
    }
    frame->sp = rsp;
    uint64_t from = pair(site, thread->area);
    uint64_t to = pair(function, thread->depth[function] ? LEVELS : 1);
    uint32_t at = thread->last_edge[site];
    struct counts_edge *edge = &thread->edges[at];
    if (*pair_at(&edge->function) != to || *pair_at(&edge->site) != from) {
        at = *recent_edge(thread, site, function);
        edge = &thread->edges[at];
        if (*pair_at(&edge->function) != to || *pair_at(&edge->site) != from) {
            frame->sp = 0;
            return false;
        }
    }
    thread->words[WORD_SITE] = 0;
    edge->calls++;
    frame->entered = total_in(thread->words);
    *pair_at(&frame->edge) = pair(at, function);
    *pair_at(&frame->function) = *pair_at(&thread->function);
    *pair_at(&frame->marker) = 0;
    if (many_events)
        note_totals(thread, frame);
    thread->top = frame + 1;
    thread->depth[function]++;
    set_context_quickly(thread, to - (1ul << 32));
    return true;
}

bool event_enter_quick(uint32_t function, uint64_t rsp, void *state) {
    return enter_quickly(state, function, rsp, false);
}

bool event_enter_quick_events(uint32_t function, uint64_t rsp, void *state) {
    return enter_quickly(state, function, rsp, true);
}

bool event_enter_from_call_quick(uint32_t function, uint64_t rsp, void *state) {
    return !counts_many_events && enter_quickly(state, function, rsp - 8, false);
}

bool event_maybe_enter_quick(uint32_t function, uint64_t rsp, void *state) {
    if (thread_was_called(state))
        return !counts_many_events && enter_quickly(state, function, rsp, false);
    ((struct thread *)state)->words[WORD_SITE] = 0;
    return true;
}

static inline bool leave_quickly(struct thread *thread, uint64_t rsp, bool many_events) {
    struct counts_frame *frame = thread->top - 1;
    if (!counts_shared->plain || frame->marker)
        return false;
    if (frame->sp >= rsp)
        return true;
    uint64_t total = total_in(thread->words);
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

bool event_leave_quick(uint32_t popped, uint64_t rsp, void *state) {
    return leave_quickly(state, rsp + popped, false);
}

bool event_leave_quick_events(uint32_t popped, uint64_t rsp, void *state) {
    return leave_quickly(state, rsp + popped, true);
}
