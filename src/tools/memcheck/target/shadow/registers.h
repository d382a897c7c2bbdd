// What memcheck knows about a thread's registers: the shadow of registers.
//
// `undefined` has a byte for each register: 0 means that all its bits are defined, and that its
// bits below are not kept. Generated code reads and clears these bytes; only track/track.c sets
// them. While all of them are 0, the thread runs code that does not look at registers at all. Each
// thread touches its own only.
#ifndef QUERN_MEMCHECK_REGISTERS_H
#define QUERN_MEMCHECK_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>

// Conditions, as the middle three bits of jcc, setcc and cmovcc name them: flags are known by what
// they decide. The last one stands for the auxiliary carry.
enum { COND_O, COND_B, COND_Z, COND_BE, COND_S, COND_P, COND_L, COND_LE, COND_A };

// Units: the registers that are told apart. A set of them has a bit for each.
enum shadow_unit {
    SHADOW_UNIT_GENERAL = 0, // … 15
    SHADOW_UNIT_FLAGS = 16,
    SHADOW_UNIT_X87 = 17,    // all of x87 and mmx
    SHADOW_UNIT_MASK = 24,   // k0 … k7
    SHADOW_UNIT_VECTOR = 32, // … 63
    SHADOW_UNITS = 64,
};

struct shadow_registers {
    uint8_t undefined[SHADOW_UNITS]; // by enum shadow_unit
    uint64_t general[16];            // undefined bits, in encoding order
    uint16_t conditions;             // undefined conditions, bits by COND_*
    uint64_t mask[8];                // k0 … k7
    uint64_t vector[32][8];          // zmm0 … zmm31
    uint64_t x87[8][2];              // by physical register, 80 bits each; mmx is the low half
    uint16_t x87_status;             // of its condition codes, by place; part of SHADOW_UNIT_X87
    bool any_hidden;                 // a hidden unit (insert/insert.h) may be undefined
    uint32_t origin[SHADOW_UNITS];   // where undefined bits come from (findings.h), 0: not known
};

#endif
