// Registers whose contents are known when code is translated: addresses, mostly. A jump or call to
// such a register's is not an indirect one in Valgrind's model, which has worked out where it
// leads.
//
// What is known holds within a piece (joined.h), from the instruction that sets a register on.
// Instructions that are not told apart here are taken to change all of them.
#ifndef QUERN_TOOLS_CALLGRIND_KNOWN_H
#define QUERN_TOOLS_CALLGRIND_KNOWN_H

#include <stdbool.h>

#include "engine/tool.h"

// While code is translated: a block begins; its next instruction.
void known_block(void);
void known_add(const struct tool_insn *);
// Before known_add: whether a jump or call goes to where a register says that is known.
bool known_target(const struct tool_insn *);
// Before known_add of a direct jump or call: the address of the jump or call that ends the piece if
// it goes on there and if that one's target is known then; 0: there is none.
uint64_t known_beyond(const struct tool_insn *);

#endif
