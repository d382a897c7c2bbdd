#include "report/massif/folded.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vector.h"
#include "report/heap/rows.h"

struct writer {
    const struct massif_file *file;
    size_t at; // the next node
    char *labels[MASSIF_FILE_DEPTH + 2];
    char *groups[MASSIF_FILE_DEPTH + 2]; // modules, where there is a tree
    size_t depth;
    struct calltree *tree; // NULL: lines are wanted
    uint32_t path[MASSIF_FILE_DEPTH + 2];
    struct rows_line *lines;
    size_t count;
};

// Where " (FILE:LINE)" or " (in MODULE)" begins; NULL: nowhere. The path of a module may hold " ("
// itself.
static char *place_in(char *label) {
    char *found = strstr(label, " (in ");
    for (char *at = found ? NULL : strstr(label, " ("); at; at = strstr(at + 1, " ("))
        found = at;
    return found;
}

// The module in "0x1234: FUNC (in MODULE)", else ""; to be freed.
char *massif_folded_module(const char *text) {
    const char *place = strstr(text, " (in ");
    char *module = base_copy(place ? heap_file_base(place + 5) : "");
    size_t size = strlen(module);
    if (size && module[size - 1] == ')')
        module[size - 1] = 0;
    return module;
}

// "0x1234: FUNC (FILE:LINE)" as "FUNC"; to be freed.
char *massif_folded_label(const char *text) {
    text += strspn(text, " ");
    if (strncmp(text, "in ", 3) == 0)
        return base_copy("[below threshold]");
    const char *colon = strncmp(text, "0x", 2) == 0 ? strstr(text, ": ") : NULL;
    char *label = base_copy(colon ? colon + 2 : text);
    size_t size = strlen(label);
    char *place = size && label[size - 1] == ')' ? place_in(label) : NULL;
    if (!place)
        return label;
    *place = 0;
    if (strcmp(label, "???") != 0)
        return label;
    struct text module = {0};
    label[size - 1] = 0;
    bool is_known = strncmp(place + 1, "(in ", 4) == 0;
    text_format(&module, "[%s]", is_known ? heap_file_base(place + 5) : "unknown");
    free(label);
    return text_take(&module);
}

static void add_path(struct writer *writer, uint64_t bytes) {
    for (size_t i = 0; i < writer->depth; i++)
        writer->path[i] = calltree_function(writer->tree, writer->labels[writer->depth - 1 - i],
                                            writer->groups[writer->depth - 1 - i]);
    calltree_add(writer->tree, writer->path, writer->depth, bytes);
}

static void add_line(struct writer *writer, uint64_t bytes) {
    if (writer->tree) {
        add_path(writer, bytes);
        return;
    }
    char *folded = NULL;
    size_t size;
    FILE *out = open_memstream(&folded, &size);
    if (!out)
        return;
    for (size_t i = writer->depth; i-- > 0;) {
        rows_text(out, writer->labels[i], ROWS_FOLDED);
        fputs(i ? ";" : "", out);
    }
    if (!writer->depth)
        fputs("[unknown]", out);
    fclose(out);
    *vector_push(writer->lines, writer->count) = (struct rows_line){folded, bytes};
}

// The tree goes from who wanted the memory to the callers, so that each path is a stack, and what
// a node has beyond its children's is of stacks that end there.
static uint64_t add_node(struct writer *writer, bool is_root) {
    const struct massif_file_node *node = &writer->file->nodes[writer->at++];
    uint64_t own = node->bytes;
    if (!is_root) {
        writer->groups[writer->depth] = writer->tree ? massif_folded_module(node->text) : NULL;
        writer->labels[writer->depth++] = massif_folded_label(node->text);
    }
    for (size_t i = 0; i < node->children; i++) {
        uint64_t bytes = add_node(writer, false);
        own = bytes < own ? own - bytes : 0;
    }
    if (own)
        add_line(writer, own);
    if (!is_root) {
        free(writer->labels[--writer->depth]);
        free(writer->groups[writer->depth]);
    }
    return node->bytes;
}

static const struct massif_file_snapshot *choose(const struct massif_file *file) {
    const struct massif_file_snapshot *best = NULL;
    for (size_t i = 0; i < file->snapshot_count; i++) {
        const struct massif_file_snapshot *snapshot = &file->snapshots[i];
        if (snapshot->kind == MASSIF_FILE_PEAK)
            return snapshot;
        if (snapshot->kind == MASSIF_FILE_DETAILED && (!best || snapshot->heap > best->heap))
            best = snapshot;
    }
    return best;
}

bool massif_folded(FILE *out, const struct massif_file *file) {
    const struct massif_file_snapshot *snapshot = choose(file);
    if (!snapshot)
        return false;
    struct writer *writer = base_allocate(sizeof *writer);
    *writer = (struct writer){.file = file, .at = snapshot->first_node};
    add_node(writer, true);
    size_t count = rows_lines_merge(writer->lines, writer->count);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%s %llu\n", writer->lines[i].folded,
                (unsigned long long)writer->lines[i].value);
    rows_lines_free(writer->lines, count);
    free(writer);
    return true;
}

struct calltree *massif_folded_tree(const struct massif_file *file,
                                    const struct massif_file_snapshot *snapshot, size_t nodes) {
    struct calltree *tree = calltree_new(nodes);
    struct writer *writer = base_allocate(sizeof *writer);
    *writer = (struct writer){.file = file, .at = snapshot->first_node, .tree = tree};
    add_node(writer, true);
    free(writer);
    calltree_finish(tree);
    return tree;
}
