#include "report/cost_tree.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define NODES_MAX ((size_t)1 << 20)
enum { DEPTH_MAX = 400, LEAST_SHARE = 20000 };

struct walk {
    const struct cost_profile *profile;
    unsigned event;
    struct calltree *tree;
    uint32_t *numbers;   // of functions in the tree
    uint64_t *inclusive; // of functions
    uint64_t *received;  // from callers
    uint32_t *first;     // call of each function, as number + 1
    uint32_t *next;      // call of the same caller
    uint64_t least;      // smaller pieces are not followed further
    uint32_t path[DEPTH_MAX];
};

static uint64_t own_of(const struct walk *walk, uint32_t function) {
    return cost_values(walk->profile, walk->profile->functions[function].own)[walk->event];
}

static uint64_t cost_of(const struct walk *walk, const struct cost_call *call) {
    return cost_values(walk->profile, call->inclusive)[walk->event];
}

static void add_path(struct walk *walk, unsigned depth, uint64_t value) {
    if (value)
        calltree_add(walk->tree, walk->path, depth, value);
}

static bool is_active(const struct walk *walk, unsigned depth, uint32_t number) {
    for (unsigned i = 0; i < depth; i++)
        if (walk->path[i] == number)
            return true;
    return false;
}

// `value` of what the function costs is spent on this path.
static void unfold(struct walk *walk, uint32_t function, unsigned depth, uint64_t value) {
    uint64_t all = walk->inclusive[function], rest = value;
    walk->path[depth++] = walk->numbers[function];
    for (uint32_t at = walk->first[function]; at && all && depth < DEPTH_MAX; at = walk->next[at]) {
        const struct cost_call *call = &walk->profile->calls[at - 1];
        uint64_t part = (uint64_t)((double)value * (double)cost_of(walk, call) / (double)all);
        if (part > rest)
            part = rest;
        if (part < walk->least || is_active(walk, depth, walk->numbers[call->callee]))
            continue;
        unfold(walk, call->callee, depth, part);
        rest -= part;
    }
    add_path(walk, depth, rest);
}

static void index_calls(struct walk *walk) {
    const struct cost_profile *profile = walk->profile;
    for (size_t i = 0; i < profile->function_count; i++) {
        const struct cost_function *function = &profile->functions[i];
        const char *slash = strrchr(function->object, '/');
        walk->numbers[i] =
            calltree_function(walk->tree, function->name, slash ? slash + 1 : function->object);
        walk->inclusive[i] = own_of(walk, (uint32_t)i);
    }
    for (size_t i = 0; i < profile->call_count; i++) {
        const struct cost_call *call = &profile->calls[i];
        if (call->caller == call->callee)
            continue;
        walk->inclusive[call->caller] += cost_of(walk, call);
        walk->received[call->callee] += cost_of(walk, call);
        walk->next[i + 1] = walk->first[call->caller];
        walk->first[call->caller] = (uint32_t)i + 1;
    }
}

static void *zeroed(size_t count, size_t size) {
    void *memory = base_allocate((count + 1) * size);
    memset(memory, 0, (count + 1) * size);
    return memory;
}

struct calltree *cost_tree(const struct cost_profile *profile, unsigned event) {
    size_t functions = profile->function_count;
    struct walk walk = {.profile = profile,
                        .event = event,
                        .tree = calltree_new(NODES_MAX),
                        .numbers = zeroed(functions, sizeof(uint32_t)),
                        .inclusive = zeroed(functions, sizeof(uint64_t)),
                        .received = zeroed(functions, sizeof(uint64_t)),
                        .first = zeroed(functions, sizeof(uint32_t)),
                        .next = zeroed(profile->call_count, sizeof(uint32_t)),
                        .least = profile->totals[event] / LEAST_SHARE + 1};
    index_calls(&walk);
    // What nobody has called, or not all of it.
    for (size_t i = 0; i < functions; i++)
        if (walk.inclusive[i] > walk.received[i])
            unfold(&walk, (uint32_t)i, 0, walk.inclusive[i] - walk.received[i]);
    calltree_finish(walk.tree);
    free(walk.numbers);
    free(walk.inclusive);
    free(walk.received);
    free(walk.first);
    free(walk.next);
    return walk.tree;
}

// ---- speedscope --------------------------------------------------------------------------------

static void write_string(FILE *out, const char *text) {
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if ((unsigned char)*text < ' ' || (unsigned char)*text >= 0x80)
            fprintf(out, "\\u%04x", (unsigned char)*text);
        else
            fputc(*text, out);
    }
    fputc('"', out);
}

// One sample for each node with costs of its own; the second walk writes the weights.
static void write_samples(FILE *out, const struct calltree_node *node, uint32_t *path,
                          unsigned depth, bool weights, bool *any) {
    if (node->function != CALLTREE_ROOT)
        path[depth++] = node->function;
    if (node->self && weights) {
        fprintf(out, "%s%" PRIu64, *any ? "," : "", node->self);
        *any = true;
    } else if (node->self) {
        fputs(*any ? ",[" : "[", out);
        for (unsigned i = 0; i < depth; i++)
            fprintf(out, "%s%u", i ? "," : "", path[i]);
        fputc(']', out);
        *any = true;
    }
    for (uint32_t i = 0; i < node->count; i++)
        write_samples(out, node->children[i], path, depth, weights, any);
}

void cost_tree_speedscope(FILE *out, const struct calltree *tree, const char *name) {
    uint32_t path[DEPTH_MAX + 1];
    bool any = false;
    fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
          "\"exporter\":\"quern\",\"shared\":{\"frames\":[",
          out);
    for (size_t i = 0; i < tree->function_count; i++) {
        fputs(i ? ",{\"name\":" : "{\"name\":", out);
        write_string(out, tree->functions[i].name);
        fputc('}', out);
    }
    fputs("]},\"profiles\":[{\"type\":\"sampled\",\"name\":", out);
    write_string(out, name);
    fprintf(out, ",\"unit\":\"none\",\"startValue\":0,\"endValue\":%" PRIu64 ",\"samples\":[",
            tree->root.total);
    write_samples(out, &tree->root, path, 0, false, &any);
    fputs("],\"weights\":[", out);
    any = false;
    write_samples(out, &tree->root, path, 0, true, &any);
    fputs("]}]}\n", out);
}
