// Stubs: machine code that performs one instruction on bits instead of values.
//
// An instruction that only moves data moves undefined bits in the same way. A stub loads a frame
// into registers, performs the instruction, stores the registers to the frame and restores the
// target's registers. Its instruction is the target's with other registers: each operand has its
// own (enum stub_slot), and memory is the frame's. So instructions that differ only in registers
// and addresses share a stub, and one operand can be bits while another one that names the same
// register is a value.
#ifndef QUERN_MEMCHECK_TRACK_STUB_H
#define QUERN_MEMCHECK_TRACK_STUB_H

#include "tools/memcheck/target/track/parts.h"

// Numbers of the vector and mask registers that stand for operands, by where the instruction names
// them. Slot 0 is xmm0, which some instructions imply.
enum stub_slot { SLOT_IMPLIED, SLOT_REG, SLOT_RM, SLOT_VVVV, SLOT_IS4, SLOTS };
enum { SLOT_WRITEMASK = 4 }; // of mask registers

struct stub_frame {
    wide memory[2];
    wide vector[SLOTS];
    wide saved[SLOTS];
    uint64_t general[SLOTS];
    uint64_t mask[SLOTS];
    uint64_t saved_mask[SLOTS];
} __attribute__((aligned(64)));

// What the stub's instruction keeps of the writemask.
enum stub_mask { STUB_UNMASKED, STUB_MASKED };

// NULL: not possible for this instruction. Called while code is translated.
void (*stub_make(const struct track *, const uint8_t *bytes, const ZydisDecodedInstruction *,
                 enum stub_mask))(struct stub_frame *);

void stub_forget_all(void);

// Values of the registers that are in the processor.
void stub_start(void); // once, before anything else
void stub_read_vector(unsigned number, wide value);
uint64_t stub_read_mask(unsigned number);
uint64_t stub_read_mmx(unsigned number);

#endif
