// Following undefined values through one instruction.
//
// When a block is translated, track_prepare prepares each instruction that may meet undefined
// values. When such an instruction is due, track_run runs first, on the same thread. The target's
// general registers are saved (tool_register and its kin work), its vector registers are still in
// the processor. track_run
//   - checks whether the instruction's addresses are defined (findings_add_value), and whether the
//     memory that it touches is addressable (findings_add_access)
//   - checks whether the condition of a branch or move is defined (findings_add_condition); a
//     conditional set only passes the undefined bits on
//   - computes the undefined bits of all that the instruction writes, in registers (registers.h)
//   and
//     memory (shadow.h), from the values and bits that it reads
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
