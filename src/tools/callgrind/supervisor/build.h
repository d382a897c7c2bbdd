// The making of a call graph with names: what supervisor/graph.c reads from the file of counts is
// added here, place by place. Addresses are looked up once. For supervisor/graph.c and
// supervisor/jumps.c.
#ifndef QUERN_SUPERVISOR_COUNTS_BUILD_H
#define QUERN_SUPERVISOR_COUNTS_BUILD_H

#include "base/map.h"
#include "tools/callgrind/supervisor/graph.h"

struct place; // what is known of an address

enum { BUILD_LEVELS = 2 }; // of recursion, if contexts are not numbered

struct counts_build {
    const struct counts_source *source;
    struct symbols *symbols;
    int pid;
    bool sound;
    // The file, as far as it is the same for all threads. Numbers are within bounds.
    const struct counts_header *header;
    const struct counts_id *ids;
    const uint8_t *lengths;
    const uint64_t *function_pcs;
    uint32_t id_count, length_count, function_count, thread_count;
    uint32_t thread; // being read

    struct counts_result *result;
    struct call_graph *graph;
    unsigned columns[COUNTS_EVENTS]; // of the graph, by event; COUNTS_EVENTS: not counted
    bool with_jumps;                 // they are collected
    struct map_integers branch_map;  // by the pc of a branch
    uint32_t *branches;              // their ids
    size_t branch_count;
    struct jump_entry {
        uint32_t site;
        uint64_t target;
    } * entries; // sorted: functions entered by jumps
    size_t entry_count;
    uint32_t *functions;    // number in the graph + 1, by function and level
    struct map context_map; // by name, file and object
    uint32_t *contexts;     // their numbers in the graph
    size_t context_count;
    uint32_t *by_function;         // ids in the order of their functions
    uint32_t *first_id;            // of each function, in that; one more at the end
    struct map_integers place_map; // by pc
    struct place *places;
    size_t place_count;
};

// The function's number in the graph. Without a symbol it is named by its address.
uint32_t build_function(struct counts_build *, uint32_t function, uint32_t level);
// The same for a numbered context.
uint32_t build_context(struct counts_build *, const struct counts_context *);
struct graph_place build_place(struct counts_build *, uint32_t function, uint64_t pc);
// The numbers of a new cost, and of a new call, all 0.
size_t build_cost(struct counts_build *, uint32_t function, uint64_t pc);
size_t build_call(struct counts_build *, uint32_t function, uint64_t pc, uint32_t callee,
                  uint64_t count);
void build_value(struct counts_build *, size_t values, enum counts_event, uint64_t amount);
void build_event(struct counts_build *, uint32_t function, uint64_t pc, enum counts_event,
                 uint64_t amount);
void build_jump(struct counts_build *, const struct graph_jump *);
void build_free(struct counts_build *);

// ---- supervisor/contexts.c ----

// Reads a counter of an area, and the one of what was skipped, for a function of the graph, or the
// one that the id belongs to (BUILD_OWN).
#define BUILD_OWN UINT32_MAX
void build_counter(struct counts_build *, const struct counts_thread *, uint32_t area, uint32_t id,
                   uint32_t function);
// All that is there of an area.
void build_area(struct counts_build *, const uint8_t *part, uint32_t area, uint32_t function);
void contexts_read(struct counts_build *, const uint8_t *part);
// The context of an edge, by its number.
uint32_t contexts_number(struct counts_build *, const uint8_t *part, uint32_t context);

// ---- supervisor/jumps.c ----

void jumps_start(struct counts_build *);
// In a function of the graph: the instruction at pc was executed `times` times; a branch was taken
// `times` times; an indirect jump was made, by an edge.
void jumps_met(struct counts_build *, uint32_t function, uint64_t pc, uint64_t times);
void jumps_taken(struct counts_build *, uint32_t function, const struct counts_id *,
                 uint64_t times);
void jumps_indirect(struct counts_build *, uint32_t function, const struct counts_edge *);
// Before jumps_indirect, with all edges of the thread: jumps into functions count as calls already.
void jumps_note_calls(struct counts_build *, const struct counts_edge *edges, uint32_t count);

#endif
