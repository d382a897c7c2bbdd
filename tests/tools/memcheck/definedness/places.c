#include "places.h"

#include <stdio.h>
#include <string.h>

#include "../../../engine/differential/layout.h"
#include "tools/memcheck/target/track/parts.h"

#define IN  ((struct cpu_state *)(uintptr_t)CONTEXT_IN)
#define OUT ((struct cpu_state *)(uintptr_t)CONTEXT_OUT)

static uint8_t *vector_byte(struct cpu_state *state, unsigned number, unsigned byte) {
    const struct xsave_layout *l = &state_xsave_layout;
    if (number >= 16)
        return state->xsave + l->offset[PART_ZMM16] + 64 * (number - 16) + byte;
    if (byte < 16)
        return state->xsave + XSAVE_XMM + 16 * number + byte;
    if (byte < 32)
        return state->xsave + l->offset[PART_AVX] + 16 * number + byte - 16;
    return state->xsave + l->offset[PART_ZMM_HIGH] + 32 * number + byte - 32;
}

static uint8_t *mask_byte(struct cpu_state *state, unsigned number, unsigned byte) {
    return state->xsave + state_xsave_layout.offset[PART_MASK] + 8 * number + byte;
}

// By physical number; the image holds them from the top of the stack on.
static uint8_t *x87_byte(struct cpu_state *state, unsigned number, unsigned byte) {
    unsigned top = state->xsave[XSAVE_FSW + 1] >> 3 & 7;
    return state->xsave + XSAVE_ST + 16 * ((number - top) & 7) + byte;
}

static void add_place(struct scene *s, int unit, uint8_t *value, void *shadow) {
    for (unsigned i = 0; i < s->place_count; i++)
        if (s->places[i].value == value)
            return;
    if (s->place_count < PLACES_MAX)
        s->places[s->place_count++] = (struct place){value, shadow, s->group_count, unit};
}

static int general_number(ZydisRegister reg) {
    ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    if (whole < ZYDIS_REGISTER_RAX || whole > ZYDIS_REGISTER_R15)
        return -1;
    return whole - ZYDIS_REGISTER_RAX;
}

static int vector_number(ZydisRegister reg) {
    if (reg >= ZYDIS_REGISTER_XMM0 && reg <= ZYDIS_REGISTER_ZMM31)
        return ZydisRegisterGetId(reg);
    return -1;
}

// Registers that form addresses, counts of repetitions, the frame: these stay defined.
static uint32_t fixed_registers(const struct scene *s, uint32_t *vectors) {
    uint32_t fixed = 1 << 4;
    *vectors = 0;
    for (unsigned i = 0; i < s->instruction->operand_count; i++) {
        const ZydisDecodedOperand *o = &s->operands[i];
        if (o->type != ZYDIS_OPERAND_TYPE_MEMORY || s->instruction->mnemonic == ZYDIS_MNEMONIC_LEA)
            continue;
        int base = general_number(o->mem.base), index = general_number(o->mem.index);
        fixed |= (base >= 0 ? 1u << base : 0) | (index >= 0 ? 1u << index : 0);
        if (vector_number(o->mem.index) >= 0)
            *vectors |= 1u << vector_number(o->mem.index);
    }
    if (s->form->limits & LIMIT_COUNT)
        fixed |= 1 << GPR_RCX;
    if (s->form->limits & LIMIT_FRAME)
        fixed |= 1 << GPR_RBP;
    if (s->form->limits & (LIMIT_BIT_OFFSET | LIMIT_POINTER) && s->form->special < 16)
        fixed |= 1u << s->form->special;
    return fixed;
}

static void add_register(struct scene *s, const ZydisDecodedOperand *o) {
    ZydisRegister reg = o->reg.value;
    uint32_t fixed_vectors, fixed = fixed_registers(s, &fixed_vectors);
    int number = general_number(reg);
    unsigned size = o->size / 8;
    if (number >= 0) {
        unsigned shift = reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH;
        for (unsigned i = 0; i < 8 && !(fixed >> number & 1); i++)
            if (i - shift < size || size < 4)
                add_place(s, number, (uint8_t *)&IN->gpr[number] + i,
                          (uint8_t *)&engine_shadow.general[number] + i);
        return;
    }
    number = vector_number(reg);
    if (number >= 0) {
        unsigned whole = ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, reg) / 8;
        for (unsigned i = 0; i < whole && !(fixed_vectors >> number & 1); i++)
            add_place(s, SHADOW_UNIT_VECTOR + number, vector_byte(IN, number, i),
                      (uint8_t *)engine_shadow.vector[number] + i);
    } else if (reg >= ZYDIS_REGISTER_K0 && reg <= ZYDIS_REGISTER_K7) {
        number = reg - ZYDIS_REGISTER_K0;
        if (o->encoding == ZYDIS_OPERAND_ENCODING_MASK && number == 0)
            return;
        for (unsigned i = 0; i < 8; i++)
            add_place(s, SHADOW_UNIT_MASK + number, mask_byte(IN, number, i),
                      (uint8_t *)&engine_shadow.mask[number] + i);
    } else if (reg >= ZYDIS_REGISTER_MM0 && reg <= ZYDIS_REGISTER_MM7) {
        number = reg - ZYDIS_REGISTER_MM0;
        for (unsigned i = 0; i < 8; i++)
            add_place(s, SHADOW_UNIT_X87, x87_byte(IN, number, i),
                      (uint8_t *)engine_shadow.x87[number] + i);
    } else if (reg >= ZYDIS_REGISTER_ST0 && reg <= ZYDIS_REGISTER_ST7) {
        unsigned top = IN->xsave[XSAVE_FSW + 1] >> 3 & 7;
        number = (top + reg - ZYDIS_REGISTER_ST0) & 7;
        for (unsigned i = 0; i < 10; i++)
            add_place(s, SHADOW_UNIT_X87, x87_byte(IN, number, i),
                      (uint8_t *)engine_shadow.x87[number] + i);
    } else if (reg >= ZYDIS_REGISTER_FLAGS && reg <= ZYDIS_REGISTER_RFLAGS) {
        s->has_flags = true;
    }
}

static void add_window(struct scene *s, uint64_t start, uint64_t end) {
    for (unsigned i = 0; i < 1100 && !engine_is_writable(end - 1); i++)
        end--;
    for (unsigned i = 0; i < 1100 && !engine_is_writable(start); i++)
        start++;
    if (s->window_count == WINDOWS_MAX || start >= end || end - start > WINDOW_MAX)
        return;
    for (uint64_t at = start; at < end; at++)
        if (!engine_is_writable(at))
            return;
    for (unsigned i = 0; i < s->window_count; i++) {
        struct window *other = &s->windows[i];
        uint64_t other_end = other->start + other->size;
        if (start >= other_end || other->start >= end)
            continue;
        start = start < other->start ? start : other->start;
        end = end > other_end ? end : other_end;
        if (end - start > WINDOW_MAX)
            return;
        *other = s->windows[--s->window_count];
        add_window(s, start, end);
        return;
    }
    struct window *w = &s->windows[s->window_count];
    w->start = start;
    w->size = end - start;
    memcpy(w->before, (void *)start, w->size);
    s->window_count++;
}

static void add_memory(struct scene *s, const ZydisDecodedOperand *o) {
    struct tool_access access = {.base = general_number(o->mem.base),
                                 .index = general_number(o->mem.index),
                                 .scale = o->mem.scale,
                                 .narrow = s->instruction->address_width == 32,
                                 .displacement = o->mem.disp.value};
    if (o->mem.type == ZYDIS_MEMOP_TYPE_AGEN || o->mem.type == ZYDIS_MEMOP_TYPE_MIB)
        return;
    access.segment = o->mem.segment == ZYDIS_REGISTER_FS   ? 1
                     : o->mem.segment == ZYDIS_REGISTER_GS ? 2
                                                           : 0;
    bool on_stack = o->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN && access.base == 4;
    if (on_stack)
        access.narrow = false;
    if (o->mem.base == ZYDIS_REGISTER_RIP || o->mem.base == ZYDIS_REGISTER_EIP)
        access.displacement += *(uint64_t *)CONTEXT_ENTRY + s->instruction->length;
    uint64_t address = tool_access_address(&access);
    unsigned size = o->size / 8;
    uint64_t low = address, high = address + size;
    if (o->mem.type == ZYDIS_MEMOP_TYPE_VSIB || s->form->limits & LIMIT_BIT_OFFSET)
        low -= 1040, high += 1040;
    if (s->form->limits & LIMIT_COUNT)
        low -= 64, high += 64;
    if (on_stack)
        low -= s->instruction->mnemonic == ZYDIS_MNEMONIC_ENTER ? 300 : 16, high += 16;
    add_window(s, low - 8, high + 8);
    for (uint64_t at = low; at < high && high - low < 4096; at++)
        if (engine_is_writable(at))
            add_place(s, -1, (uint8_t *)at, engine_shadow_byte(at));
}

void scene_make(struct scene *s) {
    s->place_count = s->group_count = s->window_count = 0;
    s->has_flags = s->instruction->cpu_flags->tested & FLAGS_ALL;
    for (unsigned i = 0; i < s->instruction->operand_count; i++) {
        const ZydisDecodedOperand *o = &s->operands[i];
        unsigned before = s->place_count;
        if (o->type == ZYDIS_OPERAND_TYPE_REGISTER)
            add_register(s, o);
        else if (o->type == ZYDIS_OPERAND_TYPE_MEMORY)
            add_memory(s, o);
        if (s->place_count > before)
            s->group_operands[s->group_count++] = i;
    }
}

void scene_restore_memory(const struct scene *s) {
    for (unsigned i = 0; i < s->window_count; i++)
        memcpy((void *)s->windows[i].start, s->windows[i].before, s->windows[i].size);
}

// ---- outcomes ----

uint16_t conditions_of(uint64_t flags) {
    bool c = flags & FLAG_C, z = flags & FLAG_Z, s = flags & FLAG_S, o = flags & FLAG_O;
    return o << COND_O | c << COND_B | z << COND_Z | (c || z) << COND_BE | s << COND_S |
           !!(flags & FLAG_P) << COND_P | (s != o) << COND_L | (z || s != o) << COND_LE |
           !!(flags & FLAG_A) << COND_A;
}

void scene_set_flags(uint32_t undefined) {
    engine_shadow.conditions =
        flags_conditions((struct flags){IN->flags & FLAGS_ALL, undefined & FLAGS_ALL});
    engine_shadow.undefined[SHADOW_UNIT_FLAGS] = engine_shadow.conditions != 0;
}

unsigned scene_outcome(const struct scene *s, uint8_t *bytes) {
    uint16_t conditions = conditions_of(OUT->flags);
    memcpy(bytes + OUTCOME_GENERAL, OUT->gpr, 128);
    memcpy(bytes + OUTCOME_CONDITIONS, &conditions, 2);
    for (unsigned i = 0; i < 8; i++) {
        memcpy(bytes + OUTCOME_MASK + 8 * i, mask_byte(OUT, i, 0), 8);
        memcpy(bytes + OUTCOME_X87 + 10 * i, x87_byte(OUT, i, 0), 10);
    }
    for (unsigned i = 0; i < 32; i++)
        for (unsigned j = 0; j < 64; j += 16)
            memcpy(bytes + OUTCOME_VECTOR + 64 * i + j, vector_byte(OUT, i, j), 16);
    unsigned at = OUTCOME_MEMORY;
    for (unsigned i = 0; i < s->window_count; at += s->windows[i++].size)
        memcpy(bytes + at, (void *)s->windows[i].start, s->windows[i].size);
    return at;
}

static void mark_unit(uint8_t *bytes, unsigned unit, const void *bits, unsigned size) {
    if (engine_shadow.undefined[unit])
        memcpy(bytes, bits, size);
    else
        memset(bytes, 0, size);
}

unsigned scene_marked(const struct scene *s, uint8_t *bytes) {
    const struct shadow_registers *r = &engine_shadow;
    for (unsigned i = 0; i < 16; i++)
        mark_unit(bytes + OUTCOME_GENERAL + 8 * i, i, &r->general[i], 8);
    mark_unit(bytes + OUTCOME_CONDITIONS, SHADOW_UNIT_FLAGS, &r->conditions, 2);
    for (unsigned i = 0; i < 8; i++) {
        mark_unit(bytes + OUTCOME_MASK + 8 * i, SHADOW_UNIT_MASK + i, &r->mask[i], 8);
        mark_unit(bytes + OUTCOME_X87 + 10 * i, SHADOW_UNIT_X87, r->x87[i], 10);
    }
    for (unsigned i = 0; i < 32; i++)
        mark_unit(bytes + OUTCOME_VECTOR + 64 * i, SHADOW_UNIT_VECTOR + i, r->vector[i], 64);
    unsigned at = OUTCOME_MEMORY;
    for (unsigned i = 0; i < s->window_count; i++)
        for (unsigned j = 0; j < s->windows[i].size; j++)
            bytes[at++] = *engine_shadow_byte(s->windows[i].start + j);
    return at;
}

int scene_unit_of(unsigned byte) {
    if (byte < OUTCOME_CONDITIONS)
        return byte / 8;
    if (byte < OUTCOME_MASK)
        return SHADOW_UNIT_FLAGS;
    if (byte < OUTCOME_X87)
        return SHADOW_UNIT_MASK + (byte - OUTCOME_MASK) / 8;
    if (byte < OUTCOME_VECTOR)
        return SHADOW_UNIT_X87;
    if (byte < OUTCOME_MEMORY)
        return SHADOW_UNIT_VECTOR + (byte - OUTCOME_VECTOR) / 64;
    return -1;
}

const char *scene_name_outcome(const struct scene *s, unsigned byte, char *buffer) {
    if (byte < OUTCOME_CONDITIONS)
        sprintf(buffer, "general %u byte %u", byte / 8, byte % 8);
    else if (byte < OUTCOME_MASK)
        sprintf(buffer, "conditions byte %u", byte - OUTCOME_CONDITIONS);
    else if (byte < OUTCOME_X87)
        sprintf(buffer, "k%u byte %u", (byte - OUTCOME_MASK) / 8, (byte - OUTCOME_MASK) % 8);
    else if (byte < OUTCOME_VECTOR)
        sprintf(buffer, "x87 %u byte %u", (byte - OUTCOME_X87) / 10, (byte - OUTCOME_X87) % 10);
    else if (byte < OUTCOME_MEMORY)
        sprintf(buffer, "vector %u byte %u", (byte - OUTCOME_VECTOR) / 64,
                (byte - OUTCOME_VECTOR) % 64);
    else
        sprintf(buffer, "memory byte %u", byte - OUTCOME_MEMORY);
    return buffer;
}
