// dhat.out files as documents.
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/dhat/file.h"
#include "report/heap/names.h"
#include "report/massif/folded.h"
#include "view/documents/document.h"

static const struct {
    struct document_metric metric;
    size_t offset;
    bool is_blocks;
} metrics[] = {
    {{"gb", "bytes at the global peak", "bytes", 0}, offsetof(struct dhat_point, gb), false},
    {{"tb", "bytes in all", "bytes", 0}, offsetof(struct dhat_point, tb), false},
    {{"tbk", "blocks in all", "blocks", 0}, offsetof(struct dhat_point, tbk), true},
    {{"eb", "bytes at the end", "bytes", 0}, offsetof(struct dhat_point, eb), false},
    {{"rb", "bytes read", "bytes", 0}, offsetof(struct dhat_point, rb), false},
    {{"wb", "bytes written", "bytes", 0}, offsetof(struct dhat_point, wb), false},
};
#define METRICS (sizeof metrics / sizeof *metrics)

static uint64_t value_of(const struct dhat_point *point, unsigned metric) {
    return *(const uint64_t *)((const char *)point + metrics[metric].offset);
}

static char *read_dhat(struct document *document, int fd) {
    int copy = dup(fd);
    FILE *in = copy >= 0 ? fdopen(copy, "r") : NULL;
    if (!in)
        return base_copy(strerror(errno));
    struct dhat_file *file = document->dhat = base_allocate(sizeof *file);
    char *problem = dhat_file_read(in, file);
    fclose(in);
    if (problem)
        return problem;
    document->command = file->cmd;
    for (unsigned i = 0; i < METRICS; i++) {
        struct document_metric metric = metrics[i].metric;
        const char *unit = metrics[i].is_blocks ? file->bksu : file->bsu;
        metric.unit = unit ? unit : metric.unit;
        for (size_t j = 0; j < file->point_count; j++)
            metric.total += value_of(&file->points[j], i);
        document->metrics[document->metric_count++] = metric;
    }
    return NULL;
}

static void free_dhat(struct document *document) {
    if (!document->dhat)
        return;
    dhat_file_free(document->dhat);
    free(document->dhat);
}

// Functions of the tree by number of frame, made when first met.
static uint32_t function_of(struct calltree *tree, const struct dhat_file *file, uint32_t frame,
                            uint32_t *known) {
    if (!known[frame]) {
        char *label = massif_folded_label(file->frames.keys[frame].bytes);
        char *module = massif_folded_module(file->frames.keys[frame].bytes);
        known[frame] = calltree_function(tree, label, module) + 1;
        free(label);
        free(module);
    }
    return known[frame] - 1;
}

// The innermost frame that does not only allocate.
static size_t wanted_by(const struct dhat_file *file, const struct dhat_point *point) {
    size_t first = 0;
    for (; first + 1 < point->fs_count; first++) {
        char *label = massif_folded_label(file->frames.keys[point->fs[first]].bytes);
        bool is_allocator = heap_names_allocates(label);
        free(label);
        if (!is_allocator)
            break;
    }
    return first;
}

static struct calltree *tree_of(struct document *document, unsigned metric) {
    const struct dhat_file *file = document->dhat;
    struct calltree *tree = calltree_new(DOCUMENT_NODES_MAX);
    uint32_t *known = base_allocate((file->frames.count + 1) * sizeof *known);
    memset(known, 0, (file->frames.count + 1) * sizeof *known);
    for (size_t i = 0; i < file->point_count; i++) {
        const struct dhat_point *point = &file->points[i];
        uint64_t value = value_of(point, metric);
        if (!value)
            continue;
        uint32_t *path = base_allocate((point->fs_count + 1) * sizeof *path);
        size_t depth = 0;
        for (size_t j = point->fs_count, first = wanted_by(file, point); j-- > first;)
            path[depth++] = function_of(tree, file, point->fs[j], known);
        calltree_add(tree, path, depth, value);
        free(path);
    }
    free(known);
    calltree_finish(tree);
    return tree;
}

static bool tells_libraries(const struct document *document) {
    bool told = false;
    for (size_t i = 0; i < document->dhat->frames.count && !told; i++) {
        char *module = massif_folded_module(document->dhat->frames.keys[i].bytes);
        told = *module;
        free(module);
    }
    return told;
}

static void add_facts(struct document *document, const struct document_sink *sink) {
    const struct dhat_file *file = document->dhat;
    for (unsigned i = 0; i < document->metric_count; i++)
        document_fact(sink, document->metrics[i].help, document->metrics[i].total,
                      document->metrics[i].unit);
    document_fact(sink, "program points", file->point_count, "");
    document_fact_text(sink, "mode", file->mode);
    document_fact(sink, "end of the run", file->te, file->tu);
    document_fact(sink, "time of the peak", file->tg, file->tu);
}

static const char *const views[] = {"points", "diagnosis", "places", NULL};

const struct document_format document_dhat = {
    .name = "dhat",
    .help = "a dhat.out",
    .is_one = dhat_file_is_one,
    .read = read_dhat,
    .free = free_dhat,
    .tree = tree_of,
    .tells_libraries = tells_libraries,
    .facts = add_facts,
    .views = views,
};
