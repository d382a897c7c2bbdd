// A recording as a flame graph: the sum of each stack, by one weight, on the tree of its calls.
#include <inttypes.h>
#include <stdlib.h>

#include "base/text.h"
#include "profile/calltree.h"
#include "report/flamegraph.h"
#include "report/heap_rows.h"

#define NODES_MAX ((size_t)1 << 20)

struct path {
    struct calltree *tree;
    uint32_t *functions; // innermost first
    size_t count, room;
};

static void add_frame(void *context, const struct heap_place *place,
                      const struct symbol_frame *frame) {
    struct path *path = context;
    if (path->count == path->room) {
        path->room = path->room ? path->room * 2 : 64;
        path->functions = base_reallocate(path->functions, path->room * sizeof *path->functions);
    }
    char *label = heap_file_label(frame);
    path->functions[path->count++] =
        calltree_function(path->tree, label, frame->object ? heap_file_base(frame->object) : "");
    free(label);
}

static void add_stack(struct path *path, const struct heap_file *file, uint32_t stack,
                      uint64_t value) {
    path->count = 0;
    rows_frames(file, stack, add_frame, path);
    for (size_t i = 0; i < path->count / 2; i++) {
        uint32_t inner = path->functions[i];
        path->functions[i] = path->functions[path->count - 1 - i];
        path->functions[path->count - 1 - i] = inner;
    }
    calltree_add(path->tree, path->functions, path->count, value);
}

void rows_flamegraph(FILE *out, const struct heap_export *export) {
    const struct summary *summary = &export->file->summary;
    const char *command = export->file->info.process.command;
    struct path path = {.tree = calltree_new(NODES_MAX)};
    for (size_t i = 0; i < summary->site_count; i++) {
        uint64_t value = heap_weight_of(export->weight, &summary->sites[i]);
        if (value)
            add_stack(&path, export->file, (uint32_t)i, value);
    }
    calltree_finish(path.tree);
    struct text details = {0};
    text_format(&details, "Heap, %s: %" PRIu64 " %s", export->weight->help, path.tree->root.total,
                export->weight->unit);
    flamegraph_write(out, path.tree,
                     &(struct flamegraph_options){.title = command ? command : "(unknown)",
                                                  .details = details.bytes,
                                                  .unit = export->weight->unit});
    text_free(&details);
    calltree_free(path.tree);
    free(path.functions);
}
