#include "report/shared/tree_out.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/text.h"
#include "report/heap/rows.h"

// Calls `visit` for each node with a value of its own and its path, the outermost function first.
struct visitor {
    void (*visit)(struct visitor *, const uint32_t *path, size_t depth, uint64_t value);
    uint32_t *path;
    size_t room;
    FILE *out;
    bool any;
    const struct calltree *tree;
    struct pprof *pprof;
    const char *const *files;
    unsigned type, types;
};

static void visit_nodes(struct visitor *visitor, const struct calltree_node *node, size_t depth) {
    if (node->function != CALLTREE_ROOT) {
        visitor->path = base_reach(visitor->path, &visitor->room, depth, sizeof *visitor->path);
        visitor->path[depth++] = node->function;
    }
    if (node->self)
        visitor->visit(visitor, visitor->path, depth, node->self);
    for (uint32_t i = 0; i < node->count; i++)
        visit_nodes(visitor, node->children[i], depth);
}

static void visit_all(struct visitor *visitor) {
    visitor->any = false;
    visit_nodes(visitor, &visitor->tree->root, 0);
    free(visitor->path);
    visitor->path = NULL;
    visitor->room = 0;
}

// ---- speedscope ----

static void write_stack(struct visitor *visitor, const uint32_t *path, size_t depth,
                        uint64_t value) {
    fputs(visitor->any ? ",[" : "[", visitor->out);
    for (size_t i = 0; i < depth; i++)
        fprintf(visitor->out, "%s%u", i ? "," : "", path[i]);
    fputc(']', visitor->out);
    visitor->any = true;
}

static void write_weight(struct visitor *visitor, const uint32_t *path, size_t depth,
                         uint64_t value) {
    fprintf(visitor->out, "%s%" PRIu64, visitor->any ? "," : "", value);
    visitor->any = true;
}

void tree_speedscope(FILE *out, const struct calltree *tree, const char *name) {
    struct visitor visitor = {.visit = write_stack, .out = out, .tree = tree};
    fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
          "\"exporter\":\"quern\",\"shared\":{\"frames\":[",
          out);
    for (size_t i = 0; i < tree->function_count; i++) {
        fputs(i ? ",{\"name\":" : "{\"name\":", out);
        rows_json(out, tree->functions[i].name);
        if (*tree->functions[i].group) {
            fputs(",\"file\":", out);
            rows_json(out, tree->functions[i].group);
        }
        fputc('}', out);
    }
    fputs("]},\"profiles\":[{\"type\":\"sampled\",\"name\":", out);
    rows_json(out, name);
    fprintf(out, ",\"unit\":\"none\",\"startValue\":0,\"endValue\":%" PRIu64 ",\"samples\":[",
            tree->root.total);
    visit_all(&visitor);
    fputs("],\"weights\":[", out);
    visitor.visit = write_weight;
    visit_all(&visitor);
    fputs("]}]}\n", out);
}

// ---- pprof ----

static void add_sample(struct visitor *visitor, const uint32_t *path, size_t depth,
                       uint64_t value) {
    for (size_t i = depth; i > 0; i--) {
        const struct calltree_function *function = &visitor->tree->functions[path[i - 1]];
        const char *file = visitor->files ? visitor->files[path[i - 1]] : NULL;
        pprof_frame(visitor->pprof, function->name, file ? file : function->group, 0);
    }
    for (unsigned i = 0; i < visitor->types; i++)
        pprof_value(visitor->pprof, i == visitor->type ? value : 0);
    pprof_sample(visitor->pprof);
}

void tree_pprof_samples(struct pprof *pprof, const struct calltree *tree, const char *const *files,
                        unsigned type, unsigned types) {
    struct visitor visitor = {.visit = add_sample,
                              .tree = tree,
                              .pprof = pprof,
                              .files = files,
                              .type = type,
                              .types = types};
    visit_all(&visitor);
}
