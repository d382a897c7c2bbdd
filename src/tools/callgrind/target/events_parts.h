// What events.c and events_quick.c share. For fast and quick calls: general registers only.
#ifndef QUERN_TOOLS_CALLGRIND_EVENTS_PARTS_H
#define QUERN_TOOLS_CALLGRIND_EVENTS_PARTS_H

#include "tools/callgrind/target/events.h"

enum { LEVELS = COUNTS_LEVELS }; // that have areas for all functions

// Whether counts must go to the context's own area from now on.
static inline bool must_show(const struct thread *thread, uint32_t area, uint32_t function) {
    return thread->shown != area &&
           ((thread->shown | area) > 1 || !function || thread->recurses[function]);
}

// The words, without what was not collected; the site is not to be had here.
static inline const uint64_t *collected(const struct thread *thread) {
    return thread->paused ? thread->at_pause : thread->words;
}

// The instructions in the words.
static inline uint64_t total_in(const uint64_t *words) {
    uint64_t total = 0;
    for (unsigned i = 0; i < TOTALS; i++)
        total += words[WORD_TOTALS + i];
    return total;
}

static inline uint32_t *recent_edge(const struct thread *thread, uint32_t site, uint32_t function) {
    return &thread->recent[(site * 5 + function) % RECENT_EDGES];
}

// ---- events other than instructions -------------------------------------------------------------

static inline void set_noted(struct thread *thread, struct counts_frame *frame) {
    thread->noted = frame;
    thread->counts->noted = frame - thread->frames;
}

static inline void note_totals(struct thread *thread, const struct counts_frame *frame) {
    uint64_t *entered = thread->frame_events[frame - thread->frames];
    entered[COUNTS_DR] = collected(thread)[WORD_READS];
    entered[COUNTS_DW] = collected(thread)[WORD_WRITES];
}

// When the frame is over.
static inline void add_event_costs(struct thread *thread, struct counts_frame *frame) {
    const uint64_t *entered = thread->frame_events[frame - thread->frames];
    uint64_t *costs = thread->edge_events[frame->edge];
    costs[COUNTS_DR] += collected(thread)[WORD_READS] - entered[COUNTS_DR];
    costs[COUNTS_DW] += collected(thread)[WORD_WRITES] - entered[COUNTS_DW];
    if (frame >= thread->noted)
        return;
    for (unsigned i = COUNTS_RARE; i < counts_events_end; i++)
        costs[i] += thread->totals[i] - entered[i];
    set_noted(thread, frame);
}

#endif
