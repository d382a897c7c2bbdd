// The engine as memcheck's heap and replaced functions see it, small enough for unit tests: one
// area of target memory with shadow memory, a call stack that the test sets, errors that are
// counted, faults that end tool_try.
#ifndef QUERN_TESTS_MEMCHECK_ENGINE_H
#define QUERN_TESTS_MEMCHECK_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void engine_start(void); // once
// Options of the tool; the last argument is NULL. Values stay as long as the caller's strings.
void engine_set_option(const char *name, const char *value);
extern _Thread_local uint64_t engine_registers[16];
extern _Thread_local uint64_t engine_stack[16]; // up to the first 0
extern _Atomic size_t engine_mapped;            // bytes that tool_map has given out
extern bool engine_raised;                      // tool_raise was called

struct engine_error {
    const char *what; // access condition value free mismatch overlap fishy
    uint64_t address; // overlap: destination; fishy: value
    size_t size;
    bool writes;
};
enum { ENGINE_ERRORS = 64 };
extern struct engine_error engine_errors[ENGINE_ERRORS];
extern unsigned engine_error_count; // may be more than are kept
void engine_forget_errors(void);

#endif
