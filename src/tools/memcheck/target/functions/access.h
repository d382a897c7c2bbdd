// Target memory as replaced functions read and write it: with the errors that the function itself
// would have caused, element by element. General registers only.
//
// A function runs as a body inside tool_try. An access to unmapped memory ends the body, is
// reported, and the target gets its signal. Results are defined, whatever was read.
#ifndef QUERN_MEMCHECK_ACCESS_H
#define QUERN_MEMCHECK_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "tools/memcheck/target/functions/arguments.h"
#include "tools/memcheck/target/shadow/shadow.h"

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define ALWAYS      static inline __attribute__((always_inline))

struct call {
    uint64_t a[ARGUMENTS];
    uint64_t result;
    unsigned step;    // size of the accesses that the function makes
    bool writing;     // the access under way is a write
    uint64_t written; // what is written, of a function that does not tell access by access
    size_t written_size;
    const char *name;       // as reports of overlaps name it
    volatile bool scanning; // a search runs ahead of all checks
    bool careful;           // it has met memory that is not there: now element by element
};

// Runs a body with the arguments that the target has passed.
void access_run(tool_function *body, unsigned step, const char *name);

// Whether a range is fine to be read by a function whose decisions depend on it; to be written.
ALWAYS bool is_plain(uint64_t start, size_t size) {
    uint64_t bad;
    return shadow_check_defined(start, size, &bad) == SHADOW_FINE;
}

ALWAYS bool is_writable(uint64_t start, size_t size) {
    uint64_t bad;
    return shadow_check_addressable(start, size, &bad) == SHADOW_FINE;
}

// Reports one access if it is wrong: memory that is not addressable, or, if the function decides by
// it, not defined.
void access_report(uint64_t address, unsigned size, bool writes, bool decides);

// An element, on which the function decides.
ALWAYS uint64_t get(struct call *call, uint64_t address, unsigned step) {
    if (step == 1) {
        if (UNLIKELY(!tool_has_shadow(address, 1) || *shadow_of(address)))
            access_report(address, 1, false, true);
        return *(const volatile uint8_t *)address;
    }
    if (UNLIKELY(!is_plain(address, step)))
        access_report(address, step, false, true);
    return *(const volatile uint32_t *)address;
}

// Copies the state of bytes, sets their undefined bits; those that are not addressable stay so.
void access_copy_state(uint64_t to, uint64_t from, size_t size);
void access_set_state(uint64_t address, size_t size, uint8_t bits);

ALWAYS void write_element(struct call *call, uint64_t address, uint64_t value, unsigned step) {
    call->writing = true;
    if (step == 1)
        *(volatile uint8_t *)address = value;
    else
        *(volatile uint32_t *)address = value;
    call->writing = false;
}

// A defined element.
ALWAYS void put(struct call *call, uint64_t address, uint64_t value, unsigned step) {
    bool is_fine = is_writable(address, step);
    if (UNLIKELY(!is_fine))
        access_report(address, step, true, false);
    write_element(call, address, value, step);
    if (LIKELY(is_fine))
        shadow_make_defined(address, step);
    else
        access_set_state(address, step, 0);
}

// Copies an element as it is, and returns it; the function decides by it.
ALWAYS uint64_t carry(struct call *call, uint64_t to, uint64_t from, unsigned step) {
    uint64_t value = get(call, from, step);
    bool is_fine = is_writable(to, step);
    if (UNLIKELY(!is_fine))
        access_report(to, step, true, false);
    write_element(call, to, value, step);
    if (LIKELY(is_fine))
        shadow_copy(to, from, step);
    else
        access_copy_state(to, from, step);
    return value;
}

// Whether two ranges have a byte in common.
ALWAYS bool overlap(uint64_t a, size_t a_size, uint64_t b, size_t b_size) {
    return a_size && b_size && (a < b ? b - a < a_size : a - b < b_size);
}

#endif
