#include "report/flame/folded.h"

#include <inttypes.h>
#include <stdlib.h>

#include "report/shared/stack_text.h"

static void add_name(struct text *line, const struct calltree_function *function) {
    char *escaped = NULL;
    size_t size;
    FILE *out = open_memstream(&escaped, &size);
    if (!out)
        return;
    stack_text_escaped(out, function->name);
    fclose(out);
    for (size_t i = 0; i < size; i++)
        text_char(line, escaped[i] == ';' ? ':' : escaped[i]);
    free(escaped);
}

struct writer {
    FILE *out;
    const struct calltree *tree;
    void (*add_frame)(struct text *line, const struct calltree_function *);
    struct text line; // the path to the node at hand
};

static void write_node(struct writer *writer, const struct calltree_node *node) {
    struct text *line = &writer->line;
    size_t before = line->size;
    if (node->function != CALLTREE_ROOT) {
        if (before)
            text_char(line, ';');
        writer->add_frame(line, &writer->tree->functions[node->function]);
    }
    if (node->self && line->size)
        fprintf(writer->out, "%s %" PRIu64 "\n", line->bytes, node->self);
    for (uint32_t i = 0; i < node->count; i++)
        write_node(writer, node->children[i]);
    line->size = before;
    if (line->bytes)
        line->bytes[before] = 0;
}

void folded_write_as(FILE *out, const struct calltree *tree,
                     void (*add_frame)(struct text *line, const struct calltree_function *)) {
    struct writer writer = {.out = out, .tree = tree, .add_frame = add_frame};
    write_node(&writer, &tree->root);
    text_free(&writer.line);
}

void folded_write(FILE *out, const struct calltree *tree) {
    folded_write_as(out, tree, add_name);
}
