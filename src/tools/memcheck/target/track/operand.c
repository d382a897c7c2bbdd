// Operands of up to 64 bits.
#include "tools/memcheck/target/track/parts.h"

uint64_t operand_bits_anywhere(struct context *c, const struct track *t, unsigned operand) {
    const struct track_operand *o = &t->operands[operand];
    uint64_t mask = width_mask(o->size * 8);
    switch (o->kind) {
    case OPERAND_GENERAL:
        return general_bits(c, o->number) >> o->shift & mask;
    case OPERAND_MEMORY:
        return memory_load_word(c, operand_address(c, t, operand), o->size);
    case OPERAND_MASK:
        return mask_bits(c, o->number) & mask;
    default:
        return 0;
    }
}

uint64_t operand_value(struct context *c, const struct track *t, unsigned operand) {
    const struct track_operand *o = &t->operands[operand];
    uint64_t mask = width_mask(o->size * 8);
    switch (o->kind) {
    case OPERAND_GENERAL:
        return c->values[o->number] >> o->shift & mask;
    case OPERAND_MEMORY:
        return memory_value(operand_address(c, t, operand), o->size);
    case OPERAND_IMMEDIATE:
        return o->immediate;
    case OPERAND_MASK:
        return mask_value(o->number) & mask;
    default:
        return 0;
    }
}

void operand_set_bits_anywhere(struct context *c, const struct track *t, unsigned operand,
                               uint64_t bits) {
    const struct track_operand *o = &t->operands[operand];
    uint64_t mask = width_mask(o->size * 8);
    switch (o->kind) {
    case OPERAND_GENERAL:
        if (o->size < 4) {
            uint64_t old = c->shadow->undefined[o->number] ? c->shadow->general[o->number] : 0;
            bits = (old & ~(mask << o->shift)) | (bits & mask) << o->shift;
            // What is kept may be undefined for another reason.
            if (!c->origin && bits)
                c->origin = c->shadow->origin[o->number];
        }
        set_general_bits(c, o->number, o->size < 4 ? bits : bits & mask);
        break;
    case OPERAND_MEMORY:
        memory_store_word(c, operand_address(c, t, operand), o->size, bits & mask);
        break;
    case OPERAND_MASK:
        set_mask_bits(c, o->number, bits & mask);
        break;
    default:
        break;
    }
}
