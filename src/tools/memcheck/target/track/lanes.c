// Vector logic and arithmetic, lane by lane.
#include "tools/memcheck/target/track/vector.h"

// The two sources of an instruction: of those that name two operands, the destination is the first.
static unsigned first_source(const struct track *t) {
    return t->is_legacy ? 0 : 1;
}

struct pair {
    wide a, b, a_value, b_value;
    bool any;
};

static void take_pair(struct context *c, const struct track *t, struct pair *pair) {
    unsigned first = first_source(t);
    vector_source_bits(c, t, first, pair->a);
    vector_source_bits(c, t, first + 1, pair->b);
    pair->any = wide_any(pair->a) || wide_any(pair->b);
    if (pair->any) {
        vector_source_value(c, t, first, pair->a_value);
        vector_source_value(c, t, first + 1, pair->b_value);
    }
}

static struct item lane_item(const wide value, const wide bits, unsigned width, unsigned index) {
    return (struct item){lane_get(value, width, index), lane_get(bits, width, index)};
}

static unsigned lane_count(const struct track *t) {
    return t->vector_size * 8 / t->in_lane;
}

// ---- logic ----

void vector_run_logic(struct context *c, const struct track *t) {
    struct pair p;
    wide result;
    take_pair(c, t, &p);
    bool idiom = t->is_same && (t->class == CLASS_XOR || t->class == CLASS_AND_NOT);
    wide_clear(result);
    for (unsigned i = 0; p.any && !idiom && i < WIDE_WORDS; i++) {
        uint64_t both = p.a[i] | p.b[i], x = p.a_value[i], y = p.b_value[i];
        switch (t->class) {
        case CLASS_XOR:
            result[i] = both;
            break;
        case CLASS_OR:
            result[i] = both & ~(x & ~p.a[i]) & ~(y & ~p.b[i]);
            break;
        default:
            if (t->class == CLASS_AND_NOT)
                x = ~x;
            result[i] = both & (x | p.a[i]) & (y | p.b[i]);
        }
    }
    vector_set_result(c, t, result);
}

// Each bit of the result is looked up by three bits: it is defined if all entries that are possible
// agree.
static uint64_t ternary_bits(uint8_t table, const uint64_t value[3], const uint64_t bits[3]) {
    uint64_t ones = 0, zeros = 0;
    for (unsigned entry = 0; entry < 8; entry++) {
        uint64_t possible = ~0ul;
        for (unsigned i = 0; i < 3; i++) {
            uint64_t wanted = entry >> (2 - i) & 1 ? value[i] : ~value[i];
            possible &= wanted | bits[i];
        }
        if (table >> entry & 1)
            ones |= possible;
        else
            zeros |= possible;
    }
    return ones & zeros;
}

void vector_run_ternary(struct context *c, const struct track *t) {
    wide bits[3], value[3], result;
    uint8_t table = t->operands[3].immediate;
    bool any = false;
    for (unsigned i = 0; i < 3; i++) {
        vector_source_bits(c, t, i, bits[i]);
        any |= wide_any(bits[i]);
    }
    wide_clear(result);
    if (any) {
        for (unsigned i = 0; i < 3; i++)
            vector_source_value(c, t, i, value[i]);
        for (unsigned i = 0; i < WIDE_WORDS; i++) {
            uint64_t v[3] = {value[0][i], value[1][i], value[2][i]};
            uint64_t b[3] = {bits[0][i], bits[1][i], bits[2][i]};
            result[i] = ternary_bits(table, v, b);
        }
    }
    vector_set_result(c, t, result);
}

// ---- integers ----

void vector_run_add(struct context *c, const struct track *t) {
    struct pair p;
    wide result;
    take_pair(c, t, &p);
    wide_clear(result);
    bool idiom = t->is_same && t->class == CLASS_SUBTRACT;
    for (unsigned i = 0; p.any && !idiom && i < lane_count(t); i++) {
        struct item a = lane_item(p.a_value, p.a, t->in_lane, i);
        struct item b = lane_item(p.b_value, p.b, t->in_lane, i);
        lane_set(result, t->in_lane, i,
                 t->class == CLASS_ADD ? add_bits(a, b, NOTHING) : subtract_bits(a, b, NOTHING));
    }
    vector_set_result(c, t, result);
}

// Predicates of vpcmp: equal, less, less or equal, never; the upper half negates.
static bool compare_unsure(const struct track *t, struct item a, struct item b) {
    if (!(a.bits | b.bits))
        return false;
    uint16_t conditions;
    if (t->class == CLASS_GREATER) {
        conditions = subtract_conditions(t->in_lane, b, a, NOTHING);
        return conditions >> COND_L & 1;
    }
    conditions = subtract_conditions(t->in_lane, a, b, NOTHING);
    if (t->class == CLASS_EQUAL)
        return conditions >> COND_Z & 1;
    switch (t->operands[3].immediate & 3) {
    case 0:
        return conditions >> COND_Z & 1;
    case 1:
        return conditions >> (t->variant ? COND_B : COND_L) & 1;
    case 2:
        return conditions >> (t->variant ? COND_BE : COND_LE) & 1;
    default:
        return false;
    }
}

void vector_run_compare(struct context *c, const struct track *t) {
    struct pair p;
    wide result;
    uint64_t mask = 0;
    take_pair(c, t, &p);
    wide_clear(result);
    for (unsigned i = 0; p.any && !t->is_same && i < lane_count(t); i++) {
        struct item a = lane_item(p.a_value, p.a, t->in_lane, i);
        struct item b = lane_item(p.b_value, p.b, t->in_lane, i);
        if (!compare_unsure(t, a, b))
            continue;
        lane_set(result, t->in_lane, i, ~0ul);
        mask |= 1ul << i;
    }
    if (t->operands[0].kind == OPERAND_MASK)
        vector_set_mask_result(c, t, mask);
    else
        vector_set_result(c, t, result);
}

// Both are monotone: the outcome lies between those of the smallest and of the largest inputs, and
// what is above the highest bit in which these differ is known. One input that is always the
// smaller is the minimum, with all that is known of it.
static uint64_t extreme_bits(struct item a, struct item b, bool is_maximum, uint64_t flip) {
    uint64_t a_low = (a.value ^ flip) & ~a.bits, a_high = (a.value ^ flip) | a.bits;
    uint64_t b_low = (b.value ^ flip) & ~b.bits, b_high = (b.value ^ flip) | b.bits;
    if (a_high <= b_low)
        return is_maximum ? b.bits : a.bits;
    if (b_high <= a_low)
        return is_maximum ? a.bits : b.bits;
    bool low_is_a = (a_low < b_low) != is_maximum, high_is_a = (a_high < b_high) != is_maximum;
    uint64_t differ = (low_is_a ? a_low : b_low) ^ (high_is_a ? a_high : b_high);
    return differ ? width_mask(64 - (unsigned)__builtin_clzl(differ)) : 0;
}

void vector_run_extreme(struct context *c, const struct track *t) {
    struct pair p;
    wide result;
    bool is_signed = t->class == CLASS_MINIMUM_SIGNED || t->class == CLASS_MAXIMUM_SIGNED;
    bool is_maximum = t->class == CLASS_MAXIMUM_SIGNED || t->class == CLASS_MAXIMUM_UNSIGNED;
    uint64_t flip =
        is_signed ? 1ul << (t->in_lane - 1) : 0; // makes the order that of unsigned numbers
    take_pair(c, t, &p);
    wide_clear(result);
    for (unsigned i = 0; p.any && i < lane_count(t); i++) {
        struct item a = lane_item(p.a_value, p.a, t->in_lane, i);
        struct item b = lane_item(p.b_value, p.b, t->in_lane, i);
        lane_set(result, t->in_lane, i, extreme_bits(a, b, is_maximum, flip));
    }
    vector_set_result(c, t, result);
}

// ---- lanes as a whole ----

// Every lane of `bits` with an undefined bit becomes undefined.
static void smear_lanes(wide bits, unsigned width) {
    if (width > 64) {
        for (unsigned i = 0; i < WIDE_WORDS; i += 2)
            bits[i] = bits[i + 1] = bits[i] | bits[i + 1] ? ~0ul : 0;
        return;
    }
    for (unsigned i = 0; i < 512 / width; i++)
        if (lane_get(bits, width, i))
            lane_set(bits, width, i, ~0ul);
}

// All sources laid over each other.
static void gather_sources(struct context *c, const struct track *t, wide all) {
    wide_clear(all);
    for (unsigned i = 0; i < t->operand_count; i++) {
        if (!vector_is_source(t, i))
            continue;
        wide bits;
        vector_source_bits(c, t, i, bits);
        for (unsigned j = 0; j < WIDE_WORDS; j++)
            all[j] |= bits[j];
    }
}

static uint64_t lane_mask_of(const wide bits, unsigned width, unsigned count) {
    uint64_t mask = 0;
    for (unsigned i = 0; i < count; i++)
        if (lane_get(bits, width, i))
            mask |= 1ul << i;
    return mask;
}

void vector_run_lanes(struct context *c, const struct track *t) {
    wide all;
    gather_sources(c, t, all);
    if (t->class == CLASS_LOW_HALF)
        for (unsigned i = 0; i < WIDE_WORDS; i++)
            all[i] = (uint32_t)all[i];
    if (t->operands[0].kind == OPERAND_MASK) {
        vector_set_mask_result(c, t, lane_mask_of(all, t->in_lane, lane_count(t)));
        return;
    }
    smear_lanes(all, t->in_lane);
    vector_set_result(c, t, all);
}

void vector_run_classify(struct context *c, const struct track *t) {
    wide all;
    gather_sources(c, t, all);
    unsigned count = t->variant ? 1 : lane_count(t);
    vector_set_mask_result(c, t, lane_mask_of(all, t->in_lane, count));
}

void vector_run_whole(struct context *c, const struct track *t) {
    wide all;
    gather_sources(c, t, all);
    bool any = wide_any(all);
    for (unsigned i = 0; i < WIDE_WORDS; i++)
        all[i] = any ? ~0ul : 0;
    vector_set_result(c, t, all);
}

// ---- the lowest lane ----

// The rest comes from the destination (legacy) or the first source.
void vector_run_scalar(struct context *c, const struct track *t) {
    wide result, bits;
    uint64_t any = 0, mask = width_mask(t->in_lane);
    for (unsigned i = 0; i < t->operand_count; i++) {
        if (!vector_is_source(t, i) || (t->is_unary && !t->is_legacy && i == 1))
            continue;
        vector_source_bits(c, t, i, bits);
        any |= bits[0] & mask;
    }
    if (t->operands[0].kind == OPERAND_MASK) {
        vector_set_mask_result(c, t, any != 0);
        return;
    }
    wide_bits(c, t, t->keeps_upper ? 0 : first_source(t), result);
    result[0] = (result[0] & ~mask) | (any ? mask : 0);
    vector_set_result(c, t, result);
}

// ---- other lanes ----

void vector_run_convert(struct context *c, const struct track *t) {
    wide bits, result;
    vector_source_bits(c, t, 1, bits);
    wide_clear(result);
    if (t->mnemonic == ZYDIS_MNEMONIC_CVTPI2PS)
        wide_bits(c, t, 0, result); // keeps the upper half
    unsigned wider = t->in_lane > t->out_lane ? t->in_lane : t->out_lane;
    unsigned size = t->vector_size > t->operands[1].size ? t->vector_size : t->operands[1].size;
    if (t->mnemonic == ZYDIS_MNEMONIC_CVTPI2PS)
        size = 8;
    for (unsigned i = 0; i < size * 8 / wider; i++)
        lane_set(result, t->out_lane, i, lane_get(bits, t->in_lane, i) ? ~0ul : 0);
    vector_set_result(c, t, result);
}

void vector_run_convert_scalar(struct context *c, const struct track *t) {
    unsigned last = t->operand_count - 1, to = t->out_lane;
    while (last && !vector_is_source(t, last))
        last--;
    wide bits, result;
    vector_source_bits(c, t, last, bits);
    unsigned from = t->in_lane ? t->in_lane : t->operands[last].size * 8u;
    bool any = bits[0] & width_mask(from);
    if (t->operands[0].kind == OPERAND_GENERAL) {
        operand_set_bits(c, t, 0, any ? ~0ul : 0);
        return;
    }
    wide_bits(c, t, first_source(t), result);
    result[0] = (result[0] & ~width_mask(to)) | (any ? width_mask(to) : 0);
    vector_set_result(c, t, result);
}

// In each 128 bits: pairs of the first source, then pairs of the second.
void vector_run_horizontal(struct context *c, const struct track *t) {
    wide a, b, result;
    unsigned first = first_source(t), lane = t->in_lane;
    unsigned piece = t->vector_size < 16 ? 64 : 128, pairs = piece / lane / 2;
    vector_source_bits(c, t, first, a);
    vector_source_bits(c, t, first + 1, b);
    wide_clear(result);
    for (unsigned base = 0; base < t->vector_size * 8u / lane; base += 2 * pairs)
        for (unsigned i = 0; i < pairs; i++) {
            if (lane_get(a, lane, base + 2 * i) | lane_get(a, lane, base + 2 * i + 1))
                lane_set(result, lane, base + i, ~0ul);
            if (lane_get(b, lane, base + 2 * i) | lane_get(b, lane, base + 2 * i + 1))
                lane_set(result, lane, base + pairs + i, ~0ul);
        }
    vector_set_result(c, t, result);
}

// In each 128 bits: the lanes of the first source, then those of the second, halved.
void vector_run_pack(struct context *c, const struct track *t) {
    wide a, b, result;
    unsigned first = first_source(t), in = t->in_lane, out = t->out_lane;
    unsigned piece = t->vector_size < 16 ? 64 : 128, count = piece / in;
    vector_source_bits(c, t, first, a);
    vector_source_bits(c, t, first + 1, b);
    wide_clear(result);
    for (unsigned base = 0; base < t->vector_size * 8u / in; base += count)
        for (unsigned i = 0; i < count; i++) {
            if (lane_get(a, in, base + i))
                lane_set(result, out, 2 * base + i, ~0ul);
            if (lane_get(b, in, base + i))
                lane_set(result, out, 2 * base + count + i, ~0ul);
        }
    vector_set_result(c, t, result);
}
