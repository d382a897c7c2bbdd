// Operands of up to 64 bytes: vector and mask registers, and memory.
#include "tools/memcheck/target/track/stub.h"

static void clear(wide bits) {
    for (unsigned i = 0; i < WIDE_WORDS; i++)
        bits[i] = 0;
}

void wide_bits(struct context *c, const struct track *t, unsigned operand, wide bits) {
    const struct track_operand *o = &t->operands[operand];
    clear(bits);
    switch (o->kind) {
    case OPERAND_VECTOR: {
        unsigned unit = SHADOW_UNIT_VECTOR + o->number;
        if (!c->shadow->undefined[unit])
            return;
        if (!c->origin)
            c->origin = c->shadow->origin[unit];
        for (unsigned i = 0; i < WIDE_WORDS; i++)
            bits[i] = c->shadow->vector[o->number][i];
        return;
    }
    case OPERAND_MEMORY:
        memory_load(c, operand_address(c, t, operand), o->size, bits);
        return;
    case OPERAND_MMX:
        bits[0] = mmx_bits(c, o->number);
        return;
    default:
        bits[0] = operand_bits(c, t, operand);
    }
}

// Of what a mask leaves out, not all may be there.
static void read_value(uint64_t address, unsigned size, wide value) {
    if (!tool_read(value, address, size))
        return;
    for (unsigned i = 0; i < size; i++)
        if (tool_read((uint8_t *)value + i, address + i, 1))
            ((uint8_t *)value)[i] = 0;
}

void wide_value(struct context *c, const struct track *t, unsigned operand, wide value) {
    const struct track_operand *o = &t->operands[operand];
    clear(value);
    switch (o->kind) {
    case OPERAND_VECTOR:
        stub_read_vector(o->number, value);
        return;
    case OPERAND_MEMORY:
        read_value(operand_address(c, t, operand), o->size, value);
        return;
    case OPERAND_MMX:
        value[0] = stub_read_mmx(o->number);
        return;
    default:
        value[0] = operand_value(c, t, operand);
    }
}

void wide_set_bits(struct context *c, const struct track *t, unsigned operand, const wide bits) {
    const struct track_operand *o = &t->operands[operand];
    switch (o->kind) {
    case OPERAND_VECTOR: {
        bool any = wide_any(bits);
        if (any)
            for (unsigned i = 0; i < WIDE_WORDS; i++)
                c->shadow->vector[o->number][i] = bits[i];
        set_unit(c, SHADOW_UNIT_VECTOR + o->number, any);
        return;
    }
    case OPERAND_MEMORY:
        memory_store(c, operand_address(c, t, operand), o->size, bits);
        return;
    case OPERAND_MMX:
        set_mmx_bits(c, o->number, bits[0]);
        return;
    default:
        operand_set_bits(c, t, operand, bits[0]);
    }
}

uint64_t mask_bits(struct context *c, unsigned number) {
    unsigned unit = SHADOW_UNIT_MASK + number;
    if (!c->shadow->undefined[unit])
        return 0;
    if (!c->origin)
        c->origin = c->shadow->origin[unit];
    return c->shadow->mask[number];
}

uint64_t mask_value(unsigned number) {
    return stub_read_mask(number);
}

void set_mask_bits(struct context *c, unsigned number, uint64_t bits) {
    c->shadow->mask[number] = bits;
    set_unit(c, SHADOW_UNIT_MASK + number, bits != 0);
}

// ---- x87, all of it one unit ----

static bool any_x87(const struct shadow_registers *shadow) {
    uint64_t any = shadow->x87_status;
    for (unsigned i = 0; i < 8; i++)
        any |= shadow->x87[i][0] | shadow->x87[i][1];
    return any != 0;
}

// Makes what is kept valid before something is set undefined.
static void open_x87(struct shadow_registers *shadow) {
    if (shadow->undefined[SHADOW_UNIT_X87])
        return;
    for (unsigned i = 0; i < 8; i++)
        shadow->x87[i][0] = shadow->x87[i][1] = 0;
    shadow->x87_status = 0;
}

static void close_x87(struct context *c) {
    if (any_x87(c->shadow))
        set_unit(c, SHADOW_UNIT_X87, true);
    else
        c->shadow->undefined[SHADOW_UNIT_X87] = 0;
}

void x87_set(struct context *c, unsigned number, uint64_t low, uint64_t high) {
    open_x87(c->shadow);
    c->shadow->x87[number][0] = low;
    c->shadow->x87[number][1] = high & 0xffff;
    close_x87(c);
}

void x87_set_status(struct context *c, uint16_t bits) {
    open_x87(c->shadow);
    c->shadow->x87_status = bits;
    close_x87(c);
}

uint16_t x87_status_bits(struct context *c) {
    if (!c->shadow->undefined[SHADOW_UNIT_X87])
        return 0;
    if (!c->origin)
        c->origin = c->shadow->origin[SHADOW_UNIT_X87];
    return c->shadow->x87_status;
}

// mmx registers are the lower halves of the x87 registers, by physical number.
uint64_t mmx_bits(struct context *c, unsigned number) {
    if (!c->shadow->undefined[SHADOW_UNIT_X87])
        return 0;
    if (!c->origin)
        c->origin = c->shadow->origin[SHADOW_UNIT_X87];
    return c->shadow->x87[number][0];
}

// The exponent of an mmx register that is written is all ones.
void set_mmx_bits(struct context *c, unsigned number, uint64_t bits) {
    x87_set(c, number, bits, 0);
}
