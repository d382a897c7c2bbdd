#include "report/heap/export.h"

#include <stdlib.h>

#include "report/heap/rows.h"
#include "report/massif/out.h"

const struct heap_weight heap_weights[] = {
    {"peak", "bytes held at the peak", "bytes", offsetof(struct summary_site, peak_bytes)},
    {"total", "bytes allocated", "bytes", offsetof(struct summary_site, allocated_bytes)},
    {"count", "blocks allocated", "blocks", offsetof(struct summary_site, allocated)},
    {"leaked", "bytes not freed in the end", "bytes", offsetof(struct summary_site, live_bytes)},
    {"temporary", "blocks freed at once", "blocks", offsetof(struct summary_site, temporary)},
};
const size_t heap_weight_count = sizeof heap_weights / sizeof *heap_weights;

uint64_t heap_weight_of(const struct heap_weight *weight, const struct summary_site *site) {
    return *(const uint64_t *)((const char *)site + weight->offset);
}

static void write_massif(FILE *out, const struct heap_export *export) {
    // The command is one line of the file, and must stay one.
    char *command = NULL;
    size_t size;
    const char *recorded = export->file->info.process.command;
    FILE *line = open_memstream(&command, &size);
    if (!line)
        return;
    stack_text_escaped(line, recorded ? recorded : "(unknown)");
    fclose(line);
    massif_out(out, export->massif, &export->file->summary.stacks, export->file->names,
               &(struct massif_out_options){
                   .command = command, .time_unit = MASSIF_MILLISECONDS, .threshold = 1});
    free(command);
}

const struct heap_format heap_formats[] = {
    {"collapsed", "folded stacks, a line each: main;work;inner NUMBER", NEEDS_SUMS, rows_collapsed},
    {"flamegraph", "an interactive flame graph, one SVG file", NEEDS_SUMS, rows_flamegraph},
    {"csv", "a table with a row for each stack and all its sums", NEEDS_SUMS, rows_csv},
    {"json", "the same with totals, and frames with file, line and module", NEEDS_SUMS,
     rows_json_file},
    {"speedscope", "for speedscope.app, a profile for each --by", NEEDS_SUMS, rows_speedscope},
    {"pprof", "for pprof, all sums; --by is the one shown first", NEEDS_SUMS, rows_pprof},
    {"heaptrack-text", "for heaptrack_print and heaptrack_gui", NEEDS_EVENTS, rows_heaptrack},
    {"massif", "massif.out, for ms_print and massif-visualizer", NEEDS_MASSIF, write_massif},
    {"html", "the page of quern view as one file; of any file that shows", NEEDS_PAGE, NULL},
};
const size_t heap_format_count = sizeof heap_formats / sizeof *heap_formats;
