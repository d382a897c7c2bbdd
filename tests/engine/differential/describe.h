// Tells from a decoded instruction how it can be run: its group (the name of the test it belongs
// to), the addresses it uses, what its registers and memory must hold, and what of its outcome
// cannot be compared. Everything that is left out or ignored, with its reason, is in describe.c.
#ifndef DIFFERENTIAL_DESCRIBE_H
#define DIFFERENTIAL_DESCRIBE_H

#include "form.h"

#include <Zydis/Zydis.h>
#include <stdbool.h>

enum group {
    GROUP_GENERAL,
    GROUP_STACK,
    GROUP_STRING,
    GROUP_CONTROL,
    GROUP_BRANCH16,
    GROUP_WILD,
    GROUP_FETCH,
    GROUP_FAR,
    GROUP_SEGMENT,
    GROUP_SYSTEM,
    GROUP_XSAVE,
    GROUP_TRAP,
    GROUP_ALIGNMENT,
    GROUP_X87,
    GROUP_X87_POINTERS,
    GROUP_MMX,
    GROUP_SSE,
    GROUP_VEX,
    GROUP_EVEX,
    GROUP_MASK,
    GROUP_XOP,
    GROUP_UNDECODABLE,
    GROUP_SEQUENCE,
    GROUP_COUNT
};

extern const char *const describe_group_names[GROUP_COUNT];

struct description {
    struct form form;
    enum group group;
    const char *skipped; // the reason, or null
    const char *ignored; // why part of the outcome is not compared, or null
    bool relative;       // a branch with a relative destination
    bool indirect;       // a branch through a register or memory
    bool composable;     // needs no register to be set up: may stand in a sequence
};

struct description describe(const ZydisDecodedInstruction *instruction,
                            const ZydisDecodedOperand *operands);

#endif
