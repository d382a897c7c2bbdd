// Vector instructions: sources and results, moves by stubs, and which rule is followed how.
#include <string.h>

#include "tools/memcheck/target/track/vector.h"

// ---- sources and results ----

bool vector_is_source(const struct track *t, unsigned operand) {
    const struct track_operand *o = &t->operands[operand];
    if (o->kind == OPERAND_IMMEDIATE || o->kind == OPERAND_OTHER || o->kind == OPERAND_FLAGS)
        return false;
    return o->reads && !(operand == 0 && t->keeps_only);
}

// Elements of memory that the writemask may select; expansion takes them from the lowest on.
static uint64_t selected(struct context *c, const struct track *t) {
    uint64_t mask = mask_value(t->mask) | mask_bits(c, t->mask);
    if (!t->is_dense)
        return mask;
    return width_mask(count_ones(mask & width_mask(t->vector_size * 8 / t->in_lane)));
}

void vector_source_bits(struct context *c, const struct track *t, unsigned operand, wide bits) {
    const struct track_operand *o = &t->operands[operand];
    if (o->kind != OPERAND_MEMORY) {
        wide_bits(c, t, operand, bits);
        return;
    }
    uint64_t address = operand_address(c, t, operand);
    wide_clear(bits);
    if (t->memory_lane && t->mask) {
        uint64_t mask = selected(c, t);
        for (unsigned i = 0; i * t->memory_lane < o->size; i++)
            if (mask >> i & 1)
                memory_load(c, address + i * t->memory_lane, t->memory_lane,
                            (uint8_t *)bits + i * t->memory_lane);
        return;
    }
    memory_load(c, address, o->size, bits);
    if (t->is_broadcast)
        for (unsigned i = 1; i * o->size < sizeof(wide); i++)
            lane_set(bits, o->size * 8, i, bits[0]);
}

void vector_source_value(struct context *c, const struct track *t, unsigned operand, wide value) {
    const struct track_operand *o = &t->operands[operand];
    wide_value(c, t, operand, value);
    if (o->kind == OPERAND_MEMORY && t->is_broadcast)
        for (unsigned i = 1; i * o->size < sizeof(wide); i++)
            lane_set(value, o->size * 8, i, value[0]);
}

// Elements that the mask leaves out are kept or cleared; where it is undefined, so are they.
static void apply_mask(struct context *c, const struct track *t, wide result, const wide old) {
    uint64_t mask = mask_value(t->mask), unsure = mask_bits(c, t->mask);
    unsigned lane = t->mask_lane, count = t->is_scalar ? 1 : 512 / lane;
    for (unsigned i = 0; i < count; i++) {
        if (unsure >> i & 1)
            lane_set(result, lane, i, ~0ul);
        else if (!(mask >> i & 1))
            lane_set(result, lane, i, t->is_zeroing ? 0 : lane_get(old, lane, i));
    }
}

static void store_masked(struct context *c, const struct track *t, const wide result) {
    uint64_t address = operand_address(c, t, 0), mask = mask_value(t->mask);
    uint64_t unsure = mask_bits(c, t->mask);
    unsigned size = t->mask_lane / 8;
    for (unsigned i = 0; i * size < t->operands[0].size; i++)
        if ((mask | unsure) >> i & 1)
            memory_store_word(c, address + i * size, size,
                              unsure >> i & 1 ? ~0ul : lane_get(result, t->mask_lane, i));
}

void vector_set_result(struct context *c, const struct track *t, wide result) {
    const struct track_operand *o = &t->operands[0];
    if (o->kind == OPERAND_MEMORY && t->mask) {
        store_masked(c, t, result);
        return;
    }
    if (o->kind == OPERAND_VECTOR) {
        wide old;
        wide_clear(old);
        if (c->shadow->undefined[SHADOW_UNIT_VECTOR + o->number])
            for (unsigned i = 0; i < WIDE_WORDS; i++)
                old[i] = c->shadow->vector[o->number][i];
        if (t->mask)
            apply_mask(c, t, result, old);
        for (unsigned i = t->vector_size / 8; i < WIDE_WORDS; i++)
            result[i] = t->is_legacy ? old[i] : 0;
        // What is kept may be undefined for another reason.
        if (!c->origin && wide_any(old))
            c->origin = c->shadow->origin[SHADOW_UNIT_VECTOR + o->number];
    }
    wide_set_bits(c, t, 0, result);
}

void vector_set_mask_result(struct context *c, const struct track *t, uint64_t result) {
    if (t->mask)
        result = (result & mask_value(t->mask)) | mask_bits(c, t->mask);
    unsigned lanes = t->vector_size * 8 / t->in_lane;
    set_mask_bits(c, t->operands[0].number, result & width_mask(lanes));
}

// ---- moves ----

// Lanes whose control is undefined can be anything.
static void smear_control(const struct track *t, const wide control, wide result) {
    if (t->control_kind == CONTROL_COUNT) {
        if (control[0])
            for (unsigned i = 0; i < t->vector_size / 8u; i++)
                result[i] = ~0ul;
        return;
    }
    unsigned lane = t->in_lane;
    uint64_t relevant = t->control_kind == CONTROL_SIGN ? 1ul << (lane - 1) : width_mask(lane);
    bool to_mask = t->operands[0].kind == OPERAND_MASK;
    for (unsigned i = 0; i < t->vector_size * 8u / lane; i++)
        if (lane_get(control, lane, i) & relevant)
            lane_set(result, to_mask ? 1 : lane, i, ~0ul);
}

static void take_source(struct context *c, const struct track *t, unsigned operand,
                        struct stub_frame *frame, wide control, bool *any) {
    const struct track_operand *o = &t->operands[operand];
    bool steers = operand == t->control;
    uint64_t *slot = o->kind == OPERAND_MEMORY ? frame->memory[0] : frame->vector[o->field];
    switch (o->kind) {
    case OPERAND_VECTOR:
    case OPERAND_MMX:
        wide_bits(c, t, operand, slot);
        break;
    case OPERAND_MEMORY:
        if (!o->reads)
            return;
        // Stubs repeat what is broadcast themselves.
        vector_source_bits(c, t, operand, slot);
        break;
    case OPERAND_GENERAL:
        frame->general[o->field] = o->reads ? operand_bits(c, t, operand) : 0;
        *any |= frame->general[o->field] != 0;
        return;
    case OPERAND_MASK:
        frame->mask[o->field] = o->reads ? operand_bits(c, t, operand) : 0;
        *any |= frame->mask[o->field] != 0;
        return;
    default:
        return;
    }
    if (!steers) {
        *any |= wide_any(slot);
        return;
    }
    for (unsigned i = 0; i < WIDE_WORDS; i++)
        control[i] = slot[i];
    vector_source_value(c, t, operand, slot);
}

// Stores pieces of a compressed vector: as many as the mask selects.
static void store_compressed(struct context *c, const struct track *t, const wide bits) {
    uint64_t mask = mask_value(t->mask), unsure = mask_bits(c, t->mask);
    uint64_t all = width_mask(t->vector_size * 8 / t->in_lane);
    unsigned size = count_ones((mask | unsure) & all) * (t->in_lane / 8);
    wide unknown;
    for (unsigned i = 0; i < WIDE_WORDS; i++)
        unknown[i] = ~0ul;
    if (size)
        memory_store(c, operand_address(c, t, 0), size, unsure & all ? unknown : bits);
}

static void set_moved(struct context *c, const struct track *t, struct stub_frame *frame,
                      const wide control) {
    const struct track_operand *o = &t->operands[0];
    switch (o->kind) {
    case OPERAND_VECTOR:
    case OPERAND_MMX:
        if (t->control != CONTROL_ABSENT)
            smear_control(t, control, frame->vector[o->field]);
        if (t->class == CLASS_MOVE_MASKED) {
            if (t->mask && mask_bits(c, t->mask))
                for (unsigned i = 0; i < t->vector_size / 8u; i++)
                    frame->vector[o->field][i] = ~0ul;
            wide_set_bits(c, t, 0, frame->vector[o->field]);
        } else {
            vector_set_result(c, t, frame->vector[o->field]);
        }
        break;
    case OPERAND_MEMORY:
        if (t->class == CLASS_MOVE_MASKED && t->mask)
            store_compressed(c, t, frame->memory[0]);
        else
            vector_set_result(c, t, frame->memory[0]);
        break;
    case OPERAND_GENERAL:
        operand_set_bits(c, t, 0, frame->general[o->field]);
        break;
    case OPERAND_MASK: {
        wide bits = {frame->mask[o->field]};
        if (t->control != CONTROL_ABSENT) {
            smear_control(t, control, bits);
            vector_set_mask_result(c, t, bits[0]);
        } else {
            set_mask_bits(c, o->number, bits[0]);
        }
        break;
    }
    default:
        break;
    }
}

void vector_run_move(struct context *c, const struct track *t) {
    struct stub_frame frame;
    wide control;
    bool any = false;
    wide_clear(control);
    wide_clear(frame.memory[0]);
    for (unsigned i = 0; i < t->operand_count; i++)
        take_source(c, t, i, &frame, control, &any);
    if (t->class == CLASS_MOVE_MASKED && t->mask)
        frame.mask[SLOT_WRITEMASK] = mask_value(t->mask);
    if (any) {
        t->stub(&frame);
    } else {
        const struct track_operand *o = &t->operands[0];
        if (o->kind == OPERAND_VECTOR || o->kind == OPERAND_MMX)
            wide_clear(frame.vector[o->field]);
    }
    set_moved(c, t, &frame, control);
}

// Whole registers to and from memory, and each other.
static void run_copy(struct context *c, const struct track *t) {
    const struct track_operand *to = &t->operands[0];
    wide bits;
    wide_bits(c, t, 1, bits);
    if (to->kind == OPERAND_VECTOR) {
        const uint64_t *old = c->shadow->vector[to->number];
        bool keeps = t->is_legacy && c->shadow->undefined[SHADOW_UNIT_VECTOR + to->number];
        for (unsigned i = t->vector_size / 8u; i < WIDE_WORDS; i++)
            bits[i] = keeps ? old[i] : 0;
    }
    wide_set_bits(c, t, 0, bits);
}

// ---- which is which ----

static track_function *const class_functions[] = {
    [CLASS_MOVE] = vector_run_move,
    [CLASS_MOVE_MASKED] = vector_run_move,
    [CLASS_AND] = vector_run_logic,
    [CLASS_AND_NOT] = vector_run_logic,
    [CLASS_OR] = vector_run_logic,
    [CLASS_XOR] = vector_run_logic,
    [CLASS_TERNARY] = vector_run_ternary,
    [CLASS_ADD] = vector_run_add,
    [CLASS_SUBTRACT] = vector_run_add,
    [CLASS_EQUAL] = vector_run_compare,
    [CLASS_GREATER] = vector_run_compare,
    [CLASS_COMPARE] = vector_run_compare,
    [CLASS_MINIMUM_SIGNED] = vector_run_extreme,
    [CLASS_MINIMUM_UNSIGNED] = vector_run_extreme,
    [CLASS_MAXIMUM_SIGNED] = vector_run_extreme,
    [CLASS_MAXIMUM_UNSIGNED] = vector_run_extreme,
    [CLASS_LANES] = vector_run_lanes,
    [CLASS_LOW_HALF] = vector_run_lanes,
    [CLASS_SCALAR] = vector_run_scalar,
    [CLASS_CONVERT] = vector_run_convert,
    [CLASS_CONVERT_SCALAR] = vector_run_convert_scalar,
    [CLASS_HORIZONTAL] = vector_run_horizontal,
    [CLASS_PACK_SIGNED] = vector_run_pack,
    [CLASS_PACK_UNSIGNED] = vector_run_pack,
    [CLASS_WHOLE] = vector_run_whole,
    [CLASS_TEST] = vector_run_test,
    [CLASS_TEST_SIGNS] = vector_run_test,
    [CLASS_TEST_MASK] = vector_run_test_mask,
    [CLASS_INTERSECT] = vector_run_intersect,
    [CLASS_COMPARE_FLAGS] = vector_run_compare_flags,
    [CLASS_CLASSIFY] = vector_run_classify,
    [CLASS_STRING] = vector_run_string,
    [CLASS_GATHER] = vector_run_gather,
    [CLASS_SCATTER] = vector_run_scatter,
    [CLASS_MASKED_MOVE] = vector_run_masked_move,
    [CLASS_MASKED_BYTES] = vector_run_masked_bytes,
    [CLASS_ZERO_UPPER] = vector_run_zero_upper,
    [CLASS_MASK_LOGIC] = vector_run_mask,
    [CLASS_MASK_SHIFT] = vector_run_mask,
    [CLASS_MASK_UNPACK] = vector_run_mask,
    [CLASS_MASK_ADD] = vector_run_mask,
    [CLASS_MASK_TEST] = vector_run_mask,
    [CLASS_MASK_MOVE] = vector_run_mask,
};

static bool has_kind(const struct track *t, unsigned kind) {
    for (unsigned i = 0; i < t->operand_count; i++)
        if (t->operands[i].kind == kind)
            return true;
    return false;
}

static unsigned last_source(const struct track *t) {
    unsigned last = 0;
    for (unsigned i = 0; i < t->operand_count; i++)
        if (t->operands[i].kind == OPERAND_VECTOR || t->operands[i].kind == OPERAND_MEMORY ||
            t->operands[i].kind == OPERAND_MMX)
            last = i;
    return last;
}

static unsigned control_operand(const struct track *t, const struct vector_rule *rule) {
    bool constant = has_kind(t, OPERAND_IMMEDIATE);
    switch (rule->control) {
    case CONTROL_LAST:
    case CONTROL_COUNT:
        return constant ? CONTROL_ABSENT : last_source(t);
    case CONTROL_SIGN:
        return last_source(t);
    case CONTROL_FIRST:
        return constant ? CONTROL_ABSENT : 1;
    case CONTROL_OWN:
        return 0;
    default:
        return CONTROL_ABSENT;
    }
}

// Does a masked load leave out what the mask excludes?
static bool loads_by_element(const ZydisDecodedInstruction *z) {
    switch (z->meta.exception_class) {
    case ZYDIS_EXCEPTION_CLASS_E1NF:
    case ZYDIS_EXCEPTION_CLASS_E2NF:
    case ZYDIS_EXCEPTION_CLASS_E3NF:
    case ZYDIS_EXCEPTION_CLASS_E4NF:
    case ZYDIS_EXCEPTION_CLASS_E5NF:
    case ZYDIS_EXCEPTION_CLASS_E6NF:
    case ZYDIS_EXCEPTION_CLASS_E9NF:
    case ZYDIS_EXCEPTION_CLASS_E10NF:
        return false;
    default:
        return true;
    }
}

static bool name_is(const char *name, const char *start) {
    return !strncmp(name, start, strlen(start));
}

// Of EVEX instructions the decoder knows the elements.
static void describe_elements(struct track *t, const char *name, const ZydisDecodedInstruction *z,
                              const ZydisDecodedOperand *operands) {
    t->mask_lane = operands[0].element_size;
    t->is_scalar = t->class == CLASS_SCALAR || t->class == CLASS_CONVERT_SCALAR ||
                   !strcmp(name, "vmovss") || !strcmp(name, "vmovsd") || !strcmp(name, "vmovsh");
    t->is_dense = name_is(name, "vpexpand") || name_is(name, "vexpand");
    if (!t->mask || t->is_broadcast || !loads_by_element(z))
        return;
    for (unsigned i = 1; i < z->operand_count; i++) {
        const ZydisDecodedOperand *o = &operands[i];
        if (o->type != ZYDIS_OPERAND_TYPE_MEMORY)
            continue;
        if (t->operands[0].kind == OPERAND_MASK || t->is_dense)
            t->memory_lane = t->in_lane / 8;
        else if (t->is_scalar || o->element_count == operands[0].element_count)
            t->memory_lane = o->element_size / 8;
    }
}

// What else the name says.
static void describe_variant(struct track *t, const char *name) {
    unsigned length = strlen(name);
    switch (t->class) {
    case CLASS_COMPARE:
        t->variant = name[5] == 'u';
        break;
    case CLASS_STRING:
        t->variant = (name[strcspn(name, "p") + 4] == 'i') | (name[length - 1] == 'm') << 1;
        t->width = t->operands[0].size * 8;
        break;
    case CLASS_MASK_LOGIC:
        t->variant = !strncmp(name, "kandn", 5)  ? MASK_AND_NOT
                     : !strncmp(name, "kand", 4) ? MASK_AND
                     : !strncmp(name, "kor", 3)  ? MASK_OR
                     : !strncmp(name, "knot", 4) ? MASK_NOT
                                                 : MASK_XOR;
        break;
    case CLASS_MASK_TEST:
        t->variant = name[1] == 'o' ? MASK_OR : MASK_AND;
        break;
    case CLASS_MASK_SHIFT:
        t->variant = name[6] == 'r';
        break;
    case CLASS_CLASSIFY:
        t->variant = name[length - 2] == 's';
        break;
    default:
        break;
    }
    if (name[0] == 'k') {
        char width = name[length - 1];
        t->in_lane = width == 'b' ? 8 : width == 'w' ? 16 : width == 'd' ? 32 : 64;
    }
}

static unsigned vector_size(const struct track *t, const ZydisDecodedInstruction *z) {
    if (z->avx.vector_length)
        return z->avx.vector_length / 8;
    return has_kind(t, OPERAND_MMX) && !has_kind(t, OPERAND_VECTOR) ? 8 : 16;
}

track_function *track_vector(struct track *t, const uint8_t *bytes,
                             const ZydisDecodedInstruction *z,
                             const ZydisDecodedOperand *operands) {
    const char *name = ZydisMnemonicGetString(z->mnemonic);
    struct vector_rule rule = vector_rule(name);
    track_function *run = class_functions[rule.class];
    if (!run)
        return NULL;
    t->class = rule.class;
    t->in_lane = rule.in_lane;
    t->out_lane = rule.out_lane;
    t->control_kind = rule.control;
    t->control = control_operand(t, &rule);
    t->vector_size = vector_size(t, z);
    t->is_unary = rule.unary;
    t->keeps_upper = rule.keeps_upper;
    if (z->mnemonic == ZYDIS_MNEMONIC_EXTRQ || z->mnemonic == ZYDIS_MNEMONIC_INSERTQ)
        t->operands[0].reads = true;
    describe_variant(t, name);
    t->keeps_only = z->encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX && !rule.accumulates;
    if (z->encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX)
        describe_elements(t, name, z, operands);
    if (rule.copies && !t->mask)
        return run_copy;
    bool masked = rule.class == CLASS_MOVE_MASKED;
    if (run == vector_run_move) {
        t->stub = stub_make(t, bytes, z, masked ? STUB_MASKED : STUB_UNMASKED);
        if (!t->stub)
            return NULL;
    }
    return run;
}
