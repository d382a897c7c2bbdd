// Values by call stack as a massif.out file: a snapshot of each event, with all places, also those
// that have nothing of it.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/xtree/xtree.h"

// Stacks that are the same up to a frame: a run of those in order.
struct branch {
    size_t first, count;
    uint64_t value;
};

struct branches {
    struct branch *items;
    size_t count;
};

struct writer {
    const struct xtree *tree;
    const struct stack_text_options *options;
    unsigned event;
    FILE *out;
};

static int compare(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int by_path(const void *a, const void *b) {
    const struct named_stack *one = ((const struct xtree_stack *)a)->stack;
    const struct named_stack *other = ((const struct xtree_stack *)b)->stack;
    for (size_t i = 0; i < one->shown && i < other->shown; i++)
        if (one->frames[i].address != other->frames[i].address)
            return compare(one->frames[i].address, other->frames[i].address);
    return compare(one->shown, other->shown);
}

// Largest first; equals stay in order of address.
static int by_value(const void *a, const void *b) {
    const struct branch *one = a, *other = b;
    return one->value != other->value ? compare(other->value, one->value)
                                      : compare(one->first, other->first);
}

// What a run of stacks divides into at a depth; a stack that ends there is not part of any.
static struct branches divide(const struct writer *writer, size_t first, size_t count,
                              size_t depth) {
    struct branches branches = {.items = base_allocate(count * sizeof *branches.items)};
    const struct named_frame *last = NULL;
    for (size_t i = first; i < first + count; i++) {
        const struct xtree_stack *stack = &writer->tree->stacks[i];
        if (stack->stack->shown <= depth)
            continue;
        const struct named_frame *frame = &stack->stack->frames[depth];
        if (!last || last->address != frame->address)
            branches.items[branches.count++] = (struct branch){.first = i};
        branches.items[branches.count - 1].count++;
        branches.items[branches.count - 1].value += stack->values[writer->event];
        last = frame;
    }
    qsort(branches.items, branches.count, sizeof *branches.items, by_value);
    return branches;
}

static void write_branches(struct writer *writer, const struct branches *branches, size_t depth) {
    for (size_t i = 0; i < branches->count; i++) {
        const struct branch *branch = &branches->items[i];
        const struct named_frame *frame = &writer->tree->stacks[branch->first].stack->frames[depth];
        struct branches callers = divide(writer, branch->first, branch->count, depth + 1);
        fprintf(writer->out, "%*sn%zu: %" PRIu64 " 0x%" PRIX64 ": ", (int)depth + 1, "",
                callers.count, branch->value, frame->address);
        stack_text_frame(writer->out, &frame->symbol, writer->options);
        fputc('\n', writer->out);
        write_branches(writer, &callers, depth + 1);
        free(callers.items);
    }
}

static void write_event(struct writer *writer, uint64_t milliseconds) {
    const struct xtree *tree = writer->tree;
    const struct xtree_event *event = &tree->events[writer->event];
    struct branches branches = divide(writer, 0, tree->stack_count, 0);
    uint64_t total = 0;
    for (size_t i = 0; i < tree->stack_count; i++)
        total += tree->stacks[i].values[writer->event];
    fprintf(writer->out,
            "#-----------\nsnapshot=%u\n#-----------\ntime=%" PRIu64 "\nmem_heap_B=%" PRIu64
            "\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=detailed\n",
            writer->event, milliseconds, total);
    fprintf(writer->out, "n%zu: %" PRIu64 " %s : %s\n", branches.count, total, event->name,
            event->title);
    write_branches(writer, &branches, 0);
    free(branches.items);
}

void xtree_write_massif(struct xtree *tree, uint64_t milliseconds,
                        const struct stack_text_options *options, struct text *out) {
    char *bytes = NULL;
    size_t size = 0;
    struct writer writer = {.tree = tree, .options = options, .out = open_memstream(&bytes, &size)};
    if (!writer.out)
        abort();
    if (tree->stack_count)
        qsort(tree->stacks, tree->stack_count, sizeof *tree->stacks, by_path);
    fputs("desc: (none)\ncmd: ", writer.out);
    for (const char *at = tree->command; *at; at++)
        fputc((uint8_t)*at < ' ' ? '?' : *at, writer.out);
    fputs("\ntime_unit: ms\n", writer.out);
    for (; writer.event < tree->event_count; writer.event++)
        write_event(&writer, milliseconds);
    fclose(writer.out);
    text_add(out, bytes, size);
    free(bytes);
}
