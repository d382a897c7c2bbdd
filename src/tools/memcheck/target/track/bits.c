// Single bits: tests, searches, counts, extractions.
#include "tools/memcheck/target/track/parts.h"

static struct item operand_item(struct context *c, const struct track *t, unsigned operand) {
    return (struct item){operand_value(c, t, operand), operand_bits(c, t, operand)};
}

static void set_carry(struct context *c, struct item carry) {
    uint16_t both = 1 << COND_B | 1 << COND_BE, old = condition_bits(c);
    struct flags flags = flags_now(c);
    flags.value = (flags.value & ~FLAG_C) | (carry.value ? FLAG_C : 0);
    flags.bits = (flags.bits & ~FLAG_C) | (carry.bits ? FLAG_C : 0);
    set_conditions(c, (old & ~both) | (flags_conditions(flags) & both));
}

// ---- bt, bts, btr, btc ----

// With a register as offset, memory is a string of bits that reaches far in both directions; then
// one byte of it is looked at.
static uint64_t bit_address(struct context *c, const struct track *t, struct item offset) {
    uint64_t address = operand_address(c, t, 0);
    if (offset.bits & ~7ul)
        report_value(c, 8);
    unsigned shift = 64 - t->width;
    return address + ((int64_t)(offset.value << shift) >> shift >> 3);
}

// Positions that an offset may name.
static uint64_t possible_positions(struct item offset, unsigned width) {
    uint64_t positions = 0;
    unsigned unsure = offset.bits & (width - 1), sure = offset.value & ~offset.bits & (width - 1);
    for (unsigned some = unsure;; some = (some - 1) & unsure) {
        positions |= 1ul << (sure | some);
        if (!some)
            return positions;
    }
}

static uint64_t changed_bits(ZydisMnemonic mnemonic, struct item a, uint64_t positions) {
    bool is_certain = !(positions & (positions - 1));
    uint64_t ones = a.value & ~a.bits, zeros = ~a.value & ~a.bits;
    switch (mnemonic) {
    case ZYDIS_MNEMONIC_BTS:
        return is_certain ? a.bits & ~positions : a.bits | (positions & ~ones);
    case ZYDIS_MNEMONIC_BTR:
        return is_certain ? a.bits & ~positions : a.bits | (positions & ~zeros);
    case ZYDIS_MNEMONIC_BTC:
        return is_certain ? a.bits : a.bits | positions;
    default:
        return a.bits;
    }
}

static void run_bit_test(struct context *c, const struct track *t) {
    struct item offset = operand_item(c, t, 1), a;
    bool is_string =
        t->operands[0].kind == OPERAND_MEMORY && t->operands[1].kind == OPERAND_GENERAL;
    unsigned width = is_string ? 8 : t->width;
    uint64_t address = 0;
    if (is_string) {
        address = bit_address(c, t, offset);
        a.bits = memory_load_word(c, address, 1);
        a.value = memory_value(address, 1);
    } else {
        a = operand_item(c, t, 0);
    }
    uint64_t positions = possible_positions(offset, width), bits;
    uint64_t values = a.value & positions;
    bool unsure = (a.bits & positions) || (values && values != positions);
    bits = changed_bits(t->mnemonic, a, positions);
    if (t->mnemonic != ZYDIS_MNEMONIC_BT && is_string)
        memory_store_word(c, address, 1, bits & 0xff);
    else if (t->mnemonic != ZYDIS_MNEMONIC_BT)
        operand_set_bits(c, t, 0, bits);
    set_carry(c, (struct item){values != 0, unsure});
}

// ---- bsf, bsr, tzcnt, lzcnt ----

// Bits in which the numbers differ that a search may find.
struct candidates {
    uint64_t all, any;
};

static void candidate(struct candidates *found, uint64_t number) {
    found->all &= number;
    found->any |= number;
}

static void run_search(struct context *c, const struct track *t) {
    bool is_scan = t->mnemonic == ZYDIS_MNEMONIC_BSF || t->mnemonic == ZYDIS_MNEMONIC_BSR;
    bool upwards = t->mnemonic == ZYDIS_MNEMONIC_BSF || t->mnemonic == ZYDIS_MNEMONIC_TZCNT;
    struct item a = operand_item(c, t, 1);
    uint64_t sure = a.value & ~a.bits, possible = a.value | a.bits;
    struct candidates found = {~0ul, 0};
    bool ended = false;
    for (uint64_t left = possible; left && !ended;) {
        unsigned at = upwards ? __builtin_ctzl(left) : 63 - __builtin_clzl(left);
        candidate(&found, t->mnemonic == ZYDIS_MNEMONIC_LZCNT ? t->width - 1 - at : at);
        ended = sure >> at & 1;
        left &= ~(1ul << at);
    }
    uint64_t bits = found.any & ~found.all;
    if (!ended) {
        // No bit at all is possible: the count is the width; a scan leaves its destination alone.
        if (is_scan) {
            struct item old = operand_item(c, t, 0);
            candidate(&found, old.value);
            bits = (found.any & ~found.all) | old.bits;
            if (t->width == 32 && a.bits)
                bits |=
                    (c->values[t->operands[0].number] | general_bits(c, t->operands[0].number)) &
                    ~0xfffffffful;
        } else {
            candidate(&found, t->width);
            bits = found.any & ~found.all;
        }
    }
    if (is_scan && t->width == 32 && !possible)
        return set_conditions(c, 0);
    if (is_scan && t->width == 32 && t->operands[0].kind == OPERAND_GENERAL)
        set_general_bits(c, t->operands[0].number, bits);
    else
        operand_set_bits(c, t, 0, bits);
    struct flags flags = {0, 0};
    bool none_unsure = a.bits && !sure;
    if (is_scan) {
        flags.bits = a.bits ? FLAGS_ALL & ~FLAG_Z : 0;
        flags.bits |= none_unsure ? FLAG_Z : 0;
        flags.value = a.value ? 0 : FLAG_Z;
    } else {
        uint64_t first = upwards ? 1 : 1ul << (t->width - 1);
        flags.bits = a.bits ? FLAGS_ALL & ~(FLAG_Z | FLAG_C) : 0;
        flags.bits |= (none_unsure ? FLAG_C : 0) | (a.bits & first ? FLAG_Z : 0);
        flags.value = (a.value ? 0 : FLAG_C) | (a.value & first ? FLAG_Z : 0);
    }
    set_conditions(c, flags_conditions(flags));
}

// Everything from the highest set bit downwards.
static uint64_t smeared_down(uint64_t bits) {
    return bits ? ~0ul >> __builtin_clzl(bits) : 0;
}

static void run_count(struct context *c, const struct track *t) {
    struct item a = operand_item(c, t, 1);
    uint64_t low = count_ones(a.value & ~a.bits);
    uint64_t high = count_ones(a.value | a.bits);
    operand_set_bits(c, t, 0, smeared_down(low ^ high));
    bool unsure = a.bits && !(a.value & ~a.bits);
    set_conditions(c, flags_conditions((struct flags){0, unsure ? FLAG_Z : 0}));
}

// ---- blsr, blsi, blsmsk ----

static struct item and_item(struct item a, struct item b) {
    return (struct item){a.value & b.value,
                         (a.bits | b.bits) & (a.value | a.bits) & (b.value | b.bits)};
}

static void run_lowest(struct context *c, const struct track *t) {
    uint64_t mask = width_mask(t->width);
    struct item a = operand_item(c, t, 1), one = {1, 0}, other, result;
    if (t->mnemonic == ZYDIS_MNEMONIC_BLSI)
        other = (struct item){-a.value & mask, subtract_bits(NOTHING, a, NOTHING) & mask};
    else
        other = (struct item){(a.value - 1) & mask, subtract_bits(a, one, NOTHING) & mask};
    if (t->mnemonic == ZYDIS_MNEMONIC_BLSMSK)
        result = (struct item){a.value ^ other.value, a.bits | other.bits};
    else
        result = and_item(a, other);
    operand_set_bits(c, t, 0, result.bits);
    struct flags flags = {0, 0};
    flags_of_result(&flags, t->width, result);
    bool none_unsure = a.bits && !(a.value & ~a.bits);
    bool carry = !a.value != (t->mnemonic == ZYDIS_MNEMONIC_BLSI);
    flags.bits |= (none_unsure ? FLAG_C : 0) | (a.bits ? FLAG_P | FLAG_A : 0);
    flags.value |= carry ? FLAG_C : 0;
    set_conditions(c, flags_conditions(flags));
}

// ---- fields: bextr, bzhi, pdep, pext ----

static void field_conditions(struct context *c, unsigned width, struct item result, bool any,
                             bool carry, bool carry_unsure) {
    struct flags flags = {0, 0};
    flags_of_result(&flags, width, result);
    flags.value |= carry ? FLAG_C : 0;
    flags.bits |= (any ? FLAG_P | FLAG_A | FLAG_S : 0) | (carry_unsure ? FLAG_C : 0);
    set_conditions(c, flags_conditions(flags));
}

static uint64_t field(uint64_t a, unsigned start, unsigned length) {
    a = start > 63 ? 0 : a >> start;
    return a & width_mask(length);
}

static void run_extract(struct context *c, const struct track *t) {
    struct item a = operand_item(c, t, 1), control = operand_item(c, t, 2);
    struct item result = {0, ~0ul};
    unsigned start = control.value & 0xff, length = control.value >> 8 & 0xff;
    bool unsure = control.bits & 0xffff;
    if (!unsure)
        result = (struct item){field(a.value, start, length), field(a.bits, start, length)};
    operand_set_bits(c, t, 0, result.bits);
    field_conditions(c, t->width, result, unsure || a.bits, false, false);
}

static void run_zero_high(struct context *c, const struct track *t) {
    struct item a = operand_item(c, t, 1), index = operand_item(c, t, 2);
    unsigned count = index.value & 0xff;
    bool unsure = index.bits & 0xff;
    struct item result = {0, ~0ul};
    if (!unsure)
        result = (struct item){a.value & width_mask(count), a.bits & width_mask(count)};
    operand_set_bits(c, t, 0, result.bits);
    field_conditions(c, t->width, result, unsure || a.bits, count >= t->width, unsure);
}

static void run_deposit(struct context *c, const struct track *t) {
    uint64_t bits = operand_bits(c, t, 1), mask = operand_value(c, t, 2);
    if (operand_bits(c, t, 2))
        bits = ~0ul;
    else if (t->mnemonic == ZYDIS_MNEMONIC_PDEP)
        __asm__("pdep %1, %0, %0" : "+r"(bits) : "r"(mask));
    else
        __asm__("pext %1, %0, %0" : "+r"(bits) : "r"(mask));
    operand_set_bits(c, t, 0, bits);
}

track_function *track_bits(struct track *t, const ZydisDecodedInstruction *z) {
    switch (z->mnemonic) {
    case ZYDIS_MNEMONIC_BT:
    case ZYDIS_MNEMONIC_BTS:
    case ZYDIS_MNEMONIC_BTR:
    case ZYDIS_MNEMONIC_BTC:
        return run_bit_test;
    case ZYDIS_MNEMONIC_BSF:
    case ZYDIS_MNEMONIC_BSR:
    case ZYDIS_MNEMONIC_TZCNT:
    case ZYDIS_MNEMONIC_LZCNT:
        return run_search;
    case ZYDIS_MNEMONIC_POPCNT:
        return run_count;
    case ZYDIS_MNEMONIC_BLSR:
    case ZYDIS_MNEMONIC_BLSI:
    case ZYDIS_MNEMONIC_BLSMSK:
        return run_lowest;
    case ZYDIS_MNEMONIC_BEXTR:
        return run_extract;
    case ZYDIS_MNEMONIC_BZHI:
        return run_zero_high;
    case ZYDIS_MNEMONIC_PDEP:
    case ZYDIS_MNEMONIC_PEXT:
        return run_deposit;
    default:
        return NULL;
    }
}
