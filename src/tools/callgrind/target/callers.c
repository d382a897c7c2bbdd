#include "tools/callgrind/target/callers.h"

#include <sys/mman.h>

#include "engine/tool.h"
#include "tools/callgrind/target/counts.h"

#pragma GCC target("general-regs-only")

enum { BUCKETS = 1 << 16 };
enum { PLACES = COUNTS_MOVED_AREA / 2, PLACES_ALONE = PLACES / 8 }; // of areas

bool callers_on;
uint8_t *callers_wanted, *levels_wanted;
bool levels_skip_direct;

// What a thread needs to find its contexts again.
struct context_index {
    uint32_t buckets[BUCKETS];
    uint32_t next[COUNTS_CONTEXTS];
    uint32_t twin[COUNTS_CONTEXTS]; // the same context alone, or not alone
    uint32_t first[COUNTS_FUNCTIONS];
    uint16_t used[COUNTS_FUNCTIONS]; // areas of a function
    uint32_t alone;                  // areas that are one context's, from the last one down
};

void callers_start(void) {
    callers_on = true;
    counts_shared->contexts = 1;
}

static uint32_t *bucket_of(const struct thread *thread, const struct counts_context *context) {
    uint32_t mixed = context->function * 31 + context->level;
    for (uint32_t i = 0; i < context->caller_count; i++)
        mixed = mixed * 31 + context->callers[i];
    return &thread->index->buckets[mixed * 0x9e3779b1u >> 16];
}

// Areas go in pairs, each followed by the pair of what is skipped.
static uint32_t area_number(uint32_t place) {
    return place / 2 * 2 * COUNTS_SKIPPED + place % 2;
}

// For a new context; false: there is none left.
static bool choose_area(struct thread *thread, struct counts_context *context) {
    struct context_index *index = thread->index;
    if (context->alone && index->alone == PLACES_ALONE)
        return false;
    if (!context->alone && index->used[context->function] == PLACES - PLACES_ALONE)
        return false;
    context->area = area_number(context->alone ? PLACES - 1 - index->alone++
                                               : index->used[context->function]++);
    return true;
}

static bool is_same(const struct counts_context *a, const struct counts_context *b) {
    if (a->function != b->function || a->level != b->level || a->alone != b->alone ||
        a->caller_count != b->caller_count)
        return false;
    for (uint32_t i = 0; i < a->caller_count; i++)
        if (a->callers[i] != b->callers[i])
            return false;
    return true;
}

// Finds it again by what it is.
static uint32_t look_up(const struct thread *thread, const struct counts_context *wanted) {
    const struct context_index *index = thread->index;
    uint32_t at = *bucket_of(thread, wanted);
    while (at && !is_same(&thread->contexts[at], wanted))
        at = index->next[at];
    return at;
}

static void enter_in_index(struct thread *thread, uint32_t at) {
    struct context_index *index = thread->index;
    const struct counts_context *context = &thread->contexts[at];
    uint32_t *bucket = bucket_of(thread, context);
    index->next[at] = *bucket;
    *bucket = at;
    if (!index->first[context->function])
        index->first[context->function] = at;
    if (context->alone) {
        struct counts_context other = *context;
        other.alone = 0;
        index->twin[at] = look_up(thread, &other);
        index->twin[index->twin[at]] = at;
    }
}

// 0: there is no room.
static uint32_t add(struct thread *thread, const struct counts_context *wanted) {
    uint32_t at = thread->counts->contexts + 1;
    if (at >= COUNTS_CONTEXTS)
        return 0;
    thread->contexts[at] = *wanted;
    if (!choose_area(thread, &thread->contexts[at]))
        return 0;
    enter_in_index(thread, at);
    thread->counts->contexts = at;
    return at;
}

// The part may have been another thread's.
void callers_thread_start(struct thread *thread) {
    if (!callers_on)
        return;
    struct context_index *index = thread->index = counts_reserve(sizeof *thread->index);
    for (uint32_t i = 1; i <= thread->counts->contexts; i++) {
        enter_in_index(thread, i);
        if (thread->contexts[i].alone)
            index->alone++;
        else
            index->used[thread->contexts[i].function]++;
    }
}

// The functions that are active, the innermost first; one that calls itself counts once.
static void gather_callers(const struct thread *thread, struct counts_context *context) {
    const struct counts_frame *frame = thread->top;
    uint32_t last = context->function, most = callers_wanted[context->function];
    uint32_t function = thread->function;
    while (context->caller_count < most && function) {
        if (function != last)
            context->callers[context->caller_count++] = last = function;
        if (--frame < thread->frames || frame->marker)
            break;
        function = frame->function;
    }
}

uint32_t callers_find(struct thread *thread, uint32_t function, uint32_t depth) {
    uint32_t levels = levels_wanted[function];
    struct counts_context wanted;
    wanted.function = function;
    wanted.level = depth < levels ? depth : levels;
    wanted.alone = wanted.caller_count = 0;
    gather_callers(thread, &wanted);
    uint32_t at = look_up(thread, &wanted);
    if (!at)
        at = add(thread, &wanted);
    if (at)
        return at;
    counts_incomplete();
    return thread->index->first[function];
}

uint32_t callers_alone(struct thread *thread, uint32_t context) {
    struct context_index *index = thread->index;
    if (!context || thread->contexts[context].alone)
        return context;
    if (!index->twin[context]) {
        struct counts_context wanted = thread->contexts[context];
        wanted.alone = 1;
        if (!add(thread, &wanted))
            return context; // such code counts for the functions that it belongs to
    }
    return index->twin[context];
}

uint32_t callers_shared(struct thread *thread, uint32_t context) {
    return thread->contexts[context].alone ? thread->index->twin[context] : context;
}

void callers_thread_end(struct thread *thread) {
    if (callers_on)
        munmap(thread->index, sizeof *thread->index);
}
