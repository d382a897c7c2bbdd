// What tools need to know of single instructions beyond their accesses: string instructions that
// repeat, and atomic changes of memory. General registers only.
#ifndef QUERN_TOOLS_INSTRUCTIONS_H
#define QUERN_TOOLS_INSTRUCTIONS_H

#include "base/x86.h"
#include "engine/tool.h"

// ---- opcodes -----------------------------------------------------------------------------------

// The prefixes of an instruction, and where its opcode begins; the end if there is no opcode.
struct opcode_place {
    unsigned at;
    bool locked;
    uint8_t width; // of general registers, in bytes
};

static inline struct opcode_place insn_opcode(const struct tool_insn *insn) {
    struct opcode_place place = {.width = 4};
    for (; place.at < insn->size; place.at++) {
        uint8_t byte = insn->bytes[place.at];
        if (byte != 0xf0 && byte != 0x66 && (byte & 0xfe) != 0xf2)
            break;
        place.locked |= byte == 0xf0;
        if (byte == 0x66)
            place.width = 2;
    }
    if (place.at < insn->size && (insn->bytes[place.at] & 0xf0) == 0x40) {
        if (insn->bytes[place.at] & 8)
            place.width = 8;
        place.at++;
    }
    return place;
}

// ---- movs, cmps, stos, lods, scas with a rep prefix --------------------------------------------

struct repeated {
    uint8_t opcode, width;
    bool narrow; // counts with ecx
    bool while_equal;
};

// Other instructions carry the prefix for other reasons.
static inline bool insn_is_repeated(const struct tool_insn *insn) {
    uint8_t opcode = insn->bytes[insn->size - 1];
    return insn->repeats && insn->access_count && insn->size <= 4 && opcode >= 0xa4 &&
           opcode <= 0xaf && (opcode & 0xfe) != 0xa8;
}

static inline struct repeated insn_repeated(const struct tool_insn *insn) {
    struct repeated it = {insn->bytes[insn->size - 1], (uint8_t)insn->accesses[0].size, false,
                          false};
    for (unsigned i = 0; i + 1 < insn->size; i++) {
        it.narrow |= insn->bytes[i] == 0x67;
        it.while_equal |= insn->bytes[i] == 0xf3;
    }
    return it;
}

// cmps and scas, which stop early.
static inline bool repeated_compares(const struct repeated *it) {
    return (it->opcode & 0xf6) == 0xa6;
}

// How many steps it will make, before it begins; *found: the last of them ends it by what it finds.
static inline uint64_t repeated_steps(const struct repeated *it, bool *found) {
    uint64_t most = it->narrow ? (uint32_t)tool_register(RCX) : tool_register(RCX);
    *found = false;
    if (!repeated_compares(it))
        return most;
    bool scans = it->opcode & 8;
    uint64_t mask = ~0ul >> (64 - 8 * it->width), a = tool_register(RAX) & mask;
    uint64_t left = tool_register(RSI), right = tool_register(RDI);
    int64_t step = tool_direction() * (int64_t)it->width;
    for (uint64_t i = 0; i < most; i++, left += (uint64_t)step, right += (uint64_t)step) {
        uint64_t b = 0;
        if (!scans && (a = 0, tool_read(&a, left, it->width)) != 0)
            return i;
        if (tool_read(&b, right, it->width) != 0)
            return i;
        *found = (a == b) != it->while_equal;
        if (*found)
            return i + 1;
    }
    return most;
}

// ---- atomic changes ----------------------------------------------------------------------------

// An atomic change of memory is modelled as a loop that reads and then tries to change what it has
// read, until it succeeds: at once. cmpxchg does not try again.
enum atomicity { NOT_ATOMIC, ATOMIC, ATTEMPTED };

static inline enum atomicity insn_atomicity(const struct tool_insn *insn) {
    if (!insn->access_count || !insn->accesses[0].writes || !insn->accesses[0].reads)
        return NOT_ATOMIC;
    struct opcode_place place = insn_opcode(insn);
    if (place.at + 1 >= insn->size)
        return NOT_ATOMIC;
    uint8_t opcode = insn->bytes[place.at], second = insn->bytes[place.at + 1];
    if (opcode == 0x0f && ((second & 0xfe) == 0xb0 || second == 0xc7))
        return place.locked ? ATOMIC : NOT_ATOMIC;
    return place.locked || (opcode & 0xfe) == 0x86 ? ATTEMPTED : NOT_ATOMIC;
}

static inline bool insn_is_attempt(const struct tool_insn *insn) {
    return insn_atomicity(insn) == ATTEMPTED;
}

// ---- bits of registers -------------------------------------------------------------------------

// bt, bts, btr and btc of two registers; *changes: not bt.
static inline bool insn_is_bit_of_register(const struct tool_insn *insn, bool *changes) {
    struct opcode_place place = insn_opcode(insn);
    if (place.at + 3 != insn->size || insn->bytes[place.at] != 0x0f)
        return false;
    uint8_t opcode = insn->bytes[place.at + 1];
    *changes = opcode != 0xa3;
    return (opcode & 0xe7) == 0xa3 && insn->bytes[place.at + 2] >= 0xc0;
}

#endif
