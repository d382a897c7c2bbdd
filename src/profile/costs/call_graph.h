// A call graph with exact costs: the content of a callgrind.out file. Tools fill it, writers read
// it.
//
// Words
//   place   where in the code: function, source file and line, address in the object
//   cost    what the instructions of a place have cost, without the functions that they call
//   call    from a place to a function: the number of calls and their inclusive cost
//   values  of a cost or call: one number for each event, in a row; `values` is the first one's
//   index
//
// A number identifies a function; several functions may have the same name. Strings are borrowed.
#ifndef QUERN_PROFILE_CALL_GRAPH_H
#define QUERN_PROFILE_CALL_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct graph_function {
    const char *object, *file, *name;
    uint64_t address; // of its first instruction
    uint32_t line;
};

struct graph_place {
    uint32_t function;
    uint32_t line; // 0: not known
    const char *file;
    uint64_t address;
    uint64_t rank; // within its function, places are written by it, then by file, line and address
};

enum { GRAPH_EVENTS = 32 }; // at most

struct graph_cost {
    struct graph_place at;
    size_t values;
};

struct graph_call {
    struct graph_place at;
    uint32_t callee;
    uint64_t count;
    size_t values;
};

// Within a function, as a rule.
struct graph_jump {
    struct graph_place at, to; // of `to`, the function does not matter
    const char *function;      // the name of another that it leads into; NULL: it stays
    bool conditional;
    uint64_t taken, met; // met: if conditional
};

struct call_graph {
    struct graph_function *functions;
    struct graph_cost *costs;
    struct graph_call *calls;
    struct graph_jump *jumps;
    size_t function_count, cost_count, call_count, jump_count;
    uint64_t *values;
    size_t value_count;
    unsigned event_count;
    const char *events[GRAPH_EVENTS]; // their names
    const char *titles[GRAPH_EVENTS]; // what they are called besides; NULL: nothing
    uint64_t totals[GRAPH_EVENTS];    // of all costs
};

#endif
