#include "supervisor/tool/before.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/census.h"
#include "base/text.h"
#include "report/heap/census.h"

// A copy takes 25 ms for 100 MB (docs/attach.md), and a process is to stand still for 50 at most.
#define MOST_KILOBYTES (150ull << 10)

struct before {
    int pid;
    bool is_asked;
    pthread_t thread;
    bool is_joined;
    atomic_bool is_done;
    char *problem;
    struct census_taken taken;
    struct leak_graph *graph;
};

static unsigned long long anonymous_kilobytes(int pid) {
    char path[64], line[256];
    unsigned long long kilobytes = 0;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "RssAnon: %llu", &kilobytes) == 1)
            break;
    if (file)
        fclose(file);
    return kilobytes;
}

static char *look(struct before *before) {
    struct text text = {0};
    unsigned long long size = anonymous_kilobytes(before->pid);
    if (size > MOST_KILOBYTES && !before->is_asked) {
        text_format(&text,
                    "to copy its %llu MB would stop it for longer than 50 ms (--census=yes does)",
                    size >> 10);
        return text_take(&text);
    }
    char *problem = census_take(&before->taken, before->pid);
    if (problem)
        return problem;
    before->graph = census_leaks(&before->taken, 0);
    return before->graph ? NULL : base_copy("its memory cannot be read");
}

static void *run(void *context) {
    struct before *before = context;
    before->problem = look(before);
    atomic_store(&before->is_done, true);
    return NULL;
}

struct before *before_start(int pid, bool is_asked) {
    struct before *before = base_allocate(sizeof *before);
    *before = (struct before){.pid = pid, .is_asked = is_asked};
    if (pthread_create(&before->thread, NULL, run, before) != 0) {
        before->problem = base_copy("there is no memory for another thread");
        before->is_done = before->is_joined = true;
    }
    return before;
}

bool before_is_done(const struct before *before) {
    return atomic_load(&before->is_done);
}

void before_wait(struct before *before) {
    if (!before->is_joined)
        pthread_join(before->thread, NULL);
    before->is_joined = true;
}

const char *before_problem(const struct before *before) {
    return before->problem;
}

uint64_t before_pause(const struct before *before, unsigned *stops) {
    *stops = before->taken.census.stops;
    return before->taken.census.pause;
}

// ---- blocks by holder --------------------------------------------------------------------------

static uint64_t root_of(const struct leak_graph_block *block) {
    return block->kind == LEAK_REACHABLE ? block->root : UINT64_MAX - block->kind;
}

static int by_root(const void *a, const void *b) {
    const struct leak_graph_block *one = *(const struct leak_graph_block *const *)a;
    const struct leak_graph_block *other = *(const struct leak_graph_block *const *)b;
    uint64_t first = root_of(one), second = root_of(other);
    return first != second ? (first > second) - (first < second)
                           : (one->start > other->start) - (one->start < other->start);
}

static char *place_of(void *context, uint64_t root) {
    return census_place(context, root);
}

// A name, and the roots that have it: [start, end).
struct named_roots {
    char *name;
    uint64_t start, end;
};

static char *name_of(const struct before *before, struct symbols *symbols,
                     const struct leak_graph_block *block) {
    const struct census_view view = {
        .context = (void *)&before->taken, .symbols = symbols, .place = place_of};
    struct text text = {0};
    if (block->kind != LEAK_REACHABLE)
        return base_copy("lost");
    char *root = census_root_name(&view, before->pid, block->root);
    text_format(&text, "held by %s", root);
    free(root);
    return text_take(&text);
}

// An array has many roots and one name.
static void name_roots(const struct before *before, struct symbols *symbols,
                       const struct leak_graph_block *block, struct named_roots *named) {
    struct symbol_data data = {0};
    uint64_t root = root_of(block);
    if (named->name && root >= named->start && root < named->end)
        return;
    free(named->name);
    *named = (struct named_roots){name_of(before, symbols, block), root, root + 1};
    if (block->kind == LEAK_REACHABLE && root &&
        symbols_resolve_data(symbols, before->pid, root, &data) && data.size > data.offset)
        named->end = root - data.offset + data.size;
}

void before_blocks(struct before *before, struct symbols *symbols,
                   void (*block)(void *context, const char *holder, uint64_t address,
                                 uint64_t size),
                   void *context) {
    size_t count;
    const struct leak_graph_block *blocks = leak_graph_blocks(before->graph, &count);
    const struct leak_graph_block **order = base_allocate((count + 1) * sizeof *order);
    struct named_roots named = {0};
    for (size_t i = 0; i < count; i++)
        order[i] = &blocks[i];
    if (count)
        qsort(order, count, sizeof *order, by_root);
    for (size_t i = 0; i < count; i++) {
        name_roots(before, symbols, order[i], &named);
        block(context, named.name, order[i]->start, order[i]->size);
    }
    free(named.name);
    free(order);
}

void before_free(struct before *before) {
    if (!before)
        return;
    before_wait(before);
    if (before->graph)
        leak_graph_free(before->graph);
    census_free(&before->taken);
    free(before->problem);
    free(before);
}
