// What a census's leak search has found, grouped: losses by kind, size and type, and holders.
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vector.h"
#include "report/heap/census.h"

#define TYPES_MOST 4096 // words that are kept with their types

// ---- types -------------------------------------------------------------------------------------

struct types {
    const struct census_view *view;
    pid_t pid;
    struct type {
        uint64_t word;
        const char *name; // NULL: none
    } * at;
    size_t count;
};

static const char *type_of_word(struct types *types, uint64_t word) {
    static const char table[] = "vtable for ";
    struct symbol_data data = {0};
    for (size_t i = 0; i < types->count; i++)
        if (types->at[i].word == word)
            return types->at[i].name;
    const char *name = NULL;
    if (symbols_resolve_data(types->view->symbols, types->pid, word, &data) && data.name &&
        strncmp(data.name, table, sizeof table - 1) == 0)
        name = symbols_keep(types->view->symbols, data.name + sizeof table - 1);
    if (types->count < TYPES_MOST)
        *vector_push(types->at, types->count) = (struct type){word, name};
    return name;
}

static const char *type_of(struct types *types, const struct leak_graph_block *block) {
    uint64_t word;
    return block->size >= 8 && types->view->first_word(types->view->context, block->start, &word)
               ? type_of_word(types, word)
               : NULL;
}

// ---- losses ------------------------------------------------------------------------------------

static int compare_types(const char *one, const char *other) {
    if (!one || !other)
        return (one != NULL) - (other != NULL);
    return strcmp(one, other);
}

static int by_place(const void *a, const void *b) {
    const struct census_loss *one = a, *other = b;
    if (one->kind != other->kind)
        return one->kind < other->kind ? -1 : 1;
    if (one->size != other->size)
        return one->size < other->size ? -1 : 1;
    return compare_types(one->type, other->type);
}

static int by_bytes(const void *a, const void *b) {
    const struct census_loss *one = a, *other = b;
    uint64_t bytes = one->bytes + one->indirect, more = other->bytes + other->indirect;
    if (bytes != more)
        return bytes > more ? -1 : 1;
    return by_place(a, b);
}

static void make_losses(struct census_report *report, const struct leak_graph_block *blocks,
                        size_t count, struct types *types) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (blocks[i].kind != LEAK_REACHABLE)
            *vector_push(report->losses, report->loss_count) =
                (struct census_loss){.kind = blocks[i].kind,
                                     .size = blocks[i].size,
                                     .type = type_of(types, &blocks[i]),
                                     .blocks = 1,
                                     .bytes = blocks[i].size,
                                     .indirect = blocks[i].indirect,
                                     .example = blocks[i].start};
    struct census_loss *losses = report->losses;
    if (report->loss_count)
        qsort(losses, report->loss_count, sizeof *losses, by_place);
    for (size_t i = 0; i < report->loss_count; i++) {
        if (kept && by_place(&losses[kept - 1], &losses[i]) == 0) {
            losses[kept - 1].blocks++;
            losses[kept - 1].bytes += losses[i].bytes;
            losses[kept - 1].indirect += losses[i].indirect;
        } else {
            losses[kept++] = losses[i];
        }
    }
    report->loss_count = kept;
    if (kept)
        qsort(losses, kept, sizeof *losses, by_bytes);
}

// ---- holders -----------------------------------------------------------------------------------

struct held {
    uint64_t root;
    uint64_t blocks, bytes;
};

static int by_root(const void *a, const void *b) {
    const struct held *one = a, *other = b;
    return (one->root > other->root) - (one->root < other->root);
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct census_holder *)a)->name, ((const struct census_holder *)b)->name);
}

static int by_held(const void *a, const void *b) {
    const struct census_holder *one = a, *other = b;
    if (one->bytes != other->bytes)
        return one->bytes > other->bytes ? -1 : 1;
    return by_name(a, b);
}

static const char *file_of(const char *path) {
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path;
}

char *census_root_name(const struct census_view *view, pid_t pid, uint64_t root) {
    struct symbol_data data = {0};
    struct text text = {0};
    const char *object = NULL;
    if (!root)
        return base_copy("registers");
    if (symbols_resolve_data(view->symbols, pid, root, &data) && data.name) {
        text_format(&text, "%s (%s)", data.name, data.object ? file_of(data.object) : "?");
        return text_take(&text);
    }
    const char *section = symbols_section(view->symbols, pid, root, &object);
    if (section && object) {
        text_format(&text, "%s of %s", section, file_of(object));
        return text_take(&text);
    }
    return view->place(view->context, root);
}

static void join_holders(struct census_report *report) {
    size_t kept = 0;
    struct census_holder *holders = report->holders;
    if (report->holder_count)
        qsort(holders, report->holder_count, sizeof *holders, by_name);
    for (size_t i = 0; i < report->holder_count; i++) {
        if (kept && by_name(&holders[kept - 1], &holders[i]) == 0) {
            holders[kept - 1].blocks += holders[i].blocks;
            holders[kept - 1].bytes += holders[i].bytes;
            free(holders[i].name);
        } else {
            holders[kept++] = holders[i];
        }
    }
    report->holder_count = kept;
    if (kept)
        qsort(holders, kept, sizeof *holders, by_held);
}

static void make_holders(struct census_report *report, const struct leak_graph_block *blocks,
                         size_t count, const struct census_view *view) {
    struct held *all = NULL;
    size_t all_count = 0;
    for (size_t i = 0; i < count; i++)
        if (blocks[i].kind == LEAK_REACHABLE)
            *vector_push(all, all_count) = (struct held){blocks[i].root, 1, blocks[i].size};
    if (all_count)
        qsort(all, all_count, sizeof *all, by_root);
    for (size_t i = 0, end; i < all_count; i = end) {
        struct held sum = all[i];
        for (end = i + 1; end < all_count && all[end].root == sum.root; end++) {
            sum.blocks += all[end].blocks;
            sum.bytes += all[end].bytes;
        }
        char *name = census_root_name(view, report->census->pid, sum.root);
        *vector_push(report->holders, report->holder_count) =
            (struct census_holder){name, sum.blocks, sum.bytes};
    }
    free(all);
    join_holders(report);
}

// ---- the whole ---------------------------------------------------------------------------------

void census_report_make(struct census_report *report, const struct census *census,
                        const struct leak_graph *graph, const struct census_view *view) {
    size_t count;
    const struct leak_graph_block *blocks = leak_graph_blocks(graph, &count);
    struct types types = {.view = view, .pid = census->pid};
    *report = (struct census_report){.census = census};
    leak_sums_add(&report->sums, blocks, count);
    make_losses(report, blocks, count, &types);
    make_holders(report, blocks, count, view);
    free(types.at);
}

void census_report_free(struct census_report *report) {
    for (size_t i = 0; i < report->holder_count; i++)
        free(report->holders[i].name);
    free(report->holders);
    free(report->losses);
    *report = (struct census_report){0};
}
