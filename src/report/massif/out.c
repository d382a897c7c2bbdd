#include "report/massif/out.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/vector.h"

// A tree of places: the root stands for all allocations, its children for those who wanted them,
// theirs for the callers. One tree serves all snapshots: a stack's path through it is found once,
// and a snapshot only adds its bytes along the paths of its stacks. Nodes that a snapshot does not
// touch are not part of its tree.
struct node {
    uint64_t key; // return address; 0: unknown
    uint64_t bytes;
    size_t snapshot; // that the bytes are of
    struct node *parent;
    struct node *first, *next; // child, sibling
};

struct writer {
    FILE *out;
    struct heap_names *names;
    const struct stacks *stacks;
    const struct massif_out_options *options;
    uint64_t least;  // bytes of a node that is shown
    size_t snapshot; // in hand, counted from 1
    struct node root;
    struct node **nodes; // all but the root
    size_t count;
    struct map map;       // of the nodes, by parent and key
    struct node **leaves; // by stack; NULL: not looked for yet
    size_t leaf_count;
};

static struct node *child_of(struct writer *writer, struct node *parent, uint64_t key) {
    uint64_t hash = hash_add(hash_add(0, (uint64_t)parent), key);
    struct map_walk walk = map_walk(hash);
    for (uint32_t number; (number = map_next(&writer->map, &walk)) != MAP_NONE;)
        if (writer->nodes[number]->parent == parent && writer->nodes[number]->key == key)
            return writer->nodes[number];
    struct node *node = base_allocate(sizeof *node);
    *node = (struct node){.key = key, .parent = parent, .next = parent->first};
    parent->first = node;
    *vector_push(writer->nodes, writer->count) = node;
    map_add(&writer->map, hash);
    return node;
}

// The innermost node of a stack's path is the outermost caller that is shown.
static struct node *leaf_of(struct writer *writer, uint32_t stack) {
    writer->leaves = base_reach(writer->leaves, &writer->leaf_count, stack, sizeof *writer->leaves);
    if (writer->leaves[stack])
        return writer->leaves[stack];
    const struct stacks_entry *entry = stacks_get(writer->stacks, stack);
    size_t first;
    size_t count = heap_names_trim(writer->names, entry, &first);
    struct node *node = &writer->root;
    for (size_t i = 0; i < count; i++)
        node = child_of(writer, node, entry->pcs[first + i]);
    if (!count)
        node = child_of(writer, node, 0);
    return writer->leaves[stack] = node;
}

static void add_share(struct writer *writer, const struct massif_share *share) {
    for (struct node *node = leaf_of(writer, share->stack); node; node = node->parent) {
        if (node->snapshot != writer->snapshot)
            node->bytes = 0;
        node->snapshot = writer->snapshot;
        node->bytes += share->bytes;
    }
}

static void free_nodes(struct writer *writer) {
    for (size_t i = 0; i < writer->count; i++)
        free(writer->nodes[i]);
    free(writer->nodes);
    map_free(&writer->map);
    free(writer->leaves);
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

// The children of a node in this snapshot: those that are shown, and the sum of the others.
struct children {
    struct node **shown;
    size_t count;
    size_t rest;
    uint64_t rest_bytes;
};

static struct children children_of(const struct writer *writer, const struct node *node) {
    struct children children = {0};
    for (struct node *child = node->first; child; child = child->next)
        children.count += child->snapshot == writer->snapshot && child->bytes >= writer->least;
    children.shown = base_allocate((children.count + 1) * sizeof *children.shown);
    children.count = 0;
    for (struct node *child = node->first; child; child = child->next) {
        if (child->snapshot != writer->snapshot)
            continue;
        if (child->bytes >= writer->least) {
            children.shown[children.count++] = child;
        } else {
            children.rest++;
            children.rest_bytes += child->bytes;
        }
    }
    qsort(children.shown, children.count, sizeof *children.shown, by_bytes);
    return children;
}

static void write_children(struct writer *writer, const struct children *children, int depth);

static void write_node(struct writer *writer, const struct node *node, int depth) {
    static char unknown[] = "???";
    static char *unknown_texts[] = {unknown};
    static const struct heap_place nowhere = {.count = 1, .texts = unknown_texts};
    const struct heap_place *place =
        node->key ? heap_names_place(writer->names, node->key) : &nowhere;
    struct children children = children_of(writer, node);
    for (size_t i = 0; i < place->count; i++) {
        indent(writer, depth + (int)i);
        fprintf(writer->out, "n%zu: %" PRIu64 " 0x%" PRIX64 ": %s\n",
                i + 1 < place->count ? 1 : children.count + (children.rest > 0), node->bytes,
                place->address, place->texts[i]);
    }
    write_children(writer, &children, depth + (int)place->count);
    free(children.shown);
}

// Largest first; those too small to be shown come as one line, in the place of their sum.
static void write_children(struct writer *writer, const struct children *children, int depth) {
    bool rest_due = children->rest > 0;
    for (size_t i = 0; i < children->count; i++) {
        if (rest_due && children->rest_bytes > children->shown[i]->bytes) {
            write_rest(writer, depth, children->rest, children->rest_bytes);
            rest_due = false;
        }
        write_node(writer, children->shown[i], depth);
    }
    if (rest_due)
        write_rest(writer, depth, children->rest, children->rest_bytes);
}

static void write_tree(struct writer *writer, const struct massif_snapshot *snapshot) {
    writer->root.bytes = 0;
    for (size_t i = 0; i < snapshot->share_count; i++)
        add_share(writer, &snapshot->shares[i]);
    writer->least = (uint64_t)((double)(snapshot->useful + snapshot->extra + snapshot->stacks) *
                               writer->options->threshold / 100);
    struct children children = children_of(writer, &writer->root);
    fprintf(writer->out, "n%zu: %" PRIu64 " %s, --alloc-fns, etc.\n",
            children.count + (children.rest > 0), writer->root.bytes,
            writer->options->is_pages ? "(page allocation syscalls) mmap/mremap/brk"
                                      : "(heap allocation functions) malloc/new/new[]");
    write_children(writer, &children, 1);
    free(children.shown);
}

void massif_out(FILE *out, const struct massif *massif, const struct stacks *stacks,
                struct heap_names *names, const struct massif_out_options *options) {
    static const char *const units[] = {
        [MASSIF_MILLISECONDS] = "ms", [MASSIF_BYTES] = "B", [MASSIF_INSTRUCTIONS] = "i"};
    struct writer writer = {.out = out, .names = names, .stacks = stacks, .options = options};
    size_t count;
    const struct massif_snapshot *snapshots = massif_snapshots(massif, &count);
    fprintf(out, "desc: %s\ncmd: %s\ntime_unit: %s\n",
            options->description ? options->description : "(none)", options->command,
            units[options->time_unit]);
    for (size_t i = 0; i < count; i++) {
        const struct massif_snapshot *snapshot = &snapshots[i];
        fprintf(out, "#-----------\nsnapshot=%zu\n#-----------\n", i);
        fprintf(out,
                "time=%" PRIu64 "\nmem_heap_B=%" PRIu64 "\nmem_heap_extra_B=%" PRIu64
                "\nmem_stacks_B=%" PRIu64 "\n",
                snapshot->time, snapshot->useful, snapshot->extra, snapshot->stacks);
        const char *kind = snapshot->is_peak ? "peak" : "detailed";
        fprintf(out, "heap_tree=%s\n", snapshot->is_detailed ? kind : "empty");
        writer.snapshot = i + 1;
        if (snapshot->is_detailed)
            write_tree(&writer, snapshot);
    }
    free_nodes(&writer);
}
