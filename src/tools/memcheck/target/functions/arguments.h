// Checks that the arguments of a replaced function are defined, and marks its result as defined.
// General registers only.
#ifndef QUERN_MEMCHECK_ARGUMENTS_H
#define QUERN_MEMCHECK_ARGUMENTS_H

#include <stdint.h>

#include "tools/shared/arguments.h"
#include "tools/memcheck/target/findings/findings.h"
#include "tools/memcheck/target/memcheck.h"

static inline void set_result(uint64_t value) {
    tool_registers()[RESULT] = value;
    memcheck_thread()->registers.undefined[RESULT] = 0;
}

// Whether the first arguments are all defined: the usual case.
static inline bool arguments_are_defined(unsigned count) {
    const uint8_t *undefined = memcheck_thread()->registers.undefined;
    uint8_t any = 0;
    for (unsigned i = 0; i < count; i++)
        any |= undefined[argument_register(i)];
    return !any;
}

// Reports the first arguments that are undefined: pointers (bits of the mask) as addresses, others
// as what a decision depends on (arguments.c).
void arguments_report(unsigned count, unsigned pointers);
void arguments_report_one(unsigned i); // no pointer

static inline void arguments_check(unsigned count, unsigned pointers) {
    if (__builtin_expect(!arguments_are_defined(count), 0))
        arguments_report(count, pointers);
}

// Writes a word on the target's behalf, as the function itself would. False: the target gets a
// signal instead of a result.
bool target_store(uint64_t address, uint64_t word);

#endif
