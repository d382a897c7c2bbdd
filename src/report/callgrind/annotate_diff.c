// What has changed between two profiles: functions, matched by file and name without directories.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vector.h"
#include "report/callgrind/annotate.h"

struct change {
    const char *file, *name;
    uint64_t before[COST_EVENTS], after[COST_EVENTS]; // by the first profile's events
};

struct changes {
    struct change *items;
    size_t count;
};

static const char *base_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int by_name(const void *left, const void *right) {
    const struct change *a = left, *b = right;
    int order = strcmp(a->file, b->file);
    return order ? order : strcmp(a->name, b->name);
}

static uint64_t distance(uint64_t a, uint64_t b) {
    return a > b ? a - b : b - a;
}

static int by_size(const void *left, const void *right, void *sort) {
    const struct change *a = left, *b = right;
    unsigned event = *(unsigned *)sort;
    uint64_t x = distance(a->before[event], a->after[event]);
    uint64_t y = distance(b->before[event], b->after[event]);
    return x != y ? (x < y ? 1 : -1) : by_name(a, b);
}

// All functions of a profile, with its values in the columns of `events`.
static void add_all(struct changes *changes, const struct cost_profile *profile,
                    const struct cost_profile *events, bool after) {
    for (size_t i = 0; i < profile->function_count; i++) {
        const struct cost_function *function = &profile->functions[i];
        struct change *change = vector_push(changes->items, changes->count);
        *change = (struct change){.file = base_of(function->file), .name = function->name};
        for (unsigned e = 0; e < events->event_count; e++) {
            int column = costs_event(profile, events->events[e]);
            if (column >= 0)
                (after ? change->after : change->before)[e] =
                    cost_values(profile, function->own)[column];
        }
    }
}

// The same function of both profiles becomes one.
static void merge(struct changes *changes, unsigned event_count) {
    size_t kept = 0;
    if (changes->count)
        qsort(changes->items, changes->count, sizeof *changes->items, by_name);
    for (size_t i = 0; i < changes->count; i++) {
        struct change *last = kept ? &changes->items[kept - 1] : NULL;
        if (!last || by_name(last, &changes->items[i]) != 0) {
            changes->items[kept++] = changes->items[i];
            continue;
        }
        for (unsigned e = 0; e < event_count; e++) {
            last->before[e] += changes->items[i].before[e];
            last->after[e] += changes->items[i].after[e];
        }
    }
    changes->count = kept;
}

static void print_change(FILE *out, uint64_t before, uint64_t after) {
    struct text text = {0};
    if (before == after)
        text_char(&text, '.');
    else
        text_char(&text, after > before ? '+' : '-');
    if (before != after)
        text_commas(&text, distance(before, after));
    if (before && before != after)
        text_format(&text, " (%+.1f%%)", 100 * ((double)after - (double)before) / (double)before);
    fprintf(out, "%26s  ", text.bytes);
    text_free(&text);
}

static void print_name(FILE *out, const char *name) {
    for (; *name; name++)
        fputc((unsigned char)*name < ' ' || *name == 127 ? '?' : *name, out);
}

void annotate_diff(FILE *out, const struct cost_profile *before, const struct cost_profile *after,
                   const struct annotate_options *options, size_t top) {
    struct changes changes = {0};
    unsigned sort = options->sort;
    add_all(&changes, before, before, false);
    add_all(&changes, after, before, true);
    merge(&changes, before->event_count);
    if (changes.count)
        qsort_r(changes.items, changes.count, sizeof *changes.items, by_size, &sort);
    for (unsigned i = 0; i < options->show_count; i++)
        fprintf(out, "%26s  ", before->events[options->show[i]]);
    fputs("file:function\n", out);
    for (unsigned i = 0; i < options->show_count; i++) {
        int column = costs_event(after, before->events[options->show[i]]);
        print_change(out, before->totals[options->show[i]], column < 0 ? 0 : after->totals[column]);
    }
    fputs("PROGRAM TOTALS\n", out);
    for (size_t i = 0; i < changes.count && i < top; i++) {
        const struct change *change = &changes.items[i];
        if (change->before[sort] == change->after[sort])
            break;
        for (unsigned e = 0; e < options->show_count; e++)
            print_change(out, change->before[options->show[e]], change->after[options->show[e]]);
        print_name(out, change->file);
        fputc(':', out);
        print_name(out, change->name);
        fputc('\n', out);
    }
    free(changes.items);
}
