// Gathers what growth is judged by.
#include "report/diagnose/growth.h"

#include <stdlib.h>
#include <string.h>

#include "base/vector.h"
#include "report/diagnose/causes.h"

// So many releases for each allocation are the program's shutdown, if it goes on to the end.
#define SHUTDOWN_FREES 20
// The last allocations of a run belong to it in any case, this many at most.
#define SHUTDOWN_ALLOCATIONS 100
#define SHUTDOWN_STRETCH     200 // events
#define WORTH_BYTES          512 // what a stack holds less is not looked at

static uint32_t function_of(void *context, uint32_t stack) {
    struct growth *growth = context;
    if (stack >= growth->stack_count)
        return 0;
    if (!growth->function_by_stack[stack]) {
        char *key = cause_key(growth->file, stack, 0);
        bool is_new;
        growth->function_by_stack[stack] =
            map_texts_add(&growth->functions, key, strlen(key), &is_new) + 1;
        free(key);
    }
    return growth->function_by_stack[stack];
}

struct growth *growth_new(const struct heap_file *file) {
    struct growth *growth = base_allocate(sizeof *growth);
    *growth = (struct growth){.file = file,
                              .stack_count = file->summary.site_count,
                              .total_work = file->summary.total.allocated,
                              .end = file->summary.time,
                              .containers = {.stacks = &file->summary.stacks,
                                             .function = function_of,
                                             .context = growth}};
    growth->stacks = calloc(growth->stack_count + 1, sizeof *growth->stacks);
    growth->function_by_stack = calloc(growth->stack_count + 1, sizeof(uint32_t));
    if (!growth->stacks || !growth->function_by_stack)
        abort();
    return growth;
}

void growth_free(struct growth *growth) {
    for (size_t i = 0; i < growth->stack_count; i++) {
        for (enum growth_axis axis = 0; axis < GROWTH_AXES; axis++)
            free(growth->stacks[i].levels[axis]);
        free(growth->stacks[i].holder);
    }
    for (enum growth_axis axis = 0; axis < GROWTH_AXES; axis++)
        free(growth->moments[axis].boxes);
    containers_free(&growth->containers);
    map_texts_free(&growth->functions);
    free(growth->function_by_stack);
    free(growth->stacks);
    free(growth);
}

// ---- moments -----------------------------------------------------------------------------------

static uint64_t *levels_of(struct growth_stack *stack, enum growth_axis axis) {
    if (!stack->levels[axis])
        stack->levels[axis] = calloc(GROWTH_MOMENTS, sizeof(uint64_t));
    if (!stack->levels[axis])
        abort();
    return stack->levels[axis];
}

static void note_level(struct growth *growth, struct growth_stack *stack, enum growth_axis axis) {
    uint64_t level = stack->least[axis];
    stack->least[axis] = stack->live - stack->boxed;
    if (stack->levels[axis] || level >= WORTH_BYTES)
        levels_of(stack, axis)[growth->moments[axis].next] = level;
}

static void note_boxes(struct growth *growth, enum growth_axis axis) {
    const struct containers *containers = &growth->containers;
    struct growth_moments *moments = &growth->moments[axis];
    size_t moment = moments->next;
    if (!growth->is_shutdown)
        moments->box_count = 0;
    for (size_t i = 0; i < containers->count; i++) {
        const struct container *box = &containers->items[i];
        if (!box->is_alive || !container_counts(box) || box->stack >= growth->stack_count)
            continue;
        levels_of(&growth->stacks[box->stack], axis)[moment] +=
            container_content(box, growth->work);
        if (!growth->is_shutdown)
            *vector_push(moments->boxes, moments->box_count) = *box;
    }
}

// Moments up to this position on the axis, of `end` in all.
static void note_moments(struct growth *growth, enum growth_axis axis, uint64_t position,
                         uint64_t end, uint64_t time) {
    struct growth_moments *moments = &growth->moments[axis];
    while (moments->next < GROWTH_MOMENTS &&
           position >= (uint64_t)((unsigned __int128)end * (moments->next + 1) / GROWTH_MOMENTS)) {
        moments->times[moments->next] = time < growth->end ? time : growth->end;
        moments->work[moments->next] = growth->work;
        moments->frees[moments->next] = growth->frees;
        for (size_t i = 0; i < growth->stack_count; i++)
            note_level(growth, &growth->stacks[i], axis);
        note_boxes(growth, axis);
        moments->next++;
    }
}

// ---- events ------------------------------------------------------------------------------------

static void note_turn(const struct growth *growth, struct growth_stack *stack) {
    if (stack->turn == growth->turn)
        return;
    stack->turn = growth->turn;
    stack->at_turn = stack->live;
    stack->blocks_at_turn = stack->blocks;
}

static void change_live(struct growth *growth, const struct heap_block *block, bool more) {
    growth->live += more ? block->size : -block->size;
    if (block->stack >= growth->stack_count)
        return;
    struct growth_stack *stack = &growth->stacks[block->stack];
    note_turn(growth, stack);
    stack->live += more ? block->size : -block->size;
    stack->blocks += more ? 1 : -1ull;
}

static void change_boxed(struct growth *growth, const struct container *box, bool more) {
    if (container_counts(box) && box->stack < growth->stack_count)
        growth->stacks[box->stack].boxed += more ? box->size : -box->size;
}

static void note_least(struct growth *growth, uint32_t number) {
    if (number >= growth->stack_count)
        return;
    struct growth_stack *stack = &growth->stacks[number];
    uint64_t plain = stack->live - stack->boxed;
    for (enum growth_axis axis = 0; axis < GROWTH_AXES; axis++)
        if (plain < stack->least[axis])
            stack->least[axis] = plain;
}

static void begin_turn(struct growth *growth, uint64_t time) {
    growth->is_shutdown = true;
    growth->turn++;
    growth->turn_time = time;
    growth->turn_live = growth->live;
    growth->turn_rest = growth->rest;
    for (enum growth_axis axis = 0; axis < GROWTH_AXES; axis++)
        growth->moments[axis].count = growth->moments[axis].next;
    growth->allocated = growth->freed = 0;
    growth->stretch = growth->stretch_allocated = 0;
}

// Whether no more than a few allocations are to come: a runtime takes leave before and while it
// frees what it has.
static bool is_almost_over(const struct growth *growth) {
    uint64_t few = growth->total_work / GROWTH_MOMENTS;
    few = few < SHUTDOWN_ALLOCATIONS ? few : SHUTDOWN_ALLOCATIONS;
    return growth->work + few >= growth->total_work;
}

// Whether the program works again after it has released much: a stretch of events among which every
// fourth is an allocation.
static bool is_at_work(struct growth *growth, bool is_allocation) {
    growth->stretch_allocated += is_allocation;
    if (++growth->stretch < SHUTDOWN_STRETCH)
        return false;
    bool is_work = growth->stretch_allocated * 4 > growth->stretch;
    growth->stretch = growth->stretch_allocated = 0;
    return is_work;
}

// A pause that is longer than this and than the releases before it is no part of a shutdown: the
// program lives on. On a busy machine, a program that has much to release also rests in between;
// how long it rests there is seen while it works.
#define PAUSE       1500000000ull
#define PAUSE_RESTS 4
#define REST_DECAY  128

static bool is_paused(const struct growth *growth, uint64_t time) {
    return time > growth->latest + PAUSE + PAUSE_RESTS * growth->turn_rest +
                      (growth->latest - growth->turn_time);
}

// The longest rest between two events lately.
static void note_rest(struct growth *growth, uint64_t time) {
    uint64_t rest = time - growth->latest_event;
    growth->rest -= growth->rest / REST_DECAY;
    growth->rest = growth->latest_event && rest > growth->rest ? rest : growth->rest;
    growth->latest_event = time;
}

// A shutdown is releases close together, with hardly an allocation among them.
static void look_for_turn(struct growth *growth, const struct heap_event *event) {
    bool is_over = is_almost_over(growth);
    if (event->kind == HEAP_FREED || is_over) {
        if (!growth->is_shutdown || is_paused(growth, event->time))
            begin_turn(growth, event->time);
        growth->freed += event->kind == HEAP_FREED;
        growth->latest = event->time;
    }
    bool is_allocation = event->kind == HEAP_ALLOCATED ||
                         (event->kind == HEAP_RESIZED && event->block->size > event->before.size);
    growth->allocated += is_allocation;
    bool is_work = is_at_work(growth, is_allocation) ||
                   (is_allocation && growth->allocated * SHUTDOWN_FREES > growth->freed);
    if (is_work && !is_over)
        growth->is_shutdown = false;
}

static void on_event(void *context, const struct heap_event *event) {
    struct growth *growth = context;
    struct containers_change change;
    note_moments(growth, GROWTH_BY_TIME, event->time, growth->end, event->time);
    if (event->kind == HEAP_SKIPPED)
        return;
    look_for_turn(growth, event);
    note_rest(growth, event->time);
    containers_note(&growth->containers, event, growth->work, &change);
    if (event->kind == HEAP_FREED || event->kind == HEAP_RESIZED)
        change_live(growth, &event->before, false);
    if (event->kind == HEAP_ALLOCATED || event->kind == HEAP_RESIZED)
        change_live(growth, event->block, true);
    change_boxed(growth, &change.before, false);
    change_boxed(growth, &change.now, true);
    if (event->kind == HEAP_FREED || event->kind == HEAP_RESIZED)
        note_least(growth, event->before.stack);
    if (change.now.steps)
        note_least(growth, change.now.stack);
    growth->frees += event->kind == HEAP_FREED;
    growth->work += event->kind == HEAP_ALLOCATED;
    if (event->kind == HEAP_ALLOCATED)
        note_moments(growth, GROWTH_BY_WORK, growth->work, growth->total_work, event->time);
}

static void on_held(void *context, uint32_t stack, const char *holder) {
    struct growth *growth = context;
    if (stack >= growth->stack_count)
        return;
    free(growth->stacks[stack].holder);
    growth->stacks[stack].holder = base_copy(holder);
}

static void on_end(void *context, uint64_t time) {
    struct growth *growth = context;
    note_moments(growth, GROWTH_BY_TIME, UINT64_MAX, growth->end, time);
    // It lasts until the end and frees something, or it is none.
    if (!growth->is_shutdown || is_paused(growth, time) ||
        growth->live > growth->turn_live / 10 * 9) {
        begin_turn(growth, time);
        growth->is_shutdown = false;
    }
    for (size_t i = 0; i < growth->stack_count; i++)
        note_turn(growth, &growth->stacks[i]);
}

void growth_sink(struct growth *growth, struct heap_sink *sink) {
    *sink =
        (struct heap_sink){.context = growth, .event = on_event, .held = on_held, .end = on_end};
}
