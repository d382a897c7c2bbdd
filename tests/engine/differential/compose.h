// Forms of more than one instruction: branches with their destinations, sequences in which a
// translator must keep registers and flags alive between rewritten instructions, and the cases that
// no walk over opcodes finds (trap flag, 16-bit branches, branches into nowhere, x87 pointers).
#ifndef DIFFERENTIAL_COMPOSE_H
#define DIFFERENTIAL_COMPOSE_H

#include "draft.h"
#include "random.h"

// Adds the drafts of a branch whose code holds only the branch instruction.
void compose_relative(const struct draft *branch, const ZydisDecodedInstruction *instruction);

// Extensions that few CPUs have: where they are missing, one state shows it.
bool compose_is_rare(const ZydisDecodedInstruction *instruction);

// Keeps an instruction that needs no set-up for use in sequences.
void compose_remember(const struct draft *single, const ZydisDecodedInstruction *instruction);

void compose_sequences(unsigned count, struct random *random);

void compose_special(void);

#endif
