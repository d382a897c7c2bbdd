// What gdb sees of registers: $raxs1 and its like (--vgdb-shadow-registers).
#include "tools/memcheck/target/debugger.h"

#include <string.h>

#include "tools/memcheck/target/shadow/registers.h"

// Flags by the conditions that they decide.
static uint64_t undefined_flags(const struct shadow_registers *registers) {
    static const uint8_t bits[] = {
        [COND_O] = 11, [COND_B] = 0, [COND_Z] = 6, [COND_S] = 7, [COND_P] = 2, [COND_A] = 4};
    static const uint8_t single[] = {COND_O, COND_B, COND_Z, COND_S, COND_P, COND_A};
    uint64_t flags = 0;
    for (unsigned i = 0; i < sizeof single; i++)
        if (registers->conditions >> single[i] & 1)
            flags |= UINT64_C(1) << bits[single[i]];
    return flags;
}

void debugger_register_shadow(const void *state, enum tool_register_kind kind, unsigned index,
                              uint64_t undefined[2], uint32_t *origin) {
    static const uint8_t units[] = {[TOOL_REGISTER_GENERAL] = SHADOW_UNIT_GENERAL,
                                    [TOOL_REGISTER_FLAGS] = SHADOW_UNIT_FLAGS,
                                    [TOOL_REGISTER_X87] = SHADOW_UNIT_X87,
                                    [TOOL_REGISTER_VECTOR] = SHADOW_UNIT_VECTOR,
                                    [TOOL_REGISTER_VECTOR_HIGH] = SHADOW_UNIT_VECTOR};
    const struct shadow_registers *registers = state;
    unsigned unit = units[kind] + (kind == TOOL_REGISTER_X87 ? 0 : index);
    if (!registers->undefined[unit])
        return;
    *origin = registers->origin[unit];
    switch (kind) {
    case TOOL_REGISTER_GENERAL:
        undefined[0] = registers->general[index];
        break;
    case TOOL_REGISTER_FLAGS:
        undefined[0] = undefined_flags(registers);
        break;
    case TOOL_REGISTER_X87:
        memcpy(undefined, registers->x87[index], sizeof registers->x87[index]);
        break;
    case TOOL_REGISTER_VECTOR:
        memcpy(undefined, registers->vector[index], 16);
        break;
    case TOOL_REGISTER_VECTOR_HIGH:
        memcpy(undefined, &registers->vector[index][2], 16);
        break;
    }
}
