// What a replaced function was called with, as the System V ABI hands it over. General registers
// only.
#ifndef QUERN_TOOLS_ARGUMENTS_H
#define QUERN_TOOLS_ARGUMENTS_H

#include <stdint.h>

#include "engine/tool.h"

enum { RESULT = 0 /* rax */, ARGUMENTS = 6 };

// The register of the i-th argument of integer or pointer type, from 0.
static inline unsigned argument_register(unsigned i) {
    static const uint8_t numbers[ARGUMENTS] = {7, 6, 2, 1, 8, 9}; // rdi rsi rdx rcx r8 r9
    return numbers[i];
}

static inline uint64_t argument(unsigned i) {
    return tool_registers()[argument_register(i)];
}

#endif
