#include "report/xtree/xtree.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vector.h"

void xtree_add(struct xtree *tree, const struct named_stack *stack, const uint64_t *values) {
    size_t size = tree->event_count * sizeof *values;
    struct xtree_stack *added = vector_push(tree->stacks, tree->stack_count);
    *added = (struct xtree_stack){.stack = stack, .values = base_allocate(size)};
    memcpy(added->values, values, size);
}

void xtree_free(struct xtree *tree) {
    for (size_t i = 0; i < tree->stack_count; i++)
        free(tree->stacks[i].values);
    free(tree->stacks);
}

// ---- merging -----------------------------------------------------------------------------------

static int compare(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int by_stack(const void *a, const void *b) {
    const struct named_stack *one = ((const struct xtree_stack *)a)->stack;
    const struct named_stack *other = ((const struct xtree_stack *)b)->stack;
    int order = compare(one->shown, other->shown);
    for (size_t i = 0; !order && i < one->shown; i++)
        order = compare(one->frames[i].address, other->frames[i].address);
    return order;
}

static void merge(struct xtree *tree) {
    size_t kept = 0;
    if (tree->stack_count)
        qsort(tree->stacks, tree->stack_count, sizeof *tree->stacks, by_stack);
    for (size_t i = 0; i < tree->stack_count; i++) {
        struct xtree_stack *stack = &tree->stacks[i];
        if (!kept || by_stack(&tree->stacks[kept - 1], stack) != 0) {
            tree->stacks[kept++] = *stack;
            continue;
        }
        for (unsigned event = 0; event < tree->event_count; event++)
            tree->stacks[kept - 1].values[event] += stack->values[event];
        free(stack->values);
    }
    tree->stack_count = kept;
}

// ---- writing -----------------------------------------------------------------------------------

struct writer {
    const struct xtree *tree;
    struct text *out;
    struct map_texts files, functions;
};

static void write_name(struct writer *writer, const char *key, struct map_texts *names,
                       const char *name) {
    bool is_new = true;
    text_string(writer->out, key);
    if (writer->tree->compress_strings)
        text_format(writer->out, "(%u)", map_texts_add(names, name, strlen(name), &is_new) + 1);
    if (is_new && writer->tree->compress_strings)
        text_char(writer->out, ' ');
    // A name is data of the target's: no line of it may pass for one of ours.
    for (; is_new && *name; name++)
        text_char(writer->out, (uint8_t)*name < ' ' ? '?' : *name);
    text_char(writer->out, '\n');
}

static void write_place(struct writer *writer, const char *file_key, const char *function_key,
                        const struct symbol_frame *frame) {
    struct text path = {0};
    if (frame->file && frame->directory && frame->file[0] != '/')
        text_format(&path, "%s/", frame->directory);
    text_string(&path, frame->file ? frame->file : "UnknownFile???");
    write_name(writer, file_key, &writer->files, path.bytes);
    write_name(writer, function_key, &writer->functions, frame->name ? frame->name : "???");
    text_free(&path);
}

static uint32_t line_of(const struct symbol_frame *frame) {
    return frame->file ? frame->line : 0;
}

static void write_values(struct writer *writer, const uint64_t *values) {
    for (unsigned i = 0; i < writer->tree->event_count; i++)
        text_format(writer->out, " %" PRIu64, values[i]);
    text_char(writer->out, '\n');
}

static void write_stack(struct writer *writer, const struct xtree_stack *stack) {
    const struct named_frame *frames = stack->stack->frames;
    for (size_t i = stack->stack->shown; i-- > 0;) {
        const struct symbol_frame *frame = &frames[i].symbol;
        write_place(writer, "fl=", "fn=", frame);
        if (i) {
            // Its own share is nothing.
            const struct symbol_frame *callee = &frames[i - 1].symbol;
            text_format(writer->out, "%u\n", line_of(frame));
            write_place(writer, "cfi=", "cfn=", callee);
            text_format(writer->out, "calls=0 %u\n", line_of(callee));
        }
        text_format(writer->out, "%u", line_of(frame));
        write_values(writer, stack->values);
    }
    text_char(writer->out, '\n');
}

static void write_head(const struct xtree *tree, struct text *out) {
    text_format(out, "# callgrind format\nversion: 1\ncreator: xtree-1\npid: %d\ncmd: ", tree->pid);
    for (const char *at = tree->command; *at; at++)
        text_char(out, (uint8_t)*at < ' ' ? '?' : *at);
    text_string(out, "\n\npositions: line\n");
    for (unsigned i = 0; i < tree->event_count; i++)
        text_format(out, "event: %s : %s\n", tree->events[i].name, tree->events[i].title);
    text_string(out, "events:");
    for (unsigned i = 0; i < tree->event_count; i++)
        text_format(out, " %s", tree->events[i].name);
    text_char(out, '\n');
}

void xtree_write(struct xtree *tree, struct text *out) {
    struct writer writer = {.tree = tree, .out = out};
    uint64_t *totals = base_allocate(tree->event_count * sizeof *totals);
    memset(totals, 0, tree->event_count * sizeof *totals);
    merge(tree);
    write_head(tree, out);
    for (size_t i = 0; i < tree->stack_count; i++) {
        write_stack(&writer, &tree->stacks[i]);
        for (unsigned event = 0; event < tree->event_count; event++)
            totals[event] += tree->stacks[i].values[event];
    }
    text_string(out, "totals:");
    write_values(&writer, totals);
    free(totals);
    map_texts_free(&writer.files);
    map_texts_free(&writer.functions);
}
