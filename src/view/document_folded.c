// Folded (collapsed) stacks as documents: `main;work;inner 42` a line.
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "view/document.h"

#define DEPTH_MAX 4096

// The last word of a line is a number: where the space before it is; NULL: it is none.
static char *value_in(char *line, size_t size) {
    char *end = line + size;
    char *at = end;
    while (at > line && isdigit((unsigned char)at[-1]))
        at--;
    return at < end && end - at < 20 && at > line + 1 && at[-1] == ' ' ? at - 1 : NULL;
}

static bool is_folded(const char *start, size_t size) {
    const char *end = memchr(start, '\n', size);
    size_t length = end ? (size_t)(end - start) : size;
    if (!length || memchr(start, 0, size))
        return false;
    char *line = base_allocate(length + 1);
    memcpy(line, start, length);
    line[length] = 0;
    bool is_one = value_in(line, length) != NULL;
    free(line);
    return is_one;
}

static bool add_line(struct calltree *tree, char *line, size_t size, uint32_t *path) {
    char *value = value_in(line, size);
    if (!value)
        return false;
    *value = 0;
    size_t depth = 0;
    char *rest = NULL;
    for (char *frame = strtok_r(line, ";", &rest); frame && depth < DEPTH_MAX;
         frame = strtok_r(NULL, ";", &rest))
        path[depth++] = calltree_function(tree, frame, "");
    calltree_add(tree, path, depth, strtoull(value + 1, NULL, 10));
    return true;
}

static char *read_folded(struct document *document, int fd) {
    int copy = dup(fd);
    FILE *in = copy >= 0 ? fdopen(copy, "r") : NULL;
    if (!in)
        return base_copy(strerror(errno));
    document->folded = calltree_new(DOCUMENT_NODES_MAX);
    uint32_t *path = base_allocate(DEPTH_MAX * sizeof *path);
    char *line = NULL;
    size_t room = 0;
    uint64_t number = 0;
    struct text problem = {0};
    for (ssize_t size; !problem.size && (size = getline(&line, &room, in)) > 0;) {
        number++;
        while (size && (line[size - 1] == '\n' || line[size - 1] == '\r'))
            line[--size] = 0;
        if (size && !add_line(document->folded, line, (size_t)size, path))
            text_format(&problem, "line %llu is not folded stacks: no number at its end",
                        (unsigned long long)number);
    }
    free(line);
    free(path);
    fclose(in);
    if (problem.size)
        return text_take(&problem);
    calltree_finish(document->folded);
    document->metrics[document->metric_count++] = (struct document_metric){
        .name = "value",
        .help = "the number of each stack",
        .unit = "",
        .total = document->folded->root.total,
    };
    return NULL;
}

static void free_folded(struct document *document) {
    if (document->folded)
        calltree_free(document->folded);
}

static struct calltree *tree_of(struct document *document, unsigned metric) {
    return calltree_shaped(document->folded, 0, DOCUMENT_NODES_MAX);
}

static void add_facts(struct document *document, struct json *json) {
    document_fact(json, "sum of all stacks", document->folded->root.total, "");
    document_fact(json, "functions", document->folded->function_count, "");
}

const struct document_format document_folded = {
    .name = "collapsed",
    .help = "collapsed stacks",
    .is_one = is_folded,
    .read = read_folded,
    .free = free_folded,
    .tree = tree_of,
    .facts = add_facts,
};
