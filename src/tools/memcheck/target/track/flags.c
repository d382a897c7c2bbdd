// Which flags an operation leaves undefined.
//
// Comparisons are kept by what they decide, not by flag: whether a < b may be certain although the
// sign of a - b is not. For additions and subtractions the set of possible inputs has a smallest
// and a largest member, unsigned and signed, and both are possible; what holds for both ends holds
// between them wherever the condition grows with the result.
#include "tools/memcheck/target/track/parts.h"

typedef __int128 range_end;

struct range {
    range_end low, high;
};

static struct range unsigned_range(struct item a) {
    return (struct range){(a.value & ~a.bits), (a.value | a.bits)};
}

static struct range signed_range(unsigned width, struct item a) {
    uint64_t sign = 1ul << (width - 1);
    unsigned shift = 64 - width;
    uint64_t low = (a.value & ~a.bits) | (a.bits & sign);
    uint64_t high = (a.value | a.bits) & ~(a.bits & sign);
    return (struct range){(int64_t)(low << shift) >> shift, (int64_t)(high << shift) >> shift};
}

static struct range range_add(struct range a, struct range b) {
    return (struct range){a.low + b.low, a.high + b.high};
}

static struct range range_subtract(struct range a, struct range b) {
    return (struct range){a.low - b.high, a.high - b.low};
}

static uint16_t condition_if(bool undefined, unsigned condition) {
    return undefined ? 1 << condition : 0;
}

// Is it uncertain whether the number is below the limit?
static bool unsure_below(struct range r, range_end limit) {
    return r.low < limit && r.high >= limit;
}

static bool unsure_overflow(struct range r, unsigned width) {
    range_end limit = (range_end)1 << (width - 1);
    if (r.low >= -limit && r.high < limit)
        return false;
    return !(r.high < -limit || r.low >= limit);
}

uint64_t add_bits(struct item a, struct item b, struct item carry) {
    uint64_t low = (a.value & ~a.bits) + (b.value & ~b.bits) + (carry.value & ~carry.bits);
    uint64_t high = (a.value | a.bits) + (b.value | b.bits) + (carry.value | carry.bits);
    return (low ^ high) | a.bits | b.bits;
}

uint64_t subtract_bits(struct item a, struct item b, struct item carry) {
    uint64_t low = (a.value & ~a.bits) - (b.value | b.bits) - (carry.value | carry.bits);
    uint64_t high = (a.value | a.bits) - (b.value & ~b.bits) - (carry.value & ~carry.bits);
    return (low ^ high) | a.bits | b.bits;
}

static struct item low_bits(struct item a, unsigned width) {
    return (struct item){a.value & width_mask(width), a.bits & width_mask(width)};
}

static uint16_t result_conditions(unsigned width, uint64_t bits) {
    return condition_if(bits >> (width - 1) & 1, COND_S) | condition_if(bits & 0xff, COND_P);
}

uint16_t add_conditions(unsigned width, struct item a, struct item b, struct item carry) {
    if (!(a.bits | b.bits | carry.bits))
        return 0;
    struct range extra = unsigned_range(carry);
    struct range sum = range_add(range_add(unsigned_range(a), unsigned_range(b)), extra);
    struct range signed_sum =
        range_add(range_add(signed_range(width, a), signed_range(width, b)), extra);
    struct range nibble =
        range_add(range_add(unsigned_range(low_bits(a, 4)), unsigned_range(low_bits(b, 4))), extra);
    uint64_t bits = add_bits(a, b, carry) & width_mask(width);
    uint64_t value = (a.value + b.value + carry.value) & width_mask(width);
    range_end limit = (range_end)1 << width;
    bool carry_unsure = unsure_below(sum, limit);
    bool zero_unsure = bits && !(value & ~bits);
    bool carries = sum.low >= limit;
    return result_conditions(width, bits) | condition_if(carry_unsure, COND_B) |
           condition_if(zero_unsure, COND_Z) |
           condition_if(carry_unsure || (!carries && zero_unsure), COND_BE) |
           condition_if(unsure_overflow(signed_sum, width), COND_O) |
           condition_if(unsure_below(signed_sum, 0), COND_L) |
           condition_if(unsure_below(signed_sum, 1), COND_LE) |
           condition_if(unsure_below(nibble, 16), COND_A);
}

uint16_t subtract_conditions(unsigned width, struct item a, struct item b, struct item carry) {
    if (!(a.bits | b.bits | carry.bits))
        return 0;
    struct range extra = unsigned_range(carry);
    struct range difference =
        range_subtract(range_subtract(unsigned_range(a), unsigned_range(b)), extra);
    struct range signed_difference =
        range_subtract(range_subtract(signed_range(width, a), signed_range(width, b)), extra);
    struct range nibble = range_subtract(
        range_subtract(unsigned_range(low_bits(a, 4)), unsigned_range(low_bits(b, 4))), extra);
    uint64_t bits = subtract_bits(a, b, carry) & width_mask(width);
    uint64_t value = (a.value - b.value - carry.value) & width_mask(width);
    // Without a carry, one defined bit that differs settles it.
    uint64_t settled =
        carry.value | carry.bits ? value & ~bits : (a.value ^ b.value) & ~(a.bits | b.bits);
    return result_conditions(width, bits) | condition_if(unsure_below(difference, 0), COND_B) |
           condition_if(!settled, COND_Z) | condition_if(unsure_below(difference, 1), COND_BE) |
           condition_if(unsure_overflow(signed_difference, width), COND_O) |
           condition_if(unsure_below(signed_difference, 0), COND_L) |
           condition_if(unsure_below(signed_difference, 1), COND_LE) |
           condition_if(unsure_below(nibble, 0), COND_A);
}

// Carry and overflow are cleared.
uint16_t logic_conditions(unsigned width, struct item result) {
    if (!result.bits)
        return 0;
    bool zero_unsure = !(result.value & ~result.bits);
    bool sign_unsure = result.bits >> (width - 1) & 1;
    return result_conditions(width, result.bits) | condition_if(zero_unsure, COND_Z) |
           condition_if(zero_unsure, COND_BE) | condition_if(sign_unsure, COND_L) |
           condition_if(unsure_below(signed_range(width, result), 1), COND_LE);
}

// ---- single flags ----

static const struct {
    uint16_t flag;
    uint8_t condition;
} flag_conditions[] = {{FLAG_O, COND_O}, {FLAG_C, COND_B}, {FLAG_Z, COND_Z},
                       {FLAG_S, COND_S}, {FLAG_P, COND_P}, {FLAG_A, COND_A}};

struct flags flags_now(struct context *c) {
    struct flags flags = {tool_flags() & FLAGS_ALL, 0};
    uint16_t conditions = condition_bits(c);
    for (unsigned i = 0; i < sizeof flag_conditions / sizeof *flag_conditions; i++)
        if (conditions >> flag_conditions[i].condition & 1)
            flags.bits |= flag_conditions[i].flag;
    return flags;
}

// One of two flags, with what is known about each.
static bool unsure_or(bool a, bool a_unsure, bool b, bool b_unsure) {
    if ((!a_unsure && a) || (!b_unsure && b))
        return false;
    return a_unsure || b_unsure;
}

uint16_t flags_conditions(struct flags flags) {
    uint16_t conditions = 0;
    for (unsigned i = 0; i < sizeof flag_conditions / sizeof *flag_conditions; i++)
        if (flags.bits & flag_conditions[i].flag)
            conditions |= 1 << flag_conditions[i].condition;
    bool zero = flags.value & FLAG_Z, zero_unsure = flags.bits & FLAG_Z;
    bool less = !(flags.value & FLAG_S) != !(flags.value & FLAG_O);
    bool less_unsure = flags.bits & (FLAG_S | FLAG_O);
    return conditions | condition_if(less_unsure, COND_L) |
           condition_if(unsure_or(flags.value & FLAG_C, flags.bits & FLAG_C, zero, zero_unsure),
                        COND_BE) |
           condition_if(unsure_or(less, less_unsure, zero, zero_unsure), COND_LE);
}

void flags_of_result(struct flags *flags, unsigned width, struct item result) {
    uint64_t mask = width_mask(width);
    result.value &= mask;
    result.bits &= mask;
    flags->value &= ~(FLAG_Z | FLAG_S | FLAG_P);
    flags->bits &= ~(FLAG_Z | FLAG_S | FLAG_P);
    if (!result.value)
        flags->value |= FLAG_Z;
    if (result.value >> (width - 1) & 1)
        flags->value |= FLAG_S;
    if (!__builtin_parity(result.value & 0xff))
        flags->value |= FLAG_P;
    if (result.bits && !(result.value & ~result.bits))
        flags->bits |= FLAG_Z;
    if (result.bits >> (width - 1) & 1)
        flags->bits |= FLAG_S;
    if (result.bits & 0xff)
        flags->bits |= FLAG_P;
}

bool track_condition_holds(unsigned condition, bool is_negated) {
    uint64_t flags = tool_flags();
    bool less = !(flags & FLAG_S) != !(flags & FLAG_O);
    bool holds = false;
    switch (condition) {
    case COND_O:
        holds = flags & FLAG_O;
        break;
    case COND_B:
        holds = flags & FLAG_C;
        break;
    case COND_Z:
        holds = flags & FLAG_Z;
        break;
    case COND_BE:
        holds = flags & (FLAG_C | FLAG_Z);
        break;
    case COND_S:
        holds = flags & FLAG_S;
        break;
    case COND_P:
        holds = flags & FLAG_P;
        break;
    case COND_L:
        holds = less;
        break;
    case COND_LE:
        holds = less || (flags & FLAG_Z);
        break;
    }
    return holds != is_negated;
}
