#pragma GCC target("general-regs-only")

#include "tools/callgrind/target/callers.h"
#include "tools/callgrind/target/counts.h"
#include "tools/callgrind/target/events_parts.h"

#include "engine/tool.h"

bool events_may_be_plain;
uint8_t *events_of_function;
uint32_t *events_owner, *events_object;

static uint32_t paused_threads;

// ---- context -----------------------------------------------------------------------------------

static void set_context(struct thread *thread, uint32_t function, uint32_t area) {
    thread->function = function;
    thread->area = area;
    if (callers_on)
        area = callers_area(thread, area);
    if (callers_on ? thread->shown != area : must_show(thread, area, function)) {
        thread->shown = area;
        tool_set_counters(thread_counters(thread));
    }
}

static void begins_to_recurse(struct thread *thread, uint32_t function) {
    static const uint8_t skipped[] = {0, COUNTS_SKIPPED};
    for (unsigned i = 0; i < sizeof skipped; i++) {
        const uint64_t *from = thread->counters + (1ul + skipped[i]) * COUNTS_IDS;
        uint64_t *to = thread->counters + ((uint64_t)COUNTS_MOVED_AREA + skipped[i]) * COUNTS_IDS;
        for (uint32_t id = counts_first_of(function); id; id = counts_next_of(id))
            if (from[id])
                to[id] = from[id];
    }
    thread->recurses[function] = 1;
}

// The supervisor may switch off at the same moment: it sets `on` first.
static void be_plain(void) {
    __atomic_store_n(&counts_shared->plain, events_may_be_plain, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&counts_shared->on, __ATOMIC_SEQ_CST))
        __atomic_store_n(&counts_shared->plain, 0, __ATOMIC_SEQ_CST);
}

void thread_update(struct thread *thread) {
    bool paused = !counts_shared->on || !thread->collects;
    if (paused == thread->paused) {
        if (events_may_be_plain && !counts_shared->plain &&
            !__atomic_load_n(&paused_threads, __ATOMIC_SEQ_CST))
            be_plain();
        return;
    }
    for (unsigned i = 0; i < TOOL_WORDS; i++) {
        if (paused)
            thread->at_pause[i] = thread->words[i];
        else if (i != WORD_SITE)
            thread->words[i] = thread->at_pause[i];
    }
    thread->paused = paused;
    if (thread->child)
        thread->child->paused = paused;
    tool_set_counters(thread_counters(thread));
    if (paused) {
        __atomic_add_fetch(&paused_threads, 1, __ATOMIC_SEQ_CST);
        __atomic_store_n(&counts_shared->plain, 0, __ATOMIC_SEQ_CST);
    } else if (!__atomic_sub_fetch(&paused_threads, 1, __ATOMIC_SEQ_CST)) {
        be_plain();
    }
}

void threads_forked(const struct thread *thread) {
    paused_threads = thread->paused;
}

void thread_child_gone(const struct thread *thread, const struct thread *child) {
    if (child->paused != thread->paused)
        __atomic_add_fetch(&paused_threads, thread->paused ? 1 : -1, __ATOMIC_SEQ_CST);
}

static uint64_t total_of(const struct thread *thread) {
    return total_in(collected(thread));
}

static void dump_before(void *function) {
    counts_dump_at("--dump-before", (uintptr_t)function);
}

static void dump_after(void *function) {
    counts_dump_at("--dump-after", (uintptr_t)function);
}

static void zero_before(void *unused) {
    counts_dump(false, "");
}

// Before a function is entered.
static void act_before(uint32_t function) {
    if (events_of_function[function] & FUNCTION_ZEROES_BEFORE)
        tool_with_vectors(zero_before, 0);
    if (events_of_function[function] & FUNCTION_DUMPS_BEFORE)
        tool_with_vectors(dump_before, (void *)(uintptr_t)function);
}

static void toggle_by(struct thread *thread, uint32_t function) {
    if (events_of_function[function] & FUNCTION_TOGGLES)
        thread->collects = !thread->collects;
    thread_update(thread);
}

static uint32_t level_of(const struct thread *thread) {
    return thread->area < FIRST_OWN_AREA ? thread->area + 1
                                         : thread->counts->area[thread->area].level;
}

// The area of a context that runs other functions' code. When there are none left, such code counts
// for the functions that it belongs to.
static uint32_t own_area(struct thread *thread, uint32_t function, uint32_t level) {
    struct counts_thread *counts = thread->counts;
    if (thread->own_areas[function][level - 1])
        return thread->own_areas[function][level - 1];
    uint32_t area = counts->areas < FIRST_OWN_AREA ? FIRST_OWN_AREA : counts->areas;
    if (area & COUNTS_SKIPPED)
        area += COUNTS_SKIPPED;
    if (area + COUNTS_SKIPPED >= COUNTS_MOVED_AREA)
        return level - 1;
    counts->area[area].function = function;
    counts->area[area].level = level;
    counts->areas = area + 1;
    thread->own_areas[function][level - 1] = area;
    return area;
}

bool thread_is_alone(const struct thread *thread) {
    return callers_on ? thread->contexts[thread->area].alone : thread->area >= FIRST_OWN_AREA;
}

bool thread_jumped_into(const struct thread *thread, uint32_t object) {
    const struct counts_id *site = &counts_ids[thread_site(thread)[SITE_JUMP] & ~SITE_RESOLVES];
    return site->function && (site->count || events_object[site->function] != object) &&
           (site->function == thread->function || thread_is_alone(thread));
}

static void index_own_areas(struct thread *thread) {
    const struct counts_thread *counts = thread->counts;
    for (uint32_t i = FIRST_OWN_AREA; i < counts->areas; i++)
        if (counts->area[i].function)
            thread->own_areas[counts->area[i].function][counts->area[i].level - 1] = i;
}

static void begin_context(struct thread *thread, uint32_t function) {
    uint32_t depth = ++thread->depth[function];
    set_context(thread, function, callers_on ? callers_find(thread, function, depth) : 0);
}

// ---- edges -------------------------------------------------------------------------------------

static bool edge_is(const struct counts_edge *edge, uint32_t site, uint32_t area, uint32_t function,
                    uint32_t level) {
    return edge->site == site && edge->area == area && edge->function == function &&
           edge->level == level;
}

static uint32_t *edge_bucket(const struct thread *thread, uint32_t site, uint32_t area,
                             uint32_t function, uint32_t level) {
    uint32_t mixed = ((site * 31 + function) * 31 + area * 2 + level) * 0x9e3779b1u;
    return &thread->buckets[mixed >> 16];
}

void edges_index(struct thread *thread) {
    for (uint32_t at = 1; at <= thread->counts->edges; at++) {
        const struct counts_edge *edge = &thread->edges[at];
        uint32_t *bucket = edge_bucket(thread, edge->site, edge->area, edge->function, edge->level);
        thread->next_edge[at] = *bucket;
        *bucket = at;
    }
    index_own_areas(thread);
}

// 0 when there is no room for more.
static uint32_t find_edge(struct thread *thread, uint32_t site, uint32_t function, uint32_t level) {
    uint32_t at = thread->last_edge[site];
    if (at && edge_is(&thread->edges[at], site, thread->area, function, level))
        return at;
    uint32_t *bucket = edge_bucket(thread, site, thread->area, function, level);
    for (at = *bucket; at; at = thread->next_edge[at])
        if (edge_is(&thread->edges[at], site, thread->area, function, level))
            break;
    if (!at && thread->counts->edges + 1 >= COUNTS_EDGES) {
        counts_incomplete();
    } else if (!at) {
        at = thread->counts->edges + 1;
        struct counts_edge *edge = &thread->edges[at];
        edge->site = site;
        edge->area = thread->area;
        edge->function = function;
        edge->level = level;
        thread->counts->edges = at;
        thread->next_edge[at] = *bucket;
        *bucket = at;
    }
    if (thread->last_edge[site])
        *recent_edge(thread, site, function) = at;
    else
        thread->last_edge[site] = at;
    return at;
}

// ---- events other than instructions -------------------------------------------------------------

void thread_note_frames(struct thread *thread) {
    for (const struct counts_frame *at = thread->noted; at < thread->top; at++)
        for (unsigned i = COUNTS_RARE; i < counts_events_end; i++)
            thread->frame_events[at - thread->frames][i] = thread->totals[i];
    set_noted(thread, thread->top);
}

// What happened since the marker was pushed is not part of the frames below it.
static void take_out_events(struct thread *thread, struct counts_frame *marker) {
    const uint64_t *entered = thread->frame_events[marker - thread->frames];
    const uint64_t more[COUNTS_RARE] = {
        [COUNTS_DR] = collected(thread)[WORD_READS] - entered[COUNTS_DR],
        [COUNTS_DW] = collected(thread)[WORD_WRITES] - entered[COUNTS_DW]};
    bool is_noted = marker < thread->noted;
    for (const struct counts_frame *at = thread->frames; at < thread->top; at++) {
        uint64_t *events = thread->frame_events[at - thread->frames];
        for (unsigned i = 1; i < COUNTS_RARE; i++)
            events[i] += more[i];
        for (unsigned i = COUNTS_RARE; is_noted && i < counts_events_end; i++)
            events[i] += thread->totals[i] - entered[i];
    }
    if (is_noted)
        set_noted(thread, marker);
}

// ---- frames ------------------------------------------------------------------------------------

static struct counts_frame *top_frame(struct thread *thread) {
    return thread->top > thread->frames ? thread->top - 1 : 0;
}

static bool is_skipped(const struct counts_frame *frame) {
    return !frame->marker && events_of_function[frame->callee] & FUNCTION_SKIPPED;
}

// NULL: there is no room.
static struct counts_frame *push_frame(struct thread *thread, uint32_t edge, uint32_t callee,
                                       uint64_t sp) {
    struct counts_frame *frame = thread->top;
    if (frame == thread->frames + COUNTS_FRAMES) {
        counts_incomplete();
        return 0;
    }
    frame->sp = sp;
    frame->entered = total_of(thread);
    frame->edge = edge;
    frame->callee = callee;
    frame->function = thread->function;
    frame->area = thread->area;
    frame->marker = 0;
    if (counts_many_events)
        note_totals(thread, frame);
    thread->top = frame + 1;
    return frame;
}

// The context stays. What is called from here on is called from the same site.
static void push_skipped(struct thread *thread, uint32_t site, uint32_t function, uint64_t sp) {
    act_before(function);
    struct counts_frame *frame = push_frame(thread, 0, function, sp);
    if (!frame)
        return;
    frame->jump = site;
    thread->words[WORD_SITE] = site;
    toggle_by(thread, function);
}

static bool goes_deeper(uint32_t caller, uint32_t callee) {
    return caller != callee || !levels_skip_direct;
}

static void push(struct thread *thread, uint32_t site, uint32_t function, uint64_t sp) {
    uint32_t depth = thread->depth[function] + goes_deeper(thread->function, function);
    uint32_t level = depth < LEVELS ? depth : LEVELS;
    uint32_t area = callers_on ? callers_find(thread, function, depth) : level - 1;
    uint32_t edge =
        find_edge(thread, site, function, callers_on ? COUNTS_TO_CONTEXT | area : level);
    thread->edges[edge].calls += counts_shared->on;
    act_before(function);
    thread->words[WORD_SITE] = 0;
    if (!push_frame(thread, edge, function, sp))
        return;
    thread->depth[function] = depth;
    if (level == LEVELS && !callers_on && !thread->recurses[function])
        begins_to_recurse(thread, function);
    set_context(thread, function, area);
    toggle_by(thread, function);
}

// The handler's costs are not part of what it interrupted.
static void pop_marker(struct thread *thread, struct counts_frame *frame) {
    uint64_t cost = total_of(thread) - frame->entered;
    for (struct counts_frame *at = thread->frames; at < thread->top; at++)
        at->entered += cost;
    if (counts_many_events)
        take_out_events(thread, frame);
    if (thread->function)
        thread->depth[thread->function]--;
    thread_site(thread)[SITE_LAST] = frame->callee;
    thread_site(thread)[SITE_JUMP] = frame->jump;
}

static void pop(struct thread *thread) {
    struct counts_frame *frame = --thread->top;
    frame->sp = 0;
    if (frame->marker) {
        pop_marker(thread, frame);
    } else {
        thread->edges[frame->edge].cost += total_of(thread) - frame->entered;
        if (counts_many_events)
            add_event_costs(thread, frame);
        if (!is_skipped(frame))
            thread->depth[frame->callee] -= goes_deeper(frame->function, frame->callee);
        toggle_by(thread, frame->callee);
        const struct counts_frame *top = top_frame(thread);
        if (top && is_skipped(top))
            thread->words[WORD_SITE] = top->jump;
    }
    set_context(thread, frame->function, frame->area);
    if (!frame->marker && events_of_function[frame->callee] & FUNCTION_DUMPS_AFTER)
        tool_with_vectors(dump_after, (void *)(uintptr_t)frame->callee);
}

// Ends the frames whose return address lies below sp: never the one below all others.
static void unwind(struct thread *thread, uint64_t sp) {
    while (thread->top[-1].sp < sp)
        pop(thread);
}

// ---- events ------------------------------------------------------------------------------------

static void enter(struct thread *thread, uint32_t function, uint64_t rsp) {
    uint32_t site = thread_site(thread)[SITE_LAST], jump = thread_site(thread)[SITE_JUMP];
    if (!site)
        site = jump & ~SITE_RESOLVES;
    bool jumps = site == (jump & ~SITE_RESOLVES);
    thread->words[WORD_SITE] = 0;
    struct counts_frame *top = top_frame(thread);
    if (jumps && top && top->edge &&
        (jump & SITE_RESOLVES ||
         events_of_function[counts_ids[site].function] & FUNCTION_ENDS_AT_JUMP)) {
        // The frame to end is the loader's function, or one that ends so; what called it has called
        // this one.
        site = thread->edges[top->edge].site;
        jumps = false;
        pop(thread);
    }
    unwind(thread, rsp);
    if (!site) {
        if (!thread->function) {
            begin_context(thread, function);
            if (events_of_function[function] & FUNCTION_SKIPPED)
                push_skipped(thread, counts_home_of(function), function, UINT64_MAX);
        }
        return;
    }
    if (!thread->function)
        begin_context(thread, counts_ids[site].function);
    top = top_frame(thread);
    uint64_t sp = jumps && top && !top->marker ? top->sp : rsp;
    if (events_of_function[function] & FUNCTION_SKIPPED)
        push_skipped(thread, site, function, sp);
    else
        push(thread, site, function, sp);
}

void event_enter(uint32_t function, uint64_t rsp, void *state) {
    enter(state, function, rsp);
}

void event_enter_from_call(uint32_t function, uint64_t rsp, void *state) {
    enter(state, function, rsp - 8);
}

// Makes counts go where they belong when the code of some function runs.
static void cross(struct thread *thread, uint32_t function) {
    if (!thread->function)
        return;
    bool is_own = thread->function == function;
    uint32_t area;
    if (callers_on)
        area = is_own ? callers_shared(thread, thread->area) : callers_alone(thread, thread->area);
    else
        area = is_own ? level_of(thread) - 1 : own_area(thread, thread->function, level_of(thread));
    set_context(thread, thread->function, area);
}

void event_cross(uint32_t function, uint64_t rsp, void *state) {
    cross(state, function);
}

void event_enter_others_from_call(uint32_t function, uint64_t rsp, void *state) {
    enter(state, function, rsp - 8);
    cross(state, events_owner[function]);
}

void event_maybe_enter(uint32_t function, uint64_t rsp, void *state) {
    struct thread *thread = state;
    bool may_have_jumped = thread->top[-1].sp == rsp;
    if (thread_was_called(thread) ||
        (may_have_jumped && thread_jumped_into(thread, events_object[function])))
        enter(thread, function, rsp);
    else
        thread->words[WORD_SITE] = 0;
    cross(thread, events_owner[function]);
}

void event_leave(uint32_t popped, uint64_t rsp, void *state) {
    struct thread *thread = state;
    uint64_t after = rsp + popped;
    struct counts_frame *top = top_frame(thread);
    bool ends = top && top->marker;
    if (!ends) {
        unwind(thread, after);
        top = top_frame(thread);
        ends = top && top->marker && top->sp == after; // by a function that it has jumped to
    }
    if (ends) {
        // The handler returns: what follows is the way back to what it interrupted.
        if (thread->function)
            thread->depth[thread->function]--;
        set_context(thread, 0, 0);
    }
}

void event_stack_moved(uint32_t unused, uint64_t rsp, void *state) {
    unwind(state, rsp);
}

void event_skipped_jump(uint32_t resolves, uint64_t rsp, void *state) {
    uint32_t *site = thread_site(state);
    site[SITE_JUMP] = site[SITE_LAST] | resolves;
}

void event_taken(uint32_t branch, uint64_t rsp, void *state) {
    thread_counters(state)[branch]++;
}

void event_jumped(uint32_t site, uint64_t rsp, void *state, uint64_t target) {
    struct thread *thread = state;
    if (!thread->paused)
        thread->edges[find_edge(thread, site, target, COUNTS_TO_ADDRESS | target >> 32)].calls++;
}

// ---- threads -----------------------------------------------------------------------------------

void thread_interrupted(struct thread *thread, uint64_t rsp) {
    // The handler's own return does not end it.
    struct counts_frame *frame = push_frame(thread, 0, thread_site(thread)[SITE_LAST], rsp + 8);
    if (!frame)
        return;
    frame->jump = thread_site(thread)[SITE_JUMP];
    frame->marker = 1;
    thread->words[WORD_SITE] = 0;
    set_context(thread, 0, 0);
}

void thread_continued(struct thread *thread) {
    const struct counts_frame *at = thread->top;
    while (at > thread->frames && !at[-1].marker)
        at--;
    while (at > thread->frames && thread->top >= at)
        pop(thread);
}

void thread_finish(struct thread *thread) {
    while (thread->top > thread->frames)
        pop(thread);
    if (thread->paused)
        __atomic_sub_fetch(&paused_threads, 1, __ATOMIC_SEQ_CST);
    if (thread->function)
        thread->depth[thread->function]--;
    thread->function = 0;
    thread->words[WORD_SITE] = 0;
}

void edges_forget(struct thread *thread) {
    for (uint32_t i = 0; i < EDGE_BUCKETS; i++)
        thread->buckets[i] = 0;
    for (uint32_t i = 0; i < COUNTS_IDS; i++)
        if (thread->last_edge[i])
            thread->last_edge[i] = 0;
    for (uint32_t i = 0; i < RECENT_EDGES; i++)
        thread->recent[i] = 0;
}

void frames_restore(struct thread *thread, const struct counts_frame *frames, uint32_t count,
                    uint32_t area) {
    for (uint32_t i = 0; i < count; i++) {
        struct counts_frame *frame = &thread->frames[i];
        frame->sp = frames[i].sp;
        frame->entered = 0;
        frame->edge = 0; // calls made before the fork are the parent's
        frame->callee = frames[i].callee;
        frame->function = frames[i].function;
        frame->area = frames[i].area;
        frame->marker = frames[i].marker;
        frame->jump = frames[i].jump;
    }
    thread->top = thread->frames + count;
    thread->area = area;
    thread->shown = callers_on ? callers_area(thread, area) : area;
}
