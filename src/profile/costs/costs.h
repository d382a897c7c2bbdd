// Costs of functions and lines, and calls between functions: what callgrind.out and cachegrind.out
// files say, Quern's and Valgrind's.
//
// Words
//   event      what is counted: Ir, D1mr …
//   values     one number for each event, in a row; cost_values finds them by number
//   own        spent in a function's or a line's own instructions
//   inclusive  of a call: spent until it returned
//
// Functions are told apart by object, file and name; several files read into one profile add up.
// Supervisor only: it allocates.
#ifndef QUERN_PROFILE_COSTS_H
#define QUERN_PROFILE_COSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { COST_EVENTS = 32 };

struct cost_function {
    const char *object, *file, *name; // "" or "???" where nothing is known
    size_t own;
};

struct cost_line {
    uint32_t function;
    const char *file; // of the line: may be another than the function's
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

// Of files that tell addresses (--dump-instr=yes): one instruction of a function.
struct cost_instruction {
    uint32_t function;
    uint64_t address; // as the object's own tables count
    const char *file; // of its line
    uint32_t line;
    uint32_t callee; // the last that was called here; UINT32_MAX: none
    uint64_t count;  // of calls
    size_t own, inclusive;
};

// Of files that tell addresses and jumps (--collect-jumps=yes): a jump within a function or out of
// it. One that occurs in several parts of a file is told several times.
struct cost_jump {
    uint32_t function;
    uint64_t from, to;
    uint64_t taken;
    uint64_t executed; // of a conditional one; 0: it is none
};

struct cost_profile {
    const char *events[COST_EVENTS];
    unsigned event_count;
    uint64_t totals[COST_EVENTS];
    const char *command, *creator, *caches[3]; // of the file read last; NULL: not said
    bool has_calls;
    struct cost_function *functions;
    struct cost_line *lines;
    struct cost_call *calls;
    struct cost_instruction *instructions;
    struct cost_jump *jumps;
    size_t function_count, line_count, call_count, instruction_count, jump_count;
    uint64_t *values;
    size_t value_count;
    struct cost_index *index; // what is where; costs.c
};

struct cost_profile *costs_new(void);
void costs_free(struct cost_profile *);
// Whether a file that begins so is one of these. 4096 bytes or the whole file will do.
bool costs_is_one(const char *start, size_t size);
// Adds what the file says. NULL, or what is wrong with it, to be freed.
char *costs_read(struct cost_profile *, FILE *in);

static inline uint64_t *cost_values(const struct cost_profile *profile, size_t number) {
    return profile->values + number;
}
// The event's column, or -1.
int costs_event(const struct cost_profile *, const char *name);

// For whoever fills a profile.
const char *costs_string(struct cost_profile *, const char *text, size_t size);
uint32_t costs_function(struct cost_profile *, const char *object, const char *file,
                        const char *name);
void costs_add_line(struct cost_profile *, uint32_t function, const char *file, uint32_t line,
                    const uint64_t *values);
void costs_add_call(struct cost_profile *, const struct cost_call *, const uint64_t *values);
// Costs at an address, beside those of its line or, with a callee, of its call.
void costs_add_instruction(struct cost_profile *, const struct cost_instruction *,
                           const uint64_t *values);
void costs_add_jump(struct cost_profile *, const struct cost_jump *);

#endif
