// Following undefined values through one instruction.
//
// When a block is translated, instructions that may meet undefined values are prepared once
// (track_prepare); when they run, track_run goes first, on the thread, with the target's general
// registers saved (tool_register and its kin work), vector registers still in the processor. It
//   - checks what the instruction's addresses depend on (findings_add_value) and whether memory it
//   touches
//     is addressable (findings_add_access),
//   - for a conditional branch, move or set: whether its condition is defined
//   (findings_add_condition; a
//     set merely passes the bits on),
//   - computes the undefined bits of everything it writes, registers (registers.h) and memory
//     (shadow.h), from values and bits that it reads.
// Then the instruction itself runs.
#ifndef QUERN_MEMCHECK_TRACK_H
#define QUERN_MEMCHECK_TRACK_H

#include <stdbool.h>
#include <stdint.h>
#include <Zydis/Zydis.h>
#include "tools/memcheck/target/shadow/registers.h"

// --track-origins, --partial-loads-ok, --undef-value-errors.
extern bool track_origins, track_partial_loads, track_value_errors;
// Where the dynamic loader's code lies. Its string functions cannot be replaced, as it has no
// symbols; they read 64 aligned bytes at a time, of which some vectors may lie outside a block.
extern uint64_t track_loader_start, track_loader_end;
void track_start(void); // once, before anything else

struct track; // an instruction, prepared

// Registers of an instruction, bits by enum shadow_unit.
struct track_units {
    uint64_t reads;  // what its outcome may depend on, addresses and partly overwritten registers
                     // included; not xor r,r and other idioms whose outcome does not
    uint64_t writes; // what it may change
    uint64_t kills;  // of those, what it overwrites entirely whatever happens
};
struct track_units track_units(const ZydisDecodedInstruction *, const ZydisDecodedOperand *);

// NULL: nothing to follow (nop, endbr64 …). The result is used by all threads and lasts for good or
// until track_forget_all.
struct track *track_prepare(uint64_t pc, const uint8_t *bytes, const ZydisDecodedInstruction *,
                            const ZydisDecodedOperand *);
void track_forget_all(void); // translated code is gone

// General registers only: neither it nor anything it calls on its usual way touches vector
// registers, except through stubs that put them back. Findings take another way
// (tool_with_vectors).
void track_run(const struct track *);

#endif
