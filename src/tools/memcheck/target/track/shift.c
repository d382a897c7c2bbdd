// Shifts and rotations.
//
// By a defined count, bits move with the value. By an undefined one, everything is undefined unless
// all bits that could arrive are the same defined ones.
#include "tools/memcheck/target/track/parts.h"

enum shift_kind { SHL, SHR, SAR, ROL, ROR, RCL, RCR };

static uint64_t shifted(unsigned kind, uint64_t a, unsigned count, unsigned width) {
    uint64_t mask = width_mask(width);
    a &= mask;
    switch (kind) {
    case SHL:
        return count >= width ? 0 : a << count & mask;
    case SHR:
        return count >= width ? 0 : a >> count;
    case SAR: {
        int64_t wide = (int64_t)(a << (64 - width)) >> (64 - width);
        return (uint64_t)(wide >> (count > 63 ? 63 : count)) & mask;
    }
    case ROL:
        count %= width;
        return count ? (a << count | a >> (width - count)) & mask : a;
    default:
        count %= width;
        return count ? (a >> count | a << (width - count)) & mask : a;
    }
}

// The bit that leaves last.
static bool shifted_out(unsigned kind, uint64_t a, unsigned count, unsigned width) {
    switch (kind) {
    case SHL:
        return count <= width ? a >> (width - count) & 1 : 0;
    case SHR:
        return count <= width ? a >> (count - 1) & 1 : 0;
    default:
        return a >> ((count > width ? width : count) - 1) & 1;
    }
}

static struct flags flag_if(struct flags flags, uint32_t flag, bool value, bool bits) {
    flags.value = (flags.value & ~flag) | (value ? flag : 0);
    flags.bits = (flags.bits & ~flag) | (bits ? flag : 0);
    return flags;
}

// Shift of `a` by a known count that is not 0; sets all flags.
static void shift_flags(struct context *c, unsigned kind, struct item a, unsigned count,
                        unsigned width) {
    struct flags flags = {0, 0};
    struct item result = {shifted(kind, a.value, count, width),
                          shifted(kind, a.bits, count, width)};
    unsigned top = width - 1;
    flags_of_result(&flags, width, result);
    bool carry = shifted_out(kind, a.value, count, width);
    bool carry_bits = shifted_out(kind, a.bits, count, width);
    flags = flag_if(flags, FLAG_C, carry, carry_bits);
    // The overflow flag is specified for a count of 1 only.
    bool over = false, over_bits = a.bits != 0;
    if (count == 1) {
        over = kind == SHL   ? (result.value >> top & 1) != carry
               : kind == SHR ? a.value >> top & 1
                             : false;
        over_bits = kind == SHL   ? (result.bits >> top & 1) | carry_bits
                    : kind == SHR ? a.bits >> top & 1
                                  : false;
    }
    flags = flag_if(flags, FLAG_O, over, over_bits);
    flags = flag_if(flags, FLAG_A, false, a.bits != 0);
    set_conditions(c, flags_conditions(flags));
}

static struct item count_item(struct context *c, const struct track *t, unsigned operand) {
    uint64_t mask = t->width == 64 ? 63 : 31;
    struct item count = {operand_value(c, t, operand) & mask, operand_bits(c, t, operand) & mask};
    return count;
}

// All counts that are possible: what differs between their results is undefined.
static uint64_t shifted_by_any(unsigned kind, struct item a, struct item count, unsigned width) {
    uint64_t bits = 0, all = ~0ul, any = 0;
    unsigned sure = count.value & ~count.bits;
    for (unsigned some = count.bits;; some = (some - 1) & count.bits) {
        uint64_t value = shifted(kind, a.value, sure | some, width);
        bits |= shifted(kind, a.bits, sure | some, width);
        all &= value;
        any |= value;
        if (!some)
            return bits | (any & ~all);
    }
}

static void run_shift(struct context *c, const struct track *t) {
    struct item count = count_item(c, t, 1);
    uint64_t bits = operand_bits(c, t, 0);
    if (count.bits) {
        struct item a = {operand_value(c, t, 0), bits};
        operand_set_bits(c, t, 0, shifted_by_any(t->variant, a, count, t->width));
        set_conditions(c, CONDITIONS_ALL);
        return;
    }
    unsigned n = count.value;
    operand_set_bits(c, t, 0, shifted(t->variant, bits, n, t->width));
    if (!n)
        return;
    if (!bits)
        set_conditions(c, 0);
    else
        shift_flags(c, t->variant, (struct item){operand_value(c, t, 0), bits}, n, t->width);
}

// Carry and overflow of a rotation; the other flags stay.
static void rotate_flags(struct context *c, struct item carry, bool over_bits) {
    uint16_t old = condition_bits(c);
    struct flags flags = flags_now(c);
    flags = flag_if(flags, FLAG_C, carry.value, carry.bits);
    flags = flag_if(flags, FLAG_O, false, over_bits);
    uint16_t below = 1 << COND_B | 1 << COND_BE;
    uint16_t less = 1 << COND_O | 1 << COND_L | 1 << COND_LE;
    uint16_t conditions = (old & ~(below | less)) | (flags_conditions(flags) & below);
    // The value of the overflow flag is not known here: less is unsure if anything is.
    if (over_bits || flags.bits & FLAG_S)
        conditions |= 1 << COND_L | 1 << COND_LE;
    if (over_bits)
        conditions |= 1 << COND_O;
    if (flags.bits & FLAG_Z)
        conditions |= 1 << COND_LE;
    set_conditions(c, conditions);
}

static void run_rotate(struct context *c, const struct track *t) {
    struct item count = count_item(c, t, 1);
    struct item a = {operand_value(c, t, 0), operand_bits(c, t, 0)};
    if (count.bits) {
        operand_set_bits(c, t, 0, shifted_by_any(t->variant, a, count, t->width));
        rotate_flags(c, (struct item){0, 1}, true);
        return;
    }
    unsigned n = count.value, out = t->variant == ROL ? 0 : t->width - 1;
    uint64_t bits = shifted(t->variant, a.bits, n, t->width);
    uint64_t value = shifted(t->variant, a.value, n, t->width);
    operand_set_bits(c, t, 0, bits);
    if (n)
        rotate_flags(c, (struct item){value >> out & 1, bits >> out & 1}, a.bits != 0);
}

// Rotation through the carry, which is one more bit above the value.
static unsigned __int128 turned(unsigned kind, unsigned __int128 a, unsigned n, unsigned width) {
    unsigned __int128 mask = ((unsigned __int128)1 << (width + 1)) - 1;
    if (!n)
        return a;
    unsigned back = width + 1 - n;
    return kind == RCL ? (a << n | a >> back) & mask : (a >> n | a << back) & mask;
}

static void run_rotate_carry(struct context *c, const struct track *t) {
    struct item count = count_item(c, t, 1);
    struct item a = {operand_value(c, t, 0), operand_bits(c, t, 0)};
    struct flags flags = flags_now(c);
    if (count.bits) {
        operand_set_bits(c, t, 0, ~0ul);
        rotate_flags(c, (struct item){0, 1}, true);
        return;
    }
    unsigned n = count.value % (t->width + 1);
    unsigned __int128 value = (unsigned __int128)(flags.value & FLAG_C) << t->width | a.value;
    unsigned __int128 bits = (unsigned __int128)(flags.bits & FLAG_C) << t->width | a.bits;
    bool any = bits != 0;
    value = turned(t->variant, value, n, t->width);
    bits = turned(t->variant, bits, n, t->width);
    operand_set_bits(c, t, 0, (uint64_t)bits & width_mask(t->width));
    if (count.value)
        rotate_flags(c, (struct item){value >> t->width & 1, bits >> t->width & 1}, any);
}

// shld, shrd: bits of the second operand follow those of the first.
static uint64_t shifted_double(bool left, uint64_t a, uint64_t b, unsigned n, unsigned width) {
    uint64_t mask = width_mask(width);
    return (left ? a << n | b >> (width - n) : a >> n | b << (width - n)) & mask;
}

static void run_shift_double(struct context *c, const struct track *t) {
    bool left = t->mnemonic == ZYDIS_MNEMONIC_SHLD;
    struct item count = count_item(c, t, 2);
    struct item a = {operand_value(c, t, 0), operand_bits(c, t, 0)};
    struct item b = {operand_value(c, t, 1), operand_bits(c, t, 1)};
    unsigned n = count.value, width = t->width;
    uint64_t any = a.bits | b.bits;
    if (count.bits || (n > width && any)) {
        operand_set_bits(c, t, 0, ~0ul);
        set_conditions(c, CONDITIONS_ALL);
        return;
    }
    if (!n || n > width) {
        operand_set_bits(c, t, 0, n ? 0 : a.bits);
        if (n)
            set_conditions(c, 0);
        return;
    }
    struct item result = {a.value, a.bits};
    if (n < width) {
        result.value = shifted_double(left, a.value, b.value, n, width);
        result.bits = shifted_double(left, a.bits, b.bits, n, width);
    } else {
        result = b;
    }
    struct flags flags = {0, 0};
    unsigned out = left ? width - n : n - 1;
    flags_of_result(&flags, width, result);
    flags = flag_if(flags, FLAG_C, a.value >> out & 1, a.bits >> out & 1);
    flags = flag_if(flags, FLAG_O, false, any != 0);
    flags = flag_if(flags, FLAG_A, false, any != 0);
    operand_set_bits(c, t, 0, result.bits);
    uint16_t conditions = flags_conditions(flags);
    set_conditions(c, any ? conditions : 0);
}

// shlx, shrx, sarx, rorx: no flags.
static void run_shift_plain(struct context *c, const struct track *t) {
    struct item count = count_item(c, t, 2);
    uint64_t bits = operand_bits(c, t, 1);
    if (count.bits)
        bits = shifted_by_any(t->variant, (struct item){operand_value(c, t, 1), bits}, count,
                              t->width);
    else
        bits = shifted(t->variant, bits, count.value, t->width);
    operand_set_bits(c, t, 0, bits);
}

track_function *track_shift(struct track *t, const ZydisDecodedInstruction *z) {
    switch (z->mnemonic) {
    case ZYDIS_MNEMONIC_SHL:
        return set_variant(t, SHL, run_shift);
    case ZYDIS_MNEMONIC_SHR:
        return set_variant(t, SHR, run_shift);
    case ZYDIS_MNEMONIC_SAR:
        return set_variant(t, SAR, run_shift);
    case ZYDIS_MNEMONIC_ROL:
        return set_variant(t, ROL, run_rotate);
    case ZYDIS_MNEMONIC_ROR:
        return set_variant(t, ROR, run_rotate);
    case ZYDIS_MNEMONIC_RCL:
        return set_variant(t, RCL, run_rotate_carry);
    case ZYDIS_MNEMONIC_RCR:
        return set_variant(t, RCR, run_rotate_carry);
    case ZYDIS_MNEMONIC_SHLD:
    case ZYDIS_MNEMONIC_SHRD:
        return run_shift_double;
    case ZYDIS_MNEMONIC_SHLX:
        return set_variant(t, SHL, run_shift_plain);
    case ZYDIS_MNEMONIC_SHRX:
        return set_variant(t, SHR, run_shift_plain);
    case ZYDIS_MNEMONIC_SARX:
        return set_variant(t, SAR, run_shift_plain);
    case ZYDIS_MNEMONIC_RORX:
        return set_variant(t, ROR, run_shift_plain);
    default:
        return NULL;
    }
}
