// Folded (collapsed) stacks as documents: `main;work;inner 42` a line, and the profiles of
// --tool=flame.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "view/documents/document.h"

static char *read_folded(struct document *document, int fd) {
    int copy = dup(fd);
    FILE *in = copy >= 0 ? fdopen(copy, "r") : NULL;
    if (!in)
        return base_copy(strerror(errno));
    document->folded = calltree_new(DOCUMENT_NODES_MAX);
    char *problem = stack_file_read(in, document->folded, &document->stacks);
    fclose(in);
    if (problem)
        return problem;
    document->command = document->stacks.command;
    calltree_finish(document->folded);
    document->metrics[document->metric_count++] = (struct document_metric){
        .name = document->stacks.unit ? document->stacks.unit : "value",
        .help = document->stacks.unit ? document->stacks.unit : "the number of each stack",
        .unit = document->stacks.unit ? document->stacks.unit : "",
        .total = document->folded->root.total,
    };
    return NULL;
}

static void free_folded(struct document *document) {
    if (document->folded)
        calltree_free(document->folded);
    stack_file_free(&document->stacks);
}

static struct calltree *tree_of(struct document *document, unsigned metric) {
    return calltree_shaped(document->folded, 0, DOCUMENT_NODES_MAX);
}

static bool tells_libraries(const struct document *document) {
    for (size_t i = 0; i < document->folded->function_count; i++)
        if (*document->folded->functions[i].group)
            return true;
    return false;
}

static void add_facts(struct document *document, const struct document_sink *sink) {
    if (document->stacks.details)
        document_fact_text(sink, "profile", document->stacks.details);
    document_fact(sink, "sum of all stacks", document->folded->root.total, "");
    document_fact(sink, "functions", document->folded->function_count, "");
}

const struct document_format document_folded = {
    .name = "collapsed",
    .help = "collapsed stacks",
    .is_one = stack_file_is_one,
    .read = read_folded,
    .free = free_folded,
    .tree = tree_of,
    .tells_libraries = tells_libraries,
    .facts = add_facts,
};
