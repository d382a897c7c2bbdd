// Costs of functions and lines, and calls between functions: the content of callgrind.out and
// cachegrind.out files, Quern's and Valgrind's.
//
// Words
//   event      what is counted: Ir, D1mr …
//   values     an array with one number for each event; cost_values finds it by number
//   own        the cost of a function's or a line's own instructions
//   inclusive  the cost of a call until it returned
//
// Object, file and name identify a function. Several files read into one profile add up.
// Supervisor only: it allocates.
#ifndef QUERN_PROFILE_COSTS_H
#define QUERN_PROFILE_COSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { COST_EVENTS = 32, COST_DESCRIPTIONS = 8 };

struct cost_function {
    const char *object, *file, *name; // "" or "???" where unknown
    size_t own;
};

struct cost_line {
    uint32_t function;
    const char *file; // of the line; may differ from the function's
    uint32_t line;
    size_t own;
};

struct cost_call {
    uint32_t caller, callee;
    const char *file; // of the line that calls
    uint32_t line;
    uint64_t count;
    size_t inclusive;
};

// One instruction of a function, in files with addresses (--dump-instr=yes).
struct cost_instruction {
    uint32_t function;
    uint64_t address; // in the object's own tables
    const char *file; // of its line
    uint32_t line;
    uint32_t callee; // the last one called here; UINT32_MAX: none
    uint64_t count;  // of calls
    size_t own, inclusive;
};

// A jump within a function or out of it, in files with addresses and jumps (--collect-jumps=yes). A
// jump in several parts of a file occurs several times.
struct cost_jump {
    uint32_t function;
    uint64_t from, to;
    uint64_t taken;
    uint64_t executed; // for a conditional jump; 0: it is unconditional
};

struct cost_profile {
    const char *events[COST_EVENTS];
    unsigned event_count;
    uint64_t totals[COST_EVENTS];  // of the lines
    uint64_t summary[COST_EVENTS]; // as the files say; may be more than the lines have
    bool has_summary;
    // Of the file read last; NULL: not in the file.
    const char *command, *creator, *caches[3], *process, *part;
    const char *descriptions[COST_DESCRIPTIONS]; // the lines "desc:" that are no options
    bool has_calls;
    bool is_signed; // set by who reads the difference of two profiles: costs may be below zero
    struct cost_function *functions;
    struct cost_line *lines;
    struct cost_call *calls;
    struct cost_instruction *instructions;
    struct cost_jump *jumps;
    size_t function_count, line_count, call_count, instruction_count, jump_count;
    uint64_t *values;
    size_t value_count;
    struct cost_index *index; // hash tables of costs.c
};

struct cost_profile *costs_new(void);
void costs_free(struct cost_profile *);
// Whether a file that begins with these bytes has this format. Give 4096 bytes or the whole file.
bool costs_is_one(const char *start, size_t size);
// Adds the content of the file. Returns NULL, or an error message that the caller frees.
char *costs_read(struct cost_profile *, FILE *in);

static inline uint64_t *cost_values(const struct cost_profile *profile, size_t number) {
    return profile->values + number;
}
// The event's column, or -1.
int costs_event(const struct cost_profile *, const char *name);

// For code that fills a profile.
const char *costs_string(struct cost_profile *, const char *text, size_t size);
uint32_t costs_function(struct cost_profile *, const char *object, const char *file,
                        const char *name);
void costs_add_line(struct cost_profile *, uint32_t function, const char *file, uint32_t line,
                    const uint64_t *values);
void costs_add_call(struct cost_profile *, const struct cost_call *, const uint64_t *values);
// Adds costs at an address, in addition to those of its line or, with a callee, of its call.
void costs_add_instruction(struct cost_profile *, const struct cost_instruction *,
                           const uint64_t *values);
void costs_add_jump(struct cost_profile *, const struct cost_jump *);

#endif
