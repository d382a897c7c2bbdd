#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "base/text.h"
#include "base/vector.h"
#include "profile/stacks/calltree.h"
#include "report/heap/rows.h"

struct path {
    struct calltree *tree;
    uint32_t *functions; // innermost first
    size_t count;
};

static void add_frame(void *context, const struct heap_place *place,
                      const struct symbol_frame *frame) {
    struct path *path = context;
    char *label = symbol_frame_label(frame);
    // Of what a runtime has generated, the source says more.
    bool is_generated = frame->object && strcmp(frame->object, SYMBOLS_GENERATED_CODE) == 0;
    const char *where = is_generated && frame->file ? frame->file : frame->object;
    *vector_push(path->functions, path->count) =
        calltree_function(path->tree, label, where ? heap_file_base(where) : "");
    free(label);
}

struct calltree *rows_tree(const struct heap_file *file, const struct heap_weight *weight,
                           bool bottom_up, size_t nodes) {
    const struct summary *summary = &file->summary;
    struct path path = {.tree = calltree_new(nodes)};
    progress_stage("naming functions", summary->site_count);
    for (size_t i = 0; i < summary->site_count; i++) {
        uint64_t value = heap_weight_of(weight, &summary->sites[i]);
        if (!value)
            continue;
        path.count = 0;
        progress_at(i);
        rows_frames(file, (uint32_t)i, add_frame, &path);
        for (size_t j = 0; !bottom_up && j < path.count / 2; j++) {
            uint32_t inner = path.functions[j];
            path.functions[j] = path.functions[path.count - 1 - j];
            path.functions[path.count - 1 - j] = inner;
        }
        calltree_add(path.tree, path.functions, path.count, value);
    }
    progress_end();
    calltree_finish(path.tree);
    free(path.functions);
    return path.tree;
}
