#include "profile/heap/leak_graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/text.h"
#include "base/vector.h"
#include "profile/findings/leak_heuristics.h"

#define NO_BLOCK UINT32_MAX
// Blocks further apart are in areas of their own, each with a table by granule.
#define AREA_GAP (1ull << 20)
#define GRANULE  4096

#define LIBC_HEADER 16
#define LIBC_LEAST  32 // bytes that libc takes for a block, header included

#define DIRECT 255 // instead of a heuristic: a pointer to the first byte was seen

#define INNER 1u // lowest bit of an edge: an inner pointer; the others are the block's number

enum state { UNREACHED, MAYBE, REACHED, LOST };

struct area {
    uint64_t start, end;
    uint32_t *first; // by granule: the first block that starts there or later; one more at the end
};

struct leak_graph {
    struct leak_graph_block *blocks;
    uint32_t count;
    struct area *areas;
    size_t area_count;
    const struct area *latest; // where a pointer last led to
    uint64_t lowest, span;
    unsigned heuristics;
    bool ignores_headers;
    struct leak_graph_memory memory;
    uint8_t *states;
    // Pointers in blocks, in the order of these: those of block i are [edge_start[i],
    // edge_start[i + 1]).
    uint32_t *edges;
    uint64_t edge_count;
    uint64_t *edge_start;
    uint32_t scanned; // blocks whose first edge is known
    uint32_t *queue;  // blocks to go on from, used as a stack
    uint32_t waiting;
};

// ---- blocks ------------------------------------------------------------------------------------

static int by_start(const void *a, const void *b) {
    const struct leak_graph_block *one = a, *other = b;
    return (one->start > other->start) - (one->start < other->start);
}

// A block without bytes can be pointed to all the same.
static uint64_t end_of(const struct leak_graph_block *block) {
    return block->start + (block->size ? block->size : 1);
}

static size_t without_overlaps(struct leak_graph_block *blocks, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (!kept || blocks[i].start >= end_of(&blocks[kept - 1]))
            blocks[kept++] = blocks[i];
    return kept;
}

static void fill_area(struct leak_graph *graph, struct area *area, uint32_t first, uint32_t end) {
    size_t granules = (size_t)((area->end - area->start + GRANULE - 1) / GRANULE);
    area->first = base_allocate((granules + 1) * sizeof *area->first);
    for (size_t granule = 0; granule <= granules; granule++) {
        while (first < end && graph->blocks[first].start < area->start + granule * GRANULE)
            first++;
        area->first[granule] = first;
    }
}

static void make_areas(struct leak_graph *graph) {
    for (uint32_t i = 0, end; i < graph->count; i = end) {
        uint64_t high = end_of(&graph->blocks[i]);
        for (end = i + 1; end < graph->count && graph->blocks[end].start - high < AREA_GAP; end++)
            high = end_of(&graph->blocks[end]);
        struct area *area = vector_push(graph->areas, graph->area_count);
        *area = (struct area){.start = graph->blocks[i].start, .end = high};
        fill_area(graph, area, i, end);
    }
}

static const struct area *area_of(const struct leak_graph *graph, uint64_t address) {
    const struct area *areas = graph->areas;
    size_t i = search_first(at, 0, graph->area_count, areas[at].end > address);
    return i < graph->area_count && areas[i].start <= address ? &areas[i] : NULL;
}

static uint32_t find(struct leak_graph *graph, uint64_t address) {
    const struct area *area = graph->latest;
    if (!area || address - area->start >= area->end - area->start) {
        area = area_of(graph, address);
        if (!area)
            return NO_BLOCK;
        graph->latest = area;
    }
    size_t granule = (size_t)((address - area->start) / GRANULE);
    uint32_t behind = (uint32_t)search_first(at, area->first[granule], area->first[granule + 1],
                                             graph->blocks[at].start > address);
    // The last block that starts at the address or before.
    return behind && address < end_of(&graph->blocks[behind - 1]) ? behind - 1 : NO_BLOCK;
}

struct leak_graph *leak_graph_new(struct leak_graph_block *blocks, size_t count,
                                  unsigned heuristics, const struct leak_graph_memory *memory) {
    struct leak_graph *graph = base_allocate(sizeof *graph);
    if (count)
        qsort(blocks, count, sizeof *blocks, by_start);
    count = without_overlaps(blocks, count < NO_BLOCK / 2 ? count : NO_BLOCK / 2);
    *graph = (struct leak_graph){
        .blocks = blocks, .count = (uint32_t)count, .heuristics = heuristics, .memory = *memory};
    graph->states = base_allocate(count + 1);
    memset(graph->states, UNREACHED, count + 1);
    graph->edge_start = base_allocate((count + 1) * sizeof *graph->edge_start);
    graph->queue = base_allocate((count + 1) * sizeof *graph->queue);
    if (count) {
        graph->lowest = blocks[0].start;
        graph->span = end_of(&blocks[count - 1]) - graph->lowest;
    }
    make_areas(graph);
    return graph;
}

void leak_graph_ignore_headers(struct leak_graph *graph) {
    graph->ignores_headers = true;
}

void leak_graph_free(struct leak_graph *graph) {
    for (size_t i = 0; i < graph->area_count; i++)
        free(graph->areas[i].first);
    free(graph->areas);
    free(graph->blocks);
    free(graph->states);
    free(graph->edges);
    free(graph->edge_start);
    free(graph->queue);
    free(graph);
}

const struct leak_graph_block *leak_graph_blocks(const struct leak_graph *graph, size_t *count) {
    *count = graph->count;
    return graph->blocks;
}

// ---- heuristics --------------------------------------------------------------------------------

// What the heuristics look at.
struct view {
    const struct leak_graph *graph;
    const struct leak_graph_block *block;
};

static bool read_word(const struct leak_graph *graph, uint64_t address, uint64_t *word) {
    return graph->memory.read(graph->memory.context, address, word);
}

// Only whole words of the block.
static bool read_block(const void *context, uint64_t address, uint64_t *word) {
    const struct view *view = context;
    return address + 8 <= end_of(view->block) && read_word(view->graph, address, word);
}

static bool read_table(const void *context, uint64_t table, uint64_t address, uint64_t *word) {
    const struct view *view = context;
    return read_word(view->graph, address, word);
}

static bool is_code(const void *context, uint64_t address) {
    const struct leak_graph *graph = ((const struct view *)context)->graph;
    return graph->memory.is_code(graph->memory.context, address);
}

// The heuristic by which an inner pointer counts as one to the first byte, plus 1; 0: none.
static uint8_t heuristic_of(const struct leak_graph *graph, const struct leak_graph_block *block,
                            uint64_t pointer) {
    struct view view = {graph, block};
    struct leak_reader reader = {&view, read_block, read_table, is_code};
    return (
        uint8_t)(leak_heuristic_of(&reader, graph->heuristics, block->start, block->size, pointer) +
                 1);
}

// ---- memory ------------------------------------------------------------------------------------

// Whether a pointer into a block counts as an inner one.
static bool is_inner(struct leak_graph *graph, uint32_t number, uint64_t pointer) {
    struct leak_graph_block *block = &graph->blocks[number];
    if (pointer == block->start) {
        block->heuristic = DIRECT;
        return false;
    }
    uint8_t heuristic = heuristic_of(graph, block, pointer);
    if (heuristic && block->heuristic != DIRECT)
        block->heuristic = heuristic;
    return !heuristic;
}

static void reach(struct leak_graph *graph, uint32_t number, bool inner, uint64_t root,
                  uint32_t steps) {
    uint8_t *state = &graph->states[number];
    struct leak_graph_block *block = &graph->blocks[number];
    if (inner) {
        if (*state == UNREACHED)
            *state = MAYBE;
        return;
    }
    if (*state != REACHED)
        graph->queue[graph->waiting++] = number;
    // What only a register seemed to hold may be held by something that has a name.
    if (*state != REACHED || (!block->root && steps == 1)) {
        block->root = root;
        block->steps = steps;
    }
    *state = REACHED;
}

// Where libc has the header of what follows a block.
static uint64_t next_header(const struct leak_graph_block *block) {
    uint64_t whole = (block->size + LIBC_HEADER / 2 + 15) & ~15ull;
    return block->start - LIBC_HEADER + (whole > LIBC_LEAST ? whole : LIBC_LEAST);
}

static void take_root(struct leak_graph *graph, uint64_t address, const uint64_t *words,
                      size_t count, bool is_libc) {
    uint64_t lowest = graph->lowest, span = graph->span;
    for (size_t i = 0; i < count; i++) {
        if (words[i] - lowest >= span)
            continue;
        uint32_t number = find(graph, words[i]);
        uint64_t holder = address + i * 8;
        if (number == NO_BLOCK || (holder - lowest < span && find(graph, holder) != NO_BLOCK))
            continue;
        if ((is_libc || graph->ignores_headers) && words[i] == next_header(&graph->blocks[number]))
            continue;
        reach(graph, number, is_inner(graph, number, words[i]), address ? holder : 0, 1);
    }
}

void leak_graph_root(struct leak_graph *graph, uint64_t address, const uint64_t *words,
                     size_t count) {
    take_root(graph, address, words, count, false);
}

void leak_graph_libc(struct leak_graph *graph, uint64_t address, const uint64_t *words,
                     size_t count) {
    take_root(graph, address, words, count, true);
}

static void add_edge(struct leak_graph *graph, uint32_t from, uint32_t to, bool inner) {
    while (graph->scanned <= from)
        graph->edge_start[graph->scanned++] = graph->edge_count;
    uint32_t edge = to << 1 | (inner ? INNER : 0);
    // Arrays often hold one pointer many times.
    if (graph->edge_count > graph->edge_start[from] && graph->edges[graph->edge_count - 1] == edge)
        return;
    *vector_push(graph->edges, graph->edge_count) = edge;
}

void leak_graph_heap(struct leak_graph *graph, uint64_t address, const uint64_t *words,
                     size_t count) {
    uint64_t lowest = graph->lowest, span = graph->span;
    for (size_t i = 0; i < count; i++) {
        if (words[i] - lowest >= span)
            continue;
        uint32_t to = find(graph, words[i]);
        uint64_t holder = address + i * 8;
        if (to != NO_BLOCK && graph->ignores_headers && words[i] == next_header(&graph->blocks[to]))
            continue;
        uint32_t from = to == NO_BLOCK ? NO_BLOCK : find(graph, holder);
        // Only whole words of a block, and nothing that a block says of itself.
        if (from != NO_BLOCK && from != to && holder + 8 <= end_of(&graph->blocks[from]))
            add_edge(graph, from, to, is_inner(graph, to, words[i]));
    }
}

// ---- kinds -------------------------------------------------------------------------------------

static uint64_t edges_end(const struct leak_graph *graph, uint32_t block) {
    return graph->edge_start[block + 1];
}

static void follow_reachable(struct leak_graph *graph) {
    while (graph->waiting) {
        uint32_t block = graph->queue[--graph->waiting];
        graph->blocks[block].kind = LEAK_REACHABLE;
        for (uint64_t i = graph->edge_start[block]; i < edges_end(graph, block); i++)
            reach(graph, graph->edges[i] >> 1, graph->edges[i] & INNER, graph->blocks[block].root,
                  graph->blocks[block].steps + 1);
    }
}

// From blocks that an inner pointer leads to, all pointers lead on.
static void follow_possible(struct leak_graph *graph) {
    for (uint32_t i = 0; i < graph->count; i++)
        if (graph->states[i] == MAYBE)
            graph->queue[graph->waiting++] = i;
    while (graph->waiting) {
        uint32_t block = graph->queue[--graph->waiting];
        graph->blocks[block].kind = LEAK_POSSIBLE;
        for (uint64_t i = graph->edge_start[block]; i < edges_end(graph, block); i++) {
            uint32_t to = graph->edges[i] >> 1;
            if (graph->states[to] != UNREACHED)
                continue;
            graph->states[to] = MAYBE;
            graph->queue[graph->waiting++] = to;
        }
    }
}

// What a lost block leads to. A leader before it joins it, with all it leads to itself.
static void follow_lost(struct leak_graph *graph, uint32_t leader) {
    struct leak_graph_block *blocks = graph->blocks;
    blocks[leader].kind = LEAK_DEFINITE;
    graph->states[leader] = LOST;
    graph->queue[graph->waiting++] = leader;
    while (graph->waiting) {
        uint32_t block = graph->queue[--graph->waiting];
        for (uint64_t i = graph->edge_start[block]; i < edges_end(graph, block); i++) {
            uint32_t to = graph->edges[i] >> 1;
            bool was_leader =
                graph->states[to] == LOST && blocks[to].kind == LEAK_DEFINITE && to != leader;
            if (!was_leader && graph->states[to] != UNREACHED)
                continue;
            blocks[to].kind = LEAK_INDIRECT;
            blocks[leader].indirect += blocks[to].size;
            if (was_leader) {
                blocks[leader].indirect += blocks[to].indirect;
                blocks[to].indirect = 0;
                continue;
            }
            graph->states[to] = LOST;
            graph->queue[graph->waiting++] = to;
        }
    }
}

void leak_graph_classify(struct leak_graph *graph) {
    while (graph->scanned <= graph->count)
        graph->edge_start[graph->scanned++] = graph->edge_count;
    follow_reachable(graph);
    follow_possible(graph);
    for (uint32_t i = 0; i < graph->count; i++)
        if (graph->states[i] == UNREACHED)
            follow_lost(graph, i);
    for (uint32_t i = 0; i < graph->count; i++)
        if (graph->blocks[i].kind != LEAK_REACHABLE || graph->blocks[i].heuristic == DIRECT)
            graph->blocks[i].heuristic = 0;
}
