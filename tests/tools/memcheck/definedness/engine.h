// What track needs of the engine and of shadow memory, for a program that runs single instructions.
//
// The target's registers are the state at CONTEXT_IN; shadow memory is a byte array for each of the
// two areas of the differential test's layout. Built for general registers only, as the real ones.
#ifndef DEFINEDNESS_ENGINE_H
#define DEFINEDNESS_ENGINE_H

#include <stdint.h>
#include "tools/memcheck/target/shadow/registers.h"
#include "tools/memcheck/target/track/track.h"

extern struct shadow_registers engine_shadow;
// Findings since they were last cleared.
extern struct engine_findings {
    unsigned values, conditions, reads, writes;
    unsigned size;    // of the last value or access
    uint64_t address; // of the last access
    uint32_t origin;
} engine_findings;

// The shadow byte of an address; NULL outside the areas.
uint8_t *engine_shadow_byte(uint64_t address);
void engine_clear_shadow(void); // all defined and addressable
bool engine_is_writable(uint64_t address);
// Whether the byte may be accessed; all may be at first.
void engine_set_addressable(uint64_t address, bool);

// Loads the vector registers of CONTEXT_IN, calls track_run, stores them at CONTEXT_OUT: they must
// not have changed.
void engine_run(const struct track *);

#endif
