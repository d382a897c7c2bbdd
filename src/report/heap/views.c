#include "report/heap/views.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vector.h"
#include "profile/stacks/calltree.h"
#include "report/heap/rows.h"
#include "report/shared/tree_text.h"

#define NODES_MAX ((size_t)1 << 22)
#define WIDE      120 // columns of a terminal that has room for all numbers and a name
#define NARROW    76

// ---- trees ----

static void write_tree(FILE *out, const struct heap_file *file,
                       const struct heap_view_options *options, bool bottom_up) {
    struct calltree *tree = rows_tree(file, options->weight, bottom_up, NODES_MAX);
    char digits[32];
    fprintf(out, "%s%s: %s%s\n", paint_code(options->paint, PAINT_TITLE), options->weight->help,
            text_number(digits, tree->root.total), paint_code(options->paint, PAINT_PLAIN));
    tree_text(out, tree, options->threshold, options->paint);
    calltree_free(tree);
}

void heap_view_top_down(FILE *out, const struct heap_file *file,
                        const struct heap_view_options *options) {
    write_tree(out, file, options, false);
}

void heap_view_bottom_up(FILE *out, const struct heap_file *file,
                         const struct heap_view_options *options) {
    write_tree(out, file, options, true);
}

// ---- tables ----

struct row {
    char *name;
    struct summary_site sums;
};

static void add_sums(struct summary_site *to, const struct summary_site *from) {
    to->allocated += from->allocated;
    to->allocated_bytes += from->allocated_bytes;
    to->temporary += from->temporary;
    to->live += from->live;
    to->live_bytes += from->live_bytes;
    to->peak += from->peak;
    to->peak_bytes += from->peak_bytes;
}

static int by_weight(const void *left, const void *right, void *context) {
    const struct row *a = left, *b = right;
    uint64_t first = heap_weight_of(context, &a->sums), second = heap_weight_of(context, &b->sums);
    return first < second ? 1 : first > second ? -1 : strcmp(a->name, b->name);
}

// Numbers of a row, of a narrow terminal only those that matter most; the columns they take.
static size_t write_numbers(FILE *out, const struct paint *paint, const char *const texts[5]) {
    // Terminals narrower than this do without the column.
    static const unsigned needs[5] = {0, WIDE, NARROW, 0, WIDE};
    static const int widths[5] = {16, 16, 14, 16, 14};
    unsigned width = paint && paint->width ? paint->width : WIDE;
    size_t columns = 0;
    for (size_t i = 0; i < 5; i++) {
        if (width < needs[i])
            continue;
        fprintf(out, "%s%*s", columns ? " " : "", widths[i], texts[i]);
        columns += (size_t)widths[i] + (columns != 0);
    }
    fputs("  ", out);
    return columns + 2 + (paint ? PAINT_CELLS + 1 : 0);
}

static void write_row(FILE *out, const struct row *row, double share, const struct paint *paint) {
    const struct summary_site *sums = &row->sums;
    const uint64_t numbers[5] = {sums->peak_bytes, sums->allocated_bytes, sums->allocated,
                                 sums->live_bytes, sums->temporary};
    char digits[5][32], bar[PAINT_BAR];
    const char *texts[5];
    for (size_t i = 0; i < 5; i++)
        texts[i] = text_number(digits[i], numbers[i]);
    fputs(paint_bar(bar, paint, share), out);
    size_t column = write_numbers(out, paint, texts);
    paint_name(out, paint, row->name, column);
    fputc('\n', out);
}

// Frees the names.
static void write_rows(FILE *out, const char *title, struct row *rows, size_t count,
                       const struct heap_view_options *options) {
    static const char *const heads[5] = {"peak bytes", "allocated", "blocks", "not freed",
                                         "temporary"};
    const struct paint *paint = options->paint;
    qsort_r(rows, count, sizeof *rows, by_weight, (void *)options->weight);
    double most = count ? (double)heap_weight_of(options->weight, &rows[0].sums) : 0;
    fprintf(out, "%s%*s", paint_code(paint, PAINT_TITLE), paint ? PAINT_CELLS + 1 : 0, "");
    write_numbers(out, paint, heads);
    fprintf(out, "%s%s\n", title, paint_code(paint, PAINT_PLAIN));
    for (size_t i = 0; i < count; i++) {
        double weight = (double)heap_weight_of(options->weight, &rows[i].sums);
        if (i < options->top)
            write_row(out, &rows[i], most > 0 ? weight / most : 0, paint);
        free(rows[i].name);
    }
    if (count > options->top)
        fprintf(out, "and %zu more\n", count - options->top);
}

// The library of who wanted the memory.
static void take_library(void *context, const struct heap_place *place,
                         const struct symbol_frame *frame) {
    const char **library = context;
    if (!*library)
        *library = frame->object ? frame->object : "[unknown]";
}

void heap_view_libraries(FILE *out, const struct heap_file *file,
                         const struct heap_view_options *options) {
    struct row *rows = NULL;
    size_t count = 0;
    for (size_t i = 0; i < file->summary.site_count; i++) {
        const struct summary_site *site = &file->summary.sites[i];
        const char *library = NULL;
        if (!rows_has(site))
            continue;
        rows_frames(file, (uint32_t)i, take_library, &library);
        size_t at = 0;
        while (at < count && strcmp(rows[at].name, library) != 0)
            at++;
        if (at == count)
            *vector_push(rows, count) = (struct row){.name = base_copy(library)};
        add_sums(&rows[at].sums, site);
    }
    write_rows(out, "library", rows, count, options);
    free(rows);
}

// ---- threads ----

static void on_event(void *context, const struct heap_event *event) {
    struct heap_threads *threads = context;
    struct heap_event told = *event;
    struct heap_block block;
    told.before.stack = told.before.thread;
    if (event->kind == HEAP_ALLOCATED || event->kind == HEAP_RESIZED) {
        block = *event->block;
        block.stack = block.thread;
        told.block = &block;
    }
    threads->inner.event(threads->inner.context, &told);
}

static void on_corrected(void *context, const struct heap_correction *correction) {
    struct heap_threads *threads = context;
    struct heap_correction told = *correction;
    told.stack = told.thread;
    threads->inner.corrected(threads->inner.context, &told);
}

static void on_end(void *context, uint64_t time) {
    struct heap_threads *threads = context;
    threads->inner.end(threads->inner.context, time);
}

void heap_threads_sink(struct heap_threads *threads, struct heap_sink *sink) {
    summary_sink(&threads->sums, &threads->inner);
    *sink = (struct heap_sink){
        .context = threads, .event = on_event, .corrected = on_corrected, .end = on_end};
}

void heap_threads_free(struct heap_threads *threads) {
    summary_free(&threads->sums);
}

void heap_view_threads(FILE *out, const struct heap_file *file, const struct heap_threads *threads,
                       const struct heap_view_options *options) {
    const struct summary *sums = &threads->sums;
    struct row *rows = base_allocate((sums->site_count + 1) * sizeof *rows);
    size_t count = 0;
    for (size_t i = 0; i < sums->site_count; i++) {
        if (!rows_has(&sums->sites[i]))
            continue;
        struct text name = {0};
        if (i == 0 || i > file->summary.threads) {
            text_string(&name, "(no thread)");
        } else {
            const struct summary_thread *thread = &file->summary.thread_list[i];
            text_format(&name, "%zu %s (%d)", i, thread->name ? thread->name : "?", thread->tid);
        }
        rows[count++] = (struct row){.name = text_take(&name), .sums = sums->sites[i]};
    }
    write_rows(out, "thread that allocated", rows, count, options);
    free(rows);
}
