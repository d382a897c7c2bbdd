// Which stacks keep growing. What each one that holds memory in the end held is noted at a number
// of moments; a line is laid through the moments after the warm-up. A stack grows if that line
// rises, if the moments lie close to it, and if the last third of the time has added something,
// too.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "profile/trend.h"
#include "report/heap_rows.h"
#include "report/heap_text.h"
#include "report/heap_views.h"

#define MOMENTS 64
#define WARM_UP (MOMENTS / 4)
// How well the line must fit: the share of the changes that it explains.
#define FIT 0.7

struct heap_growth {
    const struct heap_file *file;
    uint64_t end;
    uint64_t *live;    // by stack
    uint32_t *tracked; // by stack: its place in `moments` plus 1; 0: it holds nothing in the end
    uint64_t (*moments)[MOMENTS];
    size_t stack_count, tracked_count;
    size_t moment; // the next one
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
    growth->live = calloc(growth->stack_count + 1, sizeof *growth->live);
    growth->tracked = calloc(growth->stack_count + 1, sizeof *growth->tracked);
    for (size_t i = 0; growth->tracked && i < growth->stack_count; i++)
        if (file->summary.sites[i].live_bytes)
            growth->tracked[i] = (uint32_t)++growth->tracked_count;
    growth->moments = calloc(growth->tracked_count + 1, sizeof *growth->moments);
    if (!growth->live || !growth->tracked || !growth->moments)
        abort();
    return growth;
}

void heap_growth_free(struct heap_growth *growth) {
    free(growth->live);
    free(growth->tracked);
    free(growth->moments);
    free(growth);
}

static void note_moments(struct heap_growth *growth, uint64_t time) {
    for (; growth->moment < MOMENTS; growth->moment++) {
        if (time < growth->end / MOMENTS * (growth->moment + 1))
            return;
        for (size_t i = 0; i < growth->stack_count; i++)
            if (growth->tracked[i])
                growth->moments[growth->tracked[i] - 1][growth->moment] = growth->live[i];
    }
}

static void change(struct heap_growth *growth, const struct heap_block *block, bool more) {
    if (block->stack < growth->stack_count)
        growth->live[block->stack] += more ? block->size : -block->size;
}

static void on_event(void *context, const struct heap_event *event) {
    struct heap_growth *growth = context;
    note_moments(growth, event->time);
    if (event->kind == HEAP_FREED || event->kind == HEAP_RESIZED)
        change(growth, &event->before, false);
    if (event->kind == HEAP_ALLOCATED || event->kind == HEAP_RESIZED)
        change(growth, event->block, true);
}

static void on_end(void *context, uint64_t time) {
    note_moments(context, UINT64_MAX);
}

void heap_growth_sink(struct heap_growth *growth, struct heap_sink *sink) {
    *sink = (struct heap_sink){.context = growth, .event = on_event, .end = on_end};
}

// The line through the moments after the warm-up, by least squares.
static struct line line_of(const struct heap_growth *growth, uint32_t stack) {
    const uint64_t *moments = growth->moments[growth->tracked[stack] - 1];
    struct trend trend = trend_of(moments, WARM_UP, MOMENTS);
    double step = (double)growth->end / MOMENTS / 1e9;
    return (struct line){
        .stack = stack,
        .slope = step > 0 ? trend.slope / step : 0,
        .fit = trend.fit,
        .first = moments[WARM_UP],
        .last = moments[MOMENTS - 1],
    };
}

static bool keeps_growing(const struct heap_growth *growth, const struct line *line) {
    const uint64_t *moments = growth->moments[growth->tracked[line->stack] - 1];
    return line->slope > 0 && line->fit >= FIT && line->last > moments[MOMENTS * 2 / 3];
}

static int by_slope(const void *left, const void *right) {
    const struct line *a = left, *b = right;
    if (a->slope != b->slope)
        return a->slope < b->slope ? 1 : -1;
    return a->stack < b->stack ? -1 : a->stack > b->stack;
}

void heap_view_growth(FILE *out, struct heap_growth *growth,
                      const struct heap_view_options *options) {
    struct line *lines = base_allocate((growth->tracked_count + 1) * sizeof *lines);
    size_t count = 0;
    for (size_t i = 0; i < growth->stack_count; i++) {
        if (!growth->tracked[i])
            continue;
        lines[count] = line_of(growth, (uint32_t)i);
        count += keeps_growing(growth, &lines[count]);
    }
    qsort(lines, count, sizeof *lines, by_slope);
    fprintf(out, "Stacks that kept growing from %.3f s, when the warm-up ended, to %.3f s: %zu\n",
            (double)growth->end / 1e9 / MOMENTS * (WARM_UP + 1), (double)growth->end / 1e9, count);
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
