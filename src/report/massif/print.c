#include "report/massif/print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/shared/stack_text.h"

struct printer {
    FILE *out;
    const struct massif_file *file;
    const struct massif_print_options *options;
    struct text prefix; // of the lines of a tree
};

static uint64_t total_of(const struct massif_file_snapshot *snapshot) {
    return snapshot->heap + snapshot->extra + snapshot->stacks;
}

static uint64_t peak_of(const struct massif_file *file) {
    uint64_t peak = 0;
    for (size_t i = 0; i < file->snapshot_count; i++)
        if (total_of(&file->snapshots[i]) > peak)
            peak = total_of(&file->snapshots[i]);
    return peak;
}

static void rule(struct printer *printer) {
    for (int i = 0; i < 80; i++)
        fputc('-', printer->out);
    fputc('\n', printer->out);
}

static void print_head(struct printer *printer) {
    rule(printer);
    fputs("Command:            ", printer->out);
    stack_text_escaped(printer->out, printer->file->command);
    fputs("\nMassif arguments:   ", printer->out);
    stack_text_escaped(printer->out, printer->file->description);
    fprintf(printer->out, "\nms_print arguments: %s\n", printer->options->arguments);
    rule(printer);
    fputs("\n\n", printer->out);
}

// ---- the graph ----

// A number with at most five characters, and its unit: divided by `step` while it has more than
// three digits before the point.
struct label {
    char text[32];
    const char *unit;
};

static struct label label_of(uint64_t number, const char *const *units, const double *steps) {
    struct label label = {.unit = units[0]};
    double scaled = (double)number;
    for (size_t i = 0; units[i + 1] && scaled >= (steps[i] == 3600 ? 3600 : 1000); i++) {
        scaled /= steps[i];
        label.unit = units[i + 1];
    }
    if (number < 1000)
        snprintf(label.text, sizeof label.text, "%5" PRIu64, number);
    else
        snprintf(label.text, sizeof label.text, "%5.*f",
                 scaled < 10    ? 3
                 : scaled < 100 ? 2
                                : 1,
                 scaled);
    return label;
}

static struct label bytes_label(uint64_t bytes) {
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB", "PB", "EB", NULL};
    static const double steps[] = {1024, 1024, 1024, 1024, 1024, 1024};
    return label_of(bytes, units, steps);
}

static struct label time_label(uint64_t time, const char *unit) {
    static const char *const instructions[] = {"i", "ki", "Mi", "Gi", "Ti", "Pi", "Ei", NULL};
    static const double binary[] = {1024, 1024, 1024, 1024, 1024, 1024};
    static const char *const clock[] = {"ms", "s", "h", NULL};
    static const double sixty[] = {1000, 3600};
    if (strcmp(unit, "B") == 0)
        return bytes_label(time);
    return strcmp(unit, "ms") == 0 ? label_of(time, clock, sixty)
                                   : label_of(time, instructions, binary);
}

struct graph {
    unsigned width, height;
    char *cells; // width + 1 columns of height + 1 characters
};

static char *cell(const struct graph *graph, unsigned x, unsigned y) {
    return &graph->cells[x * (graph->height + 1) + y];
}

static void draw_axes(struct graph *graph) {
    memset(graph->cells, ' ', (size_t)(graph->width + 1) * (graph->height + 1));
    for (unsigned x = 1; x < graph->width; x++)
        *cell(graph, x, 0) = '-';
    for (unsigned y = 1; y < graph->height; y++)
        *cell(graph, 0, y) = '|';
    *cell(graph, 0, 0) = '+';
    *cell(graph, graph->width, 0) = '>';
    *cell(graph, 0, graph->height) = '^';
}

// Peaks cover detailed snapshots, and these ordinary ones.
static int rank_of(char mark) {
    return mark == '#' ? 3 : mark == '@' ? 2 : mark == ':' ? 1 : 0;
}

static char mark_of(const struct massif_file *file, size_t index) {
    // The peak is the last one that says so.
    bool is_peak = file->snapshots[index].kind == MASSIF_FILE_PEAK;
    for (size_t i = index + 1; is_peak && i < file->snapshot_count; i++)
        is_peak = file->snapshots[i].kind != MASSIF_FILE_PEAK;
    if (is_peak)
        return '#';
    return file->snapshots[index].kind == MASSIF_FILE_EMPTY ? ':' : '@';
}

// Draws a bar for each snapshot, and from its top a line to the next one.
static void draw_bars(struct graph *graph, const struct massif_file *file, uint64_t peak,
                      uint64_t end) {
    double step = (double)peak / graph->height;
    unsigned x = 0;
    unsigned top = 0;
    char mark = ':';
    for (size_t i = 0; i < file->snapshot_count; i++) {
        const struct massif_file_snapshot *snapshot = &file->snapshots[i];
        unsigned last_x = x;
        x = (unsigned)((double)snapshot->time / (double)end * graph->width) + 1;
        if (x > graph->width)
            x = graph->width;
        for (unsigned between = last_x + 1; top > 0 && between < x; between++)
            *cell(graph, between, top) = mark;
        mark = mark_of(file, i);
        top = 0;
        for (unsigned y = 1; y <= graph->height; y++) {
            if ((double)total_of(snapshot) < y * step)
                continue;
            if (rank_of(mark) >= rank_of(*cell(graph, x, y)))
                *cell(graph, x, y) = mark;
            top = y;
        }
    }
}

// On a terminal columns are blocks, the peak's in another colour.
static void put_cell(const struct printer *printer, char mark) {
    const struct paint *paint = printer->options->paint;
    const char *block = paint && paint->unicode ? "█" : NULL;
    if (!paint || !rank_of(mark)) {
        fputc(mark, printer->out);
        return;
    }
    fputs(paint_code(paint, mark == '#'   ? PAINT_BAD
                            : mark == '@' ? PAINT_GOOD
                                          : PAINT_NAME),
          printer->out);
    if (block)
        fputs(block, printer->out);
    else
        fputc(mark, printer->out);
    fputs(paint_code(paint, PAINT_PLAIN), printer->out);
}

static void print_graph(struct printer *printer) {
    const struct massif_file *file = printer->file;
    struct graph graph = {.width = printer->options->width, .height = printer->options->height};
    uint64_t peak = peak_of(file);
    uint64_t end = file->snapshots[file->snapshot_count - 1].time;
    peak = peak ? peak : 1;
    end = end ? end : 1;
    graph.cells = base_allocate((size_t)(graph.width + 1) * (graph.height + 1));
    draw_axes(&graph);
    draw_bars(&graph, file, peak, end);
    struct label top = bytes_label(peak);
    struct label right = time_label(end, file->time_unit);
    fprintf(printer->out, "    %2s\n", top.unit);
    for (unsigned y = graph.height + 1; y-- > 0;) {
        fputs(y == graph.height ? top.text : y == 0 ? "   0 " : "     ", printer->out);
        for (unsigned x = 0; x <= graph.width; x++)
            put_cell(printer, *cell(&graph, x, y));
        fprintf(printer->out, "%s\n", y == 0 ? right.unit : "");
    }
    fprintf(printer->out, "     0%*s%5s\n", graph.width > 5 ? (int)graph.width - 5 : 0, "",
            right.text);
    free(graph.cells);
}

static void print_counts(struct printer *printer) {
    const struct massif_file *file = printer->file;
    fprintf(printer->out, "\nNumber of snapshots: %zu\n Detailed snapshots: [",
            file->snapshot_count);
    const char *separator = "";
    for (size_t i = 0; i < file->snapshot_count; i++) {
        if (file->snapshots[i].kind == MASSIF_FILE_EMPTY)
            continue;
        fprintf(printer->out, "%s%zu%s", separator, i, mark_of(file, i) == '#' ? " (peak)" : "");
        separator = ", ";
    }
    fputs("]\n\n", printer->out);
}

// ---- the table and the trees ----

static void print_columns(struct printer *printer) {
    char time[32];
    snprintf(time, sizeof time, "time(%s)", printer->file->time_unit);
    rule(printer);
    fprintf(printer->out, "%s%3s %14s %16s %16s %13s %12s%s\n",
            paint_code(printer->options->paint, PAINT_TITLE), "n", time, "total(B)",
            "useful-heap(B)", "extra-heap(B)", "stacks(B)",
            paint_code(printer->options->paint, PAINT_PLAIN));
    rule(printer);
}

// One node; what it comes to if it is too small to be shown, and how many such there are.
struct folded {
    size_t count;
    uint64_t bytes;
};

static void print_share(struct printer *printer, const char *arrow, uint64_t bytes,
                        uint64_t total) {
    char digits[32];
    fprintf(printer->out, "%s%s%05.2f%% (%sB)", printer->prefix.bytes ? printer->prefix.bytes : "",
            arrow, total ? 100.0 * (double)bytes / (double)total : 0, text_number(digits, bytes));
}

static void cut_prefix(struct printer *printer, size_t size) {
    if (printer->prefix.bytes)
        printer->prefix.bytes[size] = 0;
    printer->prefix.size = size;
}

static struct folded print_node(struct printer *printer, size_t *next, uint64_t total, bool is_root,
                                const char *below) {
    const struct massif_file_node *node = &printer->file->nodes[(*next)++];
    double threshold = printer->options->threshold;
    bool is_shown = is_root || threshold == 0 ||
                    (total && (double)node->bytes * 100 / (double)total >= threshold);
    if (is_shown) {
        const struct paint *paint = printer->options->paint;
        print_share(printer, is_root ? "" : "->", node->bytes, total);
        fputs(paint_code(paint, is_root ? PAINT_PLAIN : PAINT_NAME), printer->out);
        stack_text_escaped(printer->out, node->text);
        fprintf(printer->out, "%s\n", paint_code(paint, PAINT_PLAIN));
    }
    size_t size = printer->prefix.size;
    text_string(&printer->prefix, below);
    struct folded folded = {0};
    for (size_t i = 0; i < node->children; i++) {
        struct folded child =
            print_node(printer, next, total, false, i + 1 == node->children ? "  " : "| ");
        folded.count += child.count;
        folded.bytes += child.bytes;
    }
    if (is_shown && folded.count) {
        print_share(printer, "->", folded.bytes, total);
        fprintf(printer->out, " in %zu+ places, all below ms_print's threshold (%05.2f%%)\n",
                folded.count, threshold);
    }
    if (is_shown && (folded.count || !node->children))
        fprintf(printer->out, "%s\n", printer->prefix.bytes);
    cut_prefix(printer, size);
    return is_shown ? (struct folded){0} : (struct folded){1, node->bytes};
}

static void print_snapshot(struct printer *printer, const struct massif_file_snapshot *snapshot) {
    char texts[5][32];
    const uint64_t numbers[] = {snapshot->time, total_of(snapshot), snapshot->heap, snapshot->extra,
                                snapshot->stacks};
    for (int i = 0; i < 5; i++)
        text_number(texts[i], numbers[i]);
    fprintf(printer->out, "%3" PRIu64 " %14s %16s %16s %13s %12s\n", snapshot->number, texts[0],
            texts[1], texts[2], texts[3], texts[4]);
    if (snapshot->kind == MASSIF_FILE_EMPTY)
        return;
    size_t node = snapshot->first_node;
    print_node(printer, &node, total_of(snapshot), true, "");
}

void massif_print(FILE *out, const struct massif_file *file,
                  const struct massif_print_options *options) {
    struct printer printer = {.out = out, .file = file, .options = options};
    if (options->peak_only) {
        char digits[32];
        fprintf(out, "Peak memory usage: %s bytes\n", text_number(digits, peak_of(file)));
        return;
    }
    print_head(&printer);
    print_graph(&printer);
    print_counts(&printer);
    print_columns(&printer);
    for (size_t i = 0; i < file->snapshot_count; i++) {
        print_snapshot(&printer, &file->snapshots[i]);
        if (file->snapshots[i].kind != MASSIF_FILE_EMPTY && i + 1 < file->snapshot_count)
            print_columns(&printer);
    }
    text_free(&printer.prefix);
}
