// Mask registers, tests that set flags, and vector instructions that touch memory element by
// element.
#include "tools/memcheck/target/track/vector.h"

// ---- flags ----

static void set_zero_and_carry(struct context *c, struct item zero, struct item carry) {
    struct flags flags = {(zero.value ? FLAG_Z : 0) | (carry.value ? FLAG_C : 0),
                          (zero.bits ? FLAG_Z : 0) | (carry.bits ? FLAG_C : 0)};
    set_conditions(c, flags_conditions(flags));
}

// Whether a & b (or ~a & b) is 0, of bits that count.
struct emptiness {
    bool settled, any, possible;
};

static void add_word(struct emptiness *e, struct item a, struct item b) {
    uint64_t bits = (a.bits | b.bits) & (a.value | a.bits) & (b.value | b.bits);
    uint64_t value = a.value & b.value;
    e->settled |= (value & ~bits) != 0;
    e->any |= value != 0;
    e->possible |= bits != 0;
}

static struct item empty_item(const struct emptiness *e) {
    return (struct item){!e->any, e->possible && !e->settled};
}

void vector_run_test(struct context *c, const struct track *t) {
    wide a, b, a_value, b_value;
    vector_source_bits(c, t, 0, a);
    vector_source_bits(c, t, 1, b);
    if (!wide_any(a) && !wide_any(b)) {
        set_conditions(c, 0);
        return;
    }
    vector_source_value(c, t, 0, a_value);
    vector_source_value(c, t, 1, b_value);
    uint64_t counts = t->class == CLASS_TEST ? ~0ul
                      : t->in_lane == 32     ? 0x8000000080000000ul
                                             : 0x8000000000000000ul;
    struct emptiness both = {0}, rest = {0};
    for (unsigned i = 0; i < t->vector_size / 8u; i++) {
        struct item x = {a_value[i] & counts, a[i] & counts};
        struct item y = {b_value[i] & counts, b[i] & counts};
        struct item not_x = {~a_value[i] & counts, x.bits};
        add_word(&both, x, y);
        add_word(&rest, not_x, y);
    }
    set_zero_and_carry(c, empty_item(&both), empty_item(&rest));
}

void vector_run_compare_flags(struct context *c, const struct track *t) {
    wide a, b;
    uint64_t mask = width_mask(t->in_lane);
    vector_source_bits(c, t, 0, a);
    vector_source_bits(c, t, 1, b);
    bool any = (a[0] | b[0]) & mask;
    // O, S and A are cleared; the others form one answer.
    struct flags flags = {0, any ? FLAG_Z | FLAG_P | FLAG_C : 0};
    set_conditions(c, flags_conditions(flags));
}

// vptestm, vptestnm.
void vector_run_test_mask(struct context *c, const struct track *t) {
    wide a, b, a_value, b_value;
    uint64_t result = 0;
    vector_source_bits(c, t, 1, a);
    vector_source_bits(c, t, 2, b);
    if (wide_any(a) || wide_any(b)) {
        vector_source_value(c, t, 1, a_value);
        vector_source_value(c, t, 2, b_value);
        for (unsigned i = 0; i < t->vector_size * 8u / t->in_lane; i++) {
            struct emptiness e = {0};
            struct item x = {lane_get(a_value, t->in_lane, i), lane_get(a, t->in_lane, i)};
            struct item y = {lane_get(b_value, t->in_lane, i), lane_get(b, t->in_lane, i)};
            add_word(&e, x, y);
            if (empty_item(&e).bits)
                result |= 1ul << i;
        }
    }
    vector_set_mask_result(c, t, result);
}

// vp2intersect: into the mask that the instruction names, and its neighbour.
void vector_run_intersect(struct context *c, const struct track *t) {
    wide a, b, a_value, b_value;
    uint64_t equal[2] = {0, 0}, possible[2] = {0, 0};
    unsigned lane = t->in_lane, count = t->vector_size * 8 / lane;
    vector_source_bits(c, t, 1, a);
    vector_source_bits(c, t, 2, b);
    // A lane is equal to itself, whatever it holds.
    if ((wide_any(a) || wide_any(b)) && !t->is_same) {
        vector_source_value(c, t, 1, a_value);
        vector_source_value(c, t, 2, b_value);
        for (unsigned at = 0; at < count * count; at++) {
            unsigned i = at / count, j = at % count;
            uint64_t bits = lane_get(a, lane, i) | lane_get(b, lane, j);
            if ((lane_get(a_value, lane, i) ^ lane_get(b_value, lane, j)) & ~bits)
                continue;
            possible[0] |= 1ul << i;
            possible[1] |= 1ul << j;
            equal[0] |= bits ? 0 : 1ul << i;
            equal[1] |= bits ? 0 : 1ul << j;
        }
    }
    for (unsigned i = 0; i < 2; i++)
        set_mask_bits(c, (t->operands[0].number & ~1u) + i, possible[i] & ~equal[i]);
}

// ---- mask registers ----

static struct item mask_item(struct context *c, const struct track *t, unsigned operand,
                             unsigned width) {
    const struct track_operand *o = &t->operands[operand];
    uint64_t mask = width_mask(width);
    return (struct item){mask_value(o->number) & mask, mask_bits(c, o->number) & mask};
}

static uint64_t mask_logic(const struct track *t, struct item a, struct item b) {
    switch (t->variant) {
    case MASK_OR:
        return (a.bits | b.bits) & ~(a.value & ~a.bits) & ~(b.value & ~b.bits);
    case MASK_XOR:
        return t->is_same ? 0 : a.bits | b.bits;
    case MASK_AND_NOT:
        if (t->is_same)
            return 0;
        a.value = ~a.value;
        // fall through
    default:
        return (a.bits | b.bits) & (a.value | a.bits) & (b.value | b.bits);
    }
}

static void run_mask_test(struct context *c, const struct track *t, struct item a, struct item b,
                          unsigned width) {
    uint64_t mask = width_mask(width);
    if (t->variant == MASK_OR) {
        struct item either = {(a.value | b.value) & mask, mask_logic(t, a, b) & mask};
        bool zero_unsure = either.bits && !(either.value & ~either.bits);
        bool ones_unsure = either.bits && (either.value | either.bits) == mask;
        set_zero_and_carry(c, (struct item){either.value == 0, zero_unsure},
                           (struct item){either.value == mask, ones_unsure});
        return;
    }
    struct emptiness both = {0}, rest = {0};
    struct item not_a = {~a.value & mask, a.bits};
    add_word(&both, a, b);
    add_word(&rest, not_a, b);
    set_zero_and_carry(c, empty_item(&both), empty_item(&rest));
}

static void run_mask_shift(struct context *c, const struct track *t, unsigned width) {
    uint64_t bits = mask_bits(c, t->operands[1].number) & width_mask(width);
    unsigned count = t->operands[2].immediate & 0xff;
    if (count >= width)
        bits = 0;
    else if (t->variant)
        bits >>= count;
    else
        bits = bits << count & width_mask(width);
    set_mask_bits(c, t->operands[0].number, bits);
}

void vector_run_mask(struct context *c, const struct track *t) {
    unsigned width = t->in_lane;
    struct item a, b;
    switch (t->class) {
    case CLASS_MASK_MOVE:
        operand_set_bits(c, t, 0, operand_bits(c, t, 1) & width_mask(width));
        return;
    case CLASS_MASK_SHIFT:
        run_mask_shift(c, t, width);
        return;
    case CLASS_MASK_TEST:
        a = mask_item(c, t, 0, width);
        b = mask_item(c, t, 1, width);
        run_mask_test(c, t, a, b, width);
        return;
    default:
        break;
    }
    a = mask_item(c, t, 1, width);
    if (t->variant == MASK_NOT && t->class == CLASS_MASK_LOGIC) {
        set_mask_bits(c, t->operands[0].number, a.bits);
        return;
    }
    b = mask_item(c, t, 2, width);
    uint64_t bits;
    if (t->class == CLASS_MASK_UNPACK)
        bits = (b.bits & width_mask(width / 2)) | (a.bits & width_mask(width / 2)) << width / 2;
    else if (t->class == CLASS_MASK_ADD)
        bits = add_bits(a, b, (struct item){0, 0}) & width_mask(width);
    else
        bits = mask_logic(t, a, b);
    set_mask_bits(c, t->operands[0].number, bits);
}

// ---- element by element ----

// Address registers and the index vector must be defined where the mask selects.
struct elements {
    wide index, index_bits;
    uint64_t base;
};

static void start_elements(struct context *c, const struct track *t, unsigned operand,
                           struct elements *e) {
    const struct track_operand *o = &t->operands[operand];
    unsigned number = o->vector_index - 1;
    e->base = operand_address(c, t, operand);
    stub_read_vector(number, e->index);
    wide_clear(e->index_bits);
    if (c->shadow->undefined[SHADOW_UNIT_VECTOR + number])
        for (unsigned i = 0; i < WIDE_WORDS; i++)
            e->index_bits[i] = c->shadow->vector[number][i];
}

static uint64_t element_address(struct context *c, const struct track *t, unsigned operand,
                                const struct elements *e, unsigned i) {
    const struct track_operand *o = &t->operands[operand];
    unsigned width = t->in_lane;
    if (lane_get(e->index_bits, width, i)) {
        c->origin = c->shadow->origin[SHADOW_UNIT_VECTOR + o->vector_index - 1];
        report_value(c, 8);
        c->origin = 0;
    }
    unsigned shift = 64 - width;
    int64_t index = (int64_t)(lane_get(e->index, width, i) << shift) >> shift;
    return e->base + index * o->access.scale;
}

static unsigned element_count(const struct track *t) {
    unsigned wider = t->in_lane > t->out_lane ? t->in_lane : t->out_lane;
    return t->vector_size * 8 / wider;
}

// AVX2 gathers take the mask from the signs of a vector, which ends up zero.
static uint64_t sign_mask(const wide value, unsigned lane, unsigned count) {
    uint64_t mask = 0;
    for (unsigned i = 0; i < count; i++)
        if (lane_get(value, lane, i) >> (lane - 1) & 1)
            mask |= 1ul << i;
    return mask;
}

void vector_run_gather(struct context *c, const struct track *t) {
    unsigned count = element_count(t), lane = t->out_lane;
    bool by_vector = !t->mask;
    uint64_t mask, unsure;
    wide result, bits, value;
    struct elements e;
    wide_bits(c, t, 0, result);
    if (by_vector) {
        wide_bits(c, t, 2, bits);
        wide_value(c, t, 2, value);
        mask = sign_mask(value, lane, count);
        unsure = sign_mask(bits, lane, count);
    } else {
        mask = mask_value(t->mask);
        unsure = mask_bits(c, t->mask);
    }
    start_elements(c, t, 1, &e);
    for (unsigned i = 0; i < count; i++) {
        if (unsure >> i & 1)
            lane_set(result, lane, i, ~0ul);
        else if (mask >> i & 1)
            lane_set(result, lane, i,
                     memory_load_word(c, element_address(c, t, 1, &e, i), lane / 8));
    }
    for (unsigned i = count; i < 512 / lane; i++)
        lane_set(result, lane, i, 0);
    wide_set_bits(c, t, 0, result);
    if (by_vector) {
        wide_clear(bits);
        wide_set_bits(c, t, 2, bits);
    } else {
        set_mask_bits(c, t->mask, 0);
    }
}

void vector_run_scatter(struct context *c, const struct track *t) {
    unsigned count = element_count(t), lane = t->out_lane;
    uint64_t mask = mask_value(t->mask), unsure = mask_bits(c, t->mask);
    wide bits;
    struct elements e;
    wide_bits(c, t, 1, bits);
    start_elements(c, t, 0, &e);
    for (unsigned i = 0; i < count; i++)
        if ((mask | unsure) >> i & 1)
            memory_store_word(c, element_address(c, t, 0, &e, i), lane / 8,
                              unsure >> i & 1 ? ~0ul : lane_get(bits, lane, i));
    set_mask_bits(c, t->mask, 0);
}

// vmaskmov, vpmaskmov: operand 1 holds the mask; the destination is memory or the first operand.
void vector_run_masked_move(struct context *c, const struct track *t) {
    unsigned lane = t->in_lane, count = t->vector_size * 8 / lane;
    bool stores = t->operands[0].kind == OPERAND_MEMORY;
    uint64_t address = operand_address(c, t, stores ? 0 : 2);
    wide bits, value, data;
    wide_bits(c, t, 1, bits);
    wide_value(c, t, 1, value);
    uint64_t mask = sign_mask(value, lane, count), unsure = sign_mask(bits, lane, count);
    wide_clear(data);
    if (stores)
        wide_bits(c, t, 2, data);
    for (unsigned i = 0; i < count; i++) {
        uint64_t at = address + i * (lane / 8);
        if (!((mask | unsure) >> i & 1))
            continue;
        if (stores)
            memory_store_word(c, at, lane / 8, unsure >> i & 1 ? ~0ul : lane_get(data, lane, i));
        else
            lane_set(data, lane, i, unsure >> i & 1 ? ~0ul : memory_load_word(c, at, lane / 8));
    }
    if (!stores)
        vector_set_result(c, t, data);
}

// maskmovdqu, maskmovq: bytes of the first operand to [rdi] by the signs of the second's.
void vector_run_masked_bytes(struct context *c, const struct track *t) {
    wide data, bits, value;
    unsigned memory = 0, count = t->vector_size;
    for (unsigned i = 0; i < t->operand_count; i++)
        if (t->operands[i].kind == OPERAND_MEMORY)
            memory = i;
    unsigned first = memory == 0 ? 1 : 0;
    uint64_t address = operand_address(c, t, memory);
    wide_bits(c, t, first, data);
    wide_bits(c, t, first + 1, bits);
    wide_value(c, t, first + 1, value);
    uint64_t mask = sign_mask(value, 8, count), unsure = sign_mask(bits, 8, count);
    for (unsigned i = 0; i < count; i++)
        if ((mask | unsure) >> i & 1)
            memory_store_word(c, address + i, 1, unsure >> i & 1 ? 0xff : lane_get(data, 8, i));
}

// vzeroupper, vzeroall.
void vector_run_zero_upper(struct context *c, const struct track *t) {
    bool all = t->mnemonic == ZYDIS_MNEMONIC_VZEROALL;
    for (unsigned i = 0; i < 16; i++) {
        if (!c->shadow->undefined[SHADOW_UNIT_VECTOR + i])
            continue;
        uint64_t *bits = c->shadow->vector[i];
        for (unsigned j = all ? 0 : 2; j < WIDE_WORDS; j++)
            bits[j] = 0;
        c->shadow->undefined[SHADOW_UNIT_VECTOR + i] = (bits[0] | bits[1]) != 0;
    }
}

// ---- strings in vectors ----

// Bytes of a source that count: up to its end, which is a zero or a length.
static uint64_t string_bits(const wide bits, const wide value, unsigned lane, bool by_zero,
                            int64_t length) {
    unsigned count = 128 / lane;
    uint64_t any = 0;
    if (length < 0)
        length = -length;
    for (unsigned i = 0; i < count; i++) {
        if (!by_zero && i >= length)
            break;
        any |= lane_get(bits, lane, i);
        if (by_zero && !lane_get(bits, lane, i) && !lane_get(value, lane, i))
            break;
    }
    return any;
}

void vector_run_string(struct context *c, const struct track *t) {
    wide bits[2], value[2];
    bool by_zero = t->variant & 1, to_vector = t->variant & 2;
    unsigned lane = t->operands[2].immediate & 1 ? 16 : 8;
    uint64_t any = 0;
    for (unsigned i = 0; i < 2; i++) {
        wide_bits(c, t, i, bits[i]);
        wide_value(c, t, i, value[i]);
        unsigned length = i == 0 ? 0 : 2; // rax, rdx
        if (!by_zero)
            any |= general_bits(c, length) & width_mask(t->width);
        int64_t given = t->width == 64 ? (int64_t)c->values[length] : (int32_t)c->values[length];
        any |= string_bits(bits[i], value[i], lane, by_zero, given);
    }
    if (to_vector) {
        struct track_operand first = {.kind = OPERAND_VECTOR, .number = 0, .size = 16};
        struct track whole = *t;
        wide result = {any ? ~0ul : 0, any ? ~0ul : 0};
        whole.operands[0] = first;
        vector_set_result(c, &whole, result);
    } else {
        set_general_bits(c, 1, any ? 0xffffffff : 0);
    }
    set_conditions(c, any ? CONDITIONS_ALL : 0);
}
