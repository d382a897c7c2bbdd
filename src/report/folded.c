#include "report/folded.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/text.h"
#include "report/stack_text.h"

// A name as it stands in a line.
static void add_name(struct text *line, const char *name) {
    char *escaped = NULL;
    size_t size;
    FILE *out = open_memstream(&escaped, &size);
    if (!out)
        return;
    stack_text_escaped(out, name);
    fclose(out);
    for (size_t i = 0; i < size; i++)
        text_char(line, escaped[i] == ';' ? ':' : escaped[i]);
    free(escaped);
}

static void write_node(FILE *out, const struct calltree *tree, const struct calltree_node *node,
                       struct text *line) {
    size_t before = line->size;
    if (node->function != CALLTREE_ROOT) {
        if (before)
            text_char(line, ';');
        add_name(line, tree->functions[node->function].name);
    }
    if (node->self && line->size)
        fprintf(out, "%s %" PRIu64 "\n", line->bytes, node->self);
    for (uint32_t i = 0; i < node->count; i++)
        write_node(out, tree, node->children[i], line);
    line->size = before;
    if (line->bytes)
        line->bytes[before] = 0;
}

void folded_write(FILE *out, const struct calltree *tree) {
    struct text line = {0};
    write_node(out, tree, &tree->root, &line);
    text_free(&line);
}
