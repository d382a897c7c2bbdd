// massif.out files as documents. The tree is that of one snapshot: the peak, or the largest
// detailed one within the window.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/massif/folded.h"
#include "view/documents/document.h"

static bool is_in(const struct document_window *window, const struct massif_file_snapshot *at) {
    return at->time >= window->from && at->time < window->to;
}

static const struct massif_file_snapshot *choose(const struct document *document) {
    const struct massif_file_snapshot *best = NULL;
    for (size_t i = 0; i < document->massif.snapshot_count; i++) {
        const struct massif_file_snapshot *snapshot = &document->massif.snapshots[i];
        if (snapshot->kind == MASSIF_FILE_EMPTY || !is_in(&document->window, snapshot))
            continue;
        if (snapshot->kind == MASSIF_FILE_PEAK)
            return snapshot;
        if (!best || snapshot->heap > best->heap)
            best = snapshot;
    }
    return best;
}

static char *read_massif(struct document *document, int fd) {
    int copy = dup(fd);
    FILE *in = copy >= 0 ? fdopen(copy, "r") : NULL;
    if (!in)
        return base_copy(strerror(errno));
    char *problem = massif_file_read(in, &document->massif);
    fclose(in);
    if (problem)
        return problem;
    document->command = document->massif.command;
    document->snapshot = choose(document);
    if (document->snapshot)
        document->metrics[document->metric_count++] = (struct document_metric){
            .name = "bytes",
            .help = "bytes held at the snapshot",
            .unit = "bytes",
            .total = document->massif.nodes[document->snapshot->first_node].bytes,
        };
    else
        document->notice = base_copy("there is no detailed snapshot here, and so no stacks");
    return NULL;
}

static void free_massif(struct document *document) {
    massif_file_free(&document->massif);
}

static struct calltree *tree_of(struct document *document, unsigned metric) {
    return massif_folded_tree(&document->massif, document->snapshot, DOCUMENT_NODES_MAX);
}

// Of frames whose source is not known, the module stands in its place.
static bool tells_libraries(const struct document *document) {
    bool told = false;
    for (size_t i = 0; i < document->massif.node_count && !told; i++) {
        char *module = massif_folded_module(document->massif.nodes[i].text);
        told = *module;
        free(module);
    }
    return told;
}

static void add_facts(struct document *document, const struct document_sink *sink) {
    const struct massif_file *file = &document->massif;
    const struct massif_file_snapshot *peak = NULL, *last = NULL;
    for (size_t i = 0; i < file->snapshot_count; i++) {
        last = &file->snapshots[i];
        if (!peak ||
            last->heap + last->extra + last->stacks > peak->heap + peak->extra + peak->stacks)
            peak = last;
    }
    if (peak) {
        document_fact(sink, "peak of the heap", peak->heap, "bytes");
        document_fact(sink, "extra bytes at the peak", peak->extra, "bytes");
        document_fact(sink, "stacks at the peak", peak->stacks, "bytes");
        document_fact(sink, "time of the peak", peak->time, file->time_unit);
        document_fact(sink, "held in the end", last->heap, "bytes");
        document_fact(sink, "end of the run", last->time, file->time_unit);
    }
    document_fact(sink, "snapshots", file->snapshot_count, "");
    if (document->snapshot)
        document_fact(sink, "snapshot shown", document->snapshot->number, "");
}

static const char *const views[] = {"timeline", NULL};

const struct document_format document_massif = {
    .name = "massif",
    .help = "a massif.out",
    .is_one = massif_file_is_one,
    .read = read_massif,
    .free = free_massif,
    .tree = tree_of,
    .tells_libraries = tells_libraries,
    .facts = add_facts,
    .views = views,
};
