// The end of a run on one screen: totals, and where the memory of the peak was wanted, a line for
// each function of the program's own. quern print has the rest.
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vector.h"
#include "report/heap/file.h"
#include "report/heap/text.h"
#include "report/results/results.h"
#include "report/shared/own.h"

#define NAMED_SITES    1000 // the largest; naming more takes long and changes little
#define NAME_WIDTH     90   // characters
#define SHARED_CALLERS 8    // functions that call one that allocates for others, at least

struct row {
    uint64_t bytes, blocks;
    const char *name;
};

// Where a stack's memory was wanted: the first own frame, and the next one of another function.
struct wanted {
    struct own_search search;
    const struct symbol_frame *own, *caller; // NULL: none
    const struct symbol_frame *other;        // without an own one: the first beyond the runtime
};

static bool is_same_function(const struct symbol_frame *left, const struct symbol_frame *right) {
    return left->name && right->name && strcmp(left->name, right->name) == 0;
}

static void look_at(struct wanted *wanted, const struct symbol_frame *frame) {
    char *path = result_path(frame);
    if (own_search_next(&wanted->search, frame->name, path, frame->object)) {
        wanted->own = frame;
        wanted->caller = NULL;
    } else if (wanted->search.found && !wanted->caller && !is_same_function(wanted->own, frame) &&
               own_frame(frame->name, path, frame->object)) {
        wanted->caller = frame;
    }
    if (!wanted->other ||
        (own_is_runtime(wanted->other->name, NULL) && !own_is_runtime(frame->name, path)))
        wanted->other = frame;
    free(path);
}

static struct wanted look_at_stack(const struct summary *summary, struct heap_names *names,
                                   uint32_t stack) {
    const struct stacks_entry *entry = stacks_get(&summary->stacks, stack);
    struct wanted wanted = {0};
    size_t first;
    size_t count = heap_names_trim(names, entry, &first);
    for (size_t i = 0; i < count; i++) {
        const struct heap_place *place = heap_names_place(names, entry->pcs[first + i]);
        for (size_t j = 0; j < place->count; j++)
            look_at(&wanted, &place->frames[j]);
    }
    return wanted;
}

// The line to be freed.
static char *label_of(const struct symbol_frame *frame) {
    struct text text = {0};
    if (!frame)
        return base_copy("[unknown]");
    char *label = symbol_frame_label(frame);
    text_format(&text, "%.*s%s", NAME_WIDTH, label, strlen(label) > NAME_WIDTH ? "..." : "");
    free(label);
    if (frame->file && frame->line)
        text_format(&text, " (%s:%u)", heap_file_base(frame->file), frame->line);
    return text_take(&text);
}

// ---- functions that allocate for others --------------------------------------------------------

// How many functions call each own one.
struct callers {
    struct map_texts pairs, functions;
    size_t *counts; // by number of the function
    size_t count;
};

static void callers_add(struct callers *callers, const struct wanted *wanted) {
    bool is_new;
    if (!wanted->caller || !wanted->own->name || !wanted->caller->name)
        return;
    struct text pair = {0};
    text_format(&pair, "%s\n%s", wanted->own->name, wanted->caller->name);
    map_texts_add(&callers->pairs, pair.bytes, pair.size, &is_new);
    text_free(&pair);
    if (!is_new)
        return;
    uint32_t number =
        map_texts_add(&callers->functions, wanted->own->name, strlen(wanted->own->name), &is_new);
    if (is_new)
        *vector_push(callers->counts, callers->count) = 0;
    callers->counts[number]++;
}

// The frame that wanted the memory: a function that allocates for many others (zmalloc) did not.
static const struct symbol_frame *who_wanted(const struct callers *callers,
                                             const struct wanted *wanted) {
    if (!wanted->own || !wanted->own->name || !wanted->caller)
        return wanted->own ? wanted->own : wanted->other;
    uint32_t number =
        map_texts_find(&callers->functions, wanted->own->name, strlen(wanted->own->name));
    bool is_shared = number != MAP_NONE && callers->counts[number] >= SHARED_CALLERS;
    return is_shared ? wanted->caller : wanted->own;
}

static void callers_free(struct callers *callers) {
    map_texts_free(&callers->pairs);
    map_texts_free(&callers->functions);
    free(callers->counts);
}

// ---- rows --------------------------------------------------------------------------------------

static int by_bytes(const void *left, const void *right) {
    const struct row *a = left, *b = right;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return strcmp(a->name, b->name);
}

struct site_order {
    uint64_t bytes;
    uint32_t stack;
};

static int by_site(const void *left, const void *right) {
    const struct site_order *a = left, *b = right;
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? 1 : -1;
    return a->stack < b->stack ? -1 : a->stack > b->stack;
}

// The largest stacks at the peak, at most NAMED_SITES; to be freed.
static struct site_order *largest_sites(const struct summary *summary, size_t *count) {
    struct site_order *order = base_allocate((summary->site_count + 1) * sizeof *order);
    *count = 0;
    for (size_t i = 0; i < summary->site_count; i++)
        if (summary->sites[i].peak_bytes)
            order[(*count)++] = (struct site_order){summary->sites[i].peak_bytes, (uint32_t)i};
    qsort(order, *count, sizeof *order, by_site);
    *count = *count < NAMED_SITES ? *count : NAMED_SITES;
    return order;
}

// A row for each function; the names belong to `functions`.
static struct row *sum_up(const struct summary *summary, struct heap_names *names,
                          struct map_texts *functions, size_t *count) {
    struct row *rows = NULL;
    size_t site_count;
    struct site_order *sites = largest_sites(summary, &site_count);
    struct wanted *wanted = base_allocate((site_count + 1) * sizeof *wanted);
    struct callers callers = {0};
    *count = 0;
    for (size_t i = 0; i < site_count; i++) {
        wanted[i] = look_at_stack(summary, names, sites[i].stack);
        callers_add(&callers, &wanted[i]);
    }
    for (size_t i = 0; i < site_count; i++) {
        const struct summary_site *site = &summary->sites[sites[i].stack];
        bool is_new;
        char *name = label_of(who_wanted(&callers, &wanted[i]));
        uint32_t number = map_texts_add(functions, name, strlen(name), &is_new);
        if (is_new)
            *vector_push(rows, *count) = (struct row){0};
        rows[number].bytes += site->peak_bytes;
        rows[number].blocks += site->peak;
        free(name);
    }
    callers_free(&callers);
    free(wanted);
    for (size_t i = 0; i < *count; i++)
        rows[i].name = functions->keys[i].bytes;
    if (*count)
        qsort(rows, *count, sizeof *rows, by_bytes);
    free(sites);
    return rows;
}

void heap_text_ending(const struct summary *summary, struct heap_names *names, size_t top,
                      void (*line)(void *context, const char *text), void *context) {
    struct map_texts functions = {0};
    size_t count;
    if (!top || !summary->total.peak_bytes)
        return;
    struct row *rows = sum_up(summary, names, &functions, &count);
    line(context, "");
    line(context, "Most bytes held at the peak, by function of the program:");
    for (size_t i = 0; i < count && i < top; i++) {
        char bytes[32], blocks[32];
        struct text text = {0};
        text_format(&text, "%15s bytes %5.1f %% %11s blocks  %s", text_number(bytes, rows[i].bytes),
                    100.0 * (double)rows[i].bytes / (double)summary->total.peak_bytes,
                    text_number(blocks, rows[i].blocks), rows[i].name);
        line(context, text.bytes);
        text_free(&text);
    }
    free(rows);
    map_texts_free(&functions);
}
