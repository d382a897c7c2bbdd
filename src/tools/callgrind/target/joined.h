// Two conditional branches that cachegrind counts as one, as Valgrind's does: those of `a && b`.
//
// Valgrind translates code in pieces. A piece begins where control comes in, and ends with a branch
// of any kind or a system call, or after 60 instructions. It may be extended once if it has 57 or
// less: by what the direct jump or call at its end leads to, or by the second of two conditional
// branches, if
//   - on one side of the first, at most two instructions are in front of the second, which touch no
//     memory, neither the program's nor the model's own for bits of registers (runs.c)
//   - one side of the second is the other side of the first
//   - the first three instructions on that other side lead neither back to the second nor to a
//     place that is not known
// A piece has one conditional branch, so the two are one then: it is counted at the second one's
// address, which goes to the common place if the first one does.
#ifndef QUERN_TOOLS_CALLGRIND_JOINED_H
#define QUERN_TOOLS_CALLGRIND_JOINED_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/tool.h"

struct joined {
    uint64_t second;   // its pc
    bool is_behind;    // it is met if the first is not taken; otherwise, if it is taken
    bool common_taken; // it is taken to the common place
};

// While code is translated: whether the branch is the first of two that are joined if the piece has
// room.
bool joined_look(const struct tool_insn *first, struct joined *);

#endif
