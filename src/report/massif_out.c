#include "report/massif_out.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/text.h"

// A tree of places: the root stands for all allocations, its children for those who wanted them,
// theirs for the callers.
struct node {
    uint64_t key; // return address
    uint64_t bytes;
    struct node **children;
    size_t count, room;
};

struct writer {
    FILE *out;
    struct heap_names *names;
    const struct massif_out_options *options;
    uint64_t least; // bytes of a node that is shown
};

static struct node *child_of(struct node *node, uint64_t key) {
    for (size_t i = 0; i < node->count; i++)
        if (node->children[i]->key == key)
            return node->children[i];
    if (node->count == node->room) {
        node->room = node->room ? node->room * 2 : 4;
        node->children = base_reallocate(node->children, node->room * sizeof *node->children);
    }
    struct node *child = base_allocate(sizeof *child);
    *child = (struct node){.key = key};
    return node->children[node->count++] = child;
}

static void free_node(struct node *node) {
    for (size_t i = 0; i < node->count; i++) {
        free_node(node->children[i]);
        free(node->children[i]);
    }
    free(node->children);
}

static void add_share(struct writer *writer, struct node *root, const struct stacks_entry *stack,
                      uint64_t bytes) {
    size_t first;
    size_t count = heap_names_trim(writer->names, stack, &first);
    root->bytes += bytes;
    struct node *node = root;
    if (!count) {
        child_of(root, 0)->bytes += bytes;
        return;
    }
    for (size_t i = 0; i < count; i++) {
        node = child_of(node, stack->pcs[first + i]);
        node->bytes += bytes;
    }
}

static int by_bytes(const void *a, const void *b) {
    const struct node *first = *(struct node *const *)a;
    const struct node *second = *(struct node *const *)b;
    if (first->bytes != second->bytes)
        return first->bytes < second->bytes ? 1 : -1;
    return (first->key > second->key) - (first->key < second->key);
}

static void indent(struct writer *writer, int depth) {
    for (int i = 0; i < depth; i++)
        fputc(' ', writer->out);
}

static void write_rest(struct writer *writer, int depth, size_t places, uint64_t bytes) {
    indent(writer, depth);
    fprintf(writer->out, "n0: %" PRIu64 " in %zu place%s below massif's threshold (%.2f%%)\n",
            bytes, places, places == 1 ? "," : "s, all", writer->options->threshold);
}

static void write_children(struct writer *writer, struct node *node, int depth);

static size_t shown_children(const struct writer *writer, const struct node *node,
                             uint64_t *rest_bytes) {
    size_t shown = 0;
    *rest_bytes = 0;
    for (size_t i = 0; i < node->count; i++) {
        if (node->children[i]->bytes >= writer->least)
            shown++;
        else
            *rest_bytes += node->children[i]->bytes;
    }
    return shown;
}

static void write_node(struct writer *writer, struct node *node, int depth) {
    uint64_t rest;
    size_t shown = shown_children(writer, node, &rest);
    size_t children = shown + (shown < node->count);
    if (!node->key) {
        indent(writer, depth);
        fprintf(writer->out, "n%zu: %" PRIu64 " 0x0: ???\n", children, node->bytes);
        return;
    }
    const struct heap_place *place = heap_names_place(writer->names, node->key);
    for (size_t i = 0; i < place->count; i++) {
        indent(writer, depth + (int)i);
        fprintf(writer->out, "n%zu: %" PRIu64 " 0x%" PRIX64 ": %s\n",
                i + 1 < place->count ? 1 : children, node->bytes, place->address, place->texts[i]);
    }
    write_children(writer, node, depth + (int)place->count);
}

// Largest first; those too small to be shown come as one line, in the place of their sum.
static void write_children(struct writer *writer, struct node *node, int depth) {
    uint64_t rest_bytes;
    size_t shown = shown_children(writer, node, &rest_bytes);
    size_t rest = node->count - shown;
    bool rest_due = rest > 0;
    if (node->count)
        qsort(node->children, node->count, sizeof *node->children, by_bytes);
    for (size_t i = 0; i < shown; i++) {
        if (rest_due && rest_bytes > node->children[i]->bytes) {
            write_rest(writer, depth, rest, rest_bytes);
            rest_due = false;
        }
        write_node(writer, node->children[i], depth);
    }
    if (rest_due)
        write_rest(writer, depth, rest, rest_bytes);
}

static void write_tree(struct writer *writer, const struct massif_snapshot *snapshot,
                       const struct stacks *stacks) {
    struct node root = {0};
    for (size_t i = 0; i < snapshot->share_count; i++)
        add_share(writer, &root, stacks_get(stacks, snapshot->shares[i].stack),
                  snapshot->shares[i].bytes);
    writer->least =
        (uint64_t)((double)(snapshot->useful + snapshot->extra) * writer->options->threshold / 100);
    uint64_t rest;
    size_t shown = shown_children(writer, &root, &rest);
    fprintf(writer->out,
            "n%zu: %" PRIu64 " (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n",
            shown + (shown < root.count), root.bytes);
    write_children(writer, &root, 1);
    free_node(&root);
}

void massif_out(FILE *out, const struct massif *massif, const struct stacks *stacks,
                struct heap_names *names, const struct massif_out_options *options) {
    struct writer writer = {.out = out, .names = names, .options = options};
    size_t count;
    const struct massif_snapshot *snapshots = massif_snapshots(massif, &count);
    fprintf(out, "desc: %s\ncmd: %s\ntime_unit: %s\n",
            options->description ? options->description : "(none)", options->command,
            options->time_unit == MASSIF_BYTES ? "B" : "ms");
    for (size_t i = 0; i < count; i++) {
        const struct massif_snapshot *snapshot = &snapshots[i];
        fprintf(out, "#-----------\nsnapshot=%zu\n#-----------\n", i);
        fprintf(out,
                "time=%" PRIu64 "\nmem_heap_B=%" PRIu64 "\nmem_heap_extra_B=%" PRIu64
                "\nmem_stacks_B=0\n",
                snapshot->time, snapshot->useful, snapshot->extra);
        const char *kind = snapshot->is_peak ? "peak" : "detailed";
        fprintf(out, "heap_tree=%s\n", snapshot->is_detailed ? kind : "empty");
        if (snapshot->is_detailed)
            write_tree(&writer, snapshot, stacks);
    }
}
