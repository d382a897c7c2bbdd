// Which stacks keep growing. What each one holds is noted at a number of moments; a line is laid
// through the moments after the warm-up. A stack grows if that line rises, if the moments lie close
// to it, and if the last third of the time has added something, too.
//
// Many programs free in the end what they have kept all the time: from where they do little but
// free, nothing is looked at any more.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "profile/heap/trend.h"
#include "report/heap/rows.h"
#include "report/heap/text.h"
#include "report/heap/views.h"

#define MOMENTS 64
#define WARM_UP 4 // a part of this kind of the time
// How well the line must fit: the share of the changes that it explains.
#define FIT 0.7

// So many releases for each allocation are the program's shutdown, if it goes on to the end.
#define SHUTDOWN_FREES 20
// Fewer moments are no time to judge.
#define FEWEST 12

struct heap_growth {
    const struct heap_file *file;
    uint64_t end;
    size_t stack_count;
    struct growth_stack {
        uint64_t live;     // bytes
        uint64_t *moments; // NULL: it held nothing at any of them
        uint64_t at_turn;  // bytes at that turn
        uint64_t turn;
    } * stacks;    // by number
    size_t moment; // the next one
    // What may be the shutdown: when it began, its last release, and what there was in it. Each is
    // a turn: what a stack held then is noted when it changes for the first time afterwards.
    bool is_shutdown;
    uint64_t turn, turn_time, latest;
    uint64_t allocated, freed;
};

struct line {
    uint32_t stack;
    double slope; // bytes a second
    double fit;
    uint64_t first, last; // bytes after the warm-up, in the end
};

struct heap_growth *heap_growth_new(const struct heap_file *file) {
    struct heap_growth *growth = base_allocate(sizeof *growth);
    *growth = (struct heap_growth){
        .file = file, .end = file->summary.time, .stack_count = file->summary.site_count};
    growth->stacks = calloc(growth->stack_count + 1, sizeof *growth->stacks);
    if (!growth->stacks)
        abort();
    return growth;
}

void heap_growth_free(struct heap_growth *growth) {
    for (size_t i = 0; i < growth->stack_count; i++)
        free(growth->stacks[i].moments);
    free(growth->stacks);
    free(growth);
}

// ---- what happens ----

static uint64_t time_of(const struct heap_growth *growth, size_t moment) {
    return growth->end / MOMENTS * (moment + 1);
}

static void note_moments(struct heap_growth *growth, uint64_t time) {
    for (; growth->moment < MOMENTS && time >= time_of(growth, growth->moment); growth->moment++) {
        for (size_t i = 0; i < growth->stack_count; i++) {
            struct growth_stack *stack = &growth->stacks[i];
            if (stack->live && !stack->moments)
                stack->moments = calloc(MOMENTS, sizeof *stack->moments);
            if (stack->live && !stack->moments)
                abort();
            if (stack->moments)
                stack->moments[growth->moment] = stack->live;
        }
    }
}

static void note_turn(const struct heap_growth *growth, struct growth_stack *stack) {
    if (stack->turn == growth->turn)
        return;
    stack->turn = growth->turn;
    stack->at_turn = stack->live;
}

static void change(struct heap_growth *growth, const struct heap_block *block, bool more) {
    if (block->stack >= growth->stack_count)
        return;
    struct growth_stack *stack = &growth->stacks[block->stack];
    note_turn(growth, stack);
    stack->live += more ? block->size : -block->size;
}

// A shutdown is releases close together, with hardly an allocation among them.
static void look_for_turn(struct heap_growth *growth, const struct heap_event *event) {
    if (event->kind == HEAP_FREED) {
        if (!growth->is_shutdown || event->time > growth->latest + growth->end / MOMENTS) {
            growth->is_shutdown = true;
            growth->turn++;
            growth->turn_time = event->time;
            growth->allocated = growth->freed = 0;
        }
        growth->freed++;
        growth->latest = event->time;
    } else if (event->kind == HEAP_ALLOCATED ||
               (event->kind == HEAP_RESIZED && event->block->size > event->before.size)) {
        growth->allocated++;
        if (growth->allocated * SHUTDOWN_FREES > growth->freed)
            growth->is_shutdown = false;
    }
}

static void on_event(void *context, const struct heap_event *event) {
    struct heap_growth *growth = context;
    note_moments(growth, event->time);
    look_for_turn(growth, event);
    if (event->kind == HEAP_FREED || event->kind == HEAP_RESIZED)
        change(growth, &event->before, false);
    if (event->kind == HEAP_ALLOCATED || event->kind == HEAP_RESIZED)
        change(growth, event->block, true);
}

static void on_end(void *context, uint64_t time) {
    struct heap_growth *growth = context;
    note_moments(growth, UINT64_MAX);
    // It lasts until the end, or it is none.
    if (!growth->is_shutdown || growth->end > growth->latest + growth->end / MOMENTS) {
        growth->is_shutdown = false;
        growth->turn++;
        growth->turn_time = growth->end;
    }
    for (size_t i = 0; i < growth->stack_count; i++)
        note_turn(growth, &growth->stacks[i]);
}

void heap_growth_sink(struct heap_growth *growth, struct heap_sink *sink) {
    *sink = (struct heap_sink){.context = growth, .event = on_event, .end = on_end};
}

// ---- what it comes to ----

// Moments that are looked at: those before the shutdown.
static size_t moment_count(const struct heap_growth *growth) {
    size_t count = 0;
    while (count < MOMENTS && time_of(growth, count) <= growth->turn_time)
        count++;
    return count;
}

// The line through the moments after the warm-up, by least squares.
static struct line line_of(const struct heap_growth *growth, uint32_t number, size_t count) {
    const struct growth_stack *stack = &growth->stacks[number];
    struct trend trend = trend_of(stack->moments, count / WARM_UP, count);
    double step = (double)growth->end / MOMENTS / 1e9;
    return (struct line){
        .stack = number,
        .slope = step > 0 ? trend.slope / step : 0,
        .fit = trend.fit,
        .first = stack->moments[count / WARM_UP],
        .last = stack->at_turn,
    };
}

static bool keeps_growing(const struct heap_growth *growth, const struct line *line, size_t count) {
    const uint64_t *moments = growth->stacks[line->stack].moments;
    return line->slope > 0 && line->fit >= FIT && line->last > moments[count * 2 / 3];
}

static int by_slope(const void *left, const void *right) {
    const struct line *a = left, *b = right;
    if (a->slope != b->slope)
        return a->slope < b->slope ? 1 : -1;
    return a->stack < b->stack ? -1 : a->stack > b->stack;
}

// The stacks that grow; the array is to be freed.
static struct line *find_lines(const struct heap_growth *growth, size_t moments, size_t *count) {
    struct line *lines = base_allocate((growth->stack_count + 1) * sizeof *lines);
    *count = 0;
    for (size_t i = 0; i < growth->stack_count && moments >= FEWEST; i++) {
        if (!growth->stacks[i].moments || !growth->stacks[i].at_turn)
            continue;
        lines[*count] = line_of(growth, (uint32_t)i, moments);
        *count += keeps_growing(growth, &lines[*count], moments);
    }
    qsort(lines, *count, sizeof *lines, by_slope);
    return lines;
}

void heap_view_growth(FILE *out, struct heap_growth *growth,
                      const struct heap_view_options *options) {
    size_t count, moments = moment_count(growth);
    struct line *lines = find_lines(growth, moments, &count);
    if (moments < FEWEST) {
        fprintf(out,
                "After %.3f s of %.3f s the program did little but free: too little time to "
                "see growth\n",
                (double)growth->turn_time / 1e9, (double)growth->end / 1e9);
        free(lines);
        return;
    }
    fprintf(out, "Stacks that kept growing from %.3f s, when the warm-up ended, to %.3f s: %zu\n",
            (double)time_of(growth, moments / WARM_UP) / 1e9, (double)growth->turn_time / 1e9,
            count);
    if (growth->is_shutdown && growth->freed >= SHUTDOWN_FREES)
        fprintf(out, "(what the program freed at its end, %s blocks, does not count)\n",
                heap_text_number((char[32]){0}, growth->freed));
    for (size_t i = 0; i < count && i < options->top; i++) {
        char slope[32], first[32], last[32];
        fprintf(out, "+%s bytes a second (%s -> %s), fit %.0f %%\n",
                heap_text_number(slope, (uint64_t)llround(lines[i].slope)),
                heap_text_number(first, lines[i].first), heap_text_number(last, lines[i].last),
                100 * lines[i].fit);
        rows_stack(out, growth->file, lines[i].stack, options->callers);
    }
    if (count > options->top)
        fprintf(out, "and %zu more\n", count - options->top);
    free(lines);
}
