// Registers whose contents are known when code is translated: addresses, mostly. Valgrind's model
// knows these, too: a jump or call through such a register is not an indirect one there.
//
// Contents are known within a piece (joined.h), from the instruction that sets the register on. An
// instruction that this file does not know changes all registers.
#ifndef QUERN_TOOLS_CALLGRIND_KNOWN_H
#define QUERN_TOOLS_CALLGRIND_KNOWN_H

#include <stdbool.h>

#include "engine/tool.h"

// While code is translated: a block begins; its next instruction.
void known_block(void);
void known_add(const struct tool_insn *);
// Before known_add: whether a jump or call goes through a register with known contents.
bool known_target(const struct tool_insn *);
// Before known_add of a direct jump or call: the piece may continue at its target. The address of
// the jump or call that ends the piece there, if its target is known; 0: none.
uint64_t known_beyond(const struct tool_insn *);

#endif
