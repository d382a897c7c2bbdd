// A recording as a flame graph: the sum of each stack, by one weight, on the tree of its calls.
#include <inttypes.h>
#include <stdlib.h>

#include "base/text.h"
#include "profile/stacks/calltree.h"
#include "report/flame/flamegraph.h"
#include "report/heap/rows.h"

#define NODES_MAX ((size_t)1 << 20)

void rows_flamegraph(FILE *out, const struct heap_export *export) {
    const char *command = export->file->info.process.command;
    struct calltree *tree = rows_tree(export->file, export->weight, false, NODES_MAX);
    struct text details = {0};
    text_format(&details, "Heap, %s: %" PRIu64 " %s", export->weight->help, tree->root.total,
                export->weight->unit);
    flamegraph_write(out, tree,
                     &(struct flamegraph_options){.title = command ? command : "(unknown)",
                                                  .details = details.bytes,
                                                  .unit = export->weight->unit});
    text_free(&details);
    calltree_free(tree);
}
