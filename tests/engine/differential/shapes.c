#include "shapes.h"

#include "compose.h"
#include "layout.h"

#include <string.h>

#define NONE (-1)

// One way to address memory. `disp` is 0, 8 or 32 bits; `place` matters where the address is part
// of the instruction.
struct shape {
    const char *prefixes;
    int8_t base, index;
    uint8_t scale, disp;
    bool rip, absolute;
    uint16_t place;
};

#define BASE(b, d)      .base = (b), .index = NONE, .disp = (d)
#define SIB(b, i, s, d) .base = (b), .index = (i), .scale = (s), .disp = (d)
#define RIP(p)          .base = NONE, .index = NONE, .rip = true, .place = (p)
#define ABSOLUTE(p)     .base = NONE, .index = NONE, .absolute = true, .place = (p)

// The first SHAPES_ALWAYS are given to every instruction; of the others, instructions with many
// variants (EVEX) get a few in turn.
static const struct shape shapes[] = {
    {"", RIP(DATA_ALIGNED)},
    {"\x64", ABSOLUTE(0)},
    {"\x65", BASE(3, 8)},
    {"", BASE(4, 8)},
    {"", BASE(1, 32)},
    {"\x67", SIB(1, 2, 1, 32)},
    // the rest in turn
    {"", BASE(0, 0)},
    {"", BASE(7, 8)},
    {"", SIB(3, 6, 2, 0)},
    {"", BASE(4, 0)},
    {"", SIB(4, 2, 3, 32)},
    {"", BASE(5, 8)},
    {"", BASE(12, 0)},
    {"", BASE(13, 8)},
    {"", BASE(12, 32)},
    {"", SIB(13, 12, 1, 32)},
    {"", SIB(12, 13, 0, 8)},
    {"", SIB(2, 2, 2, 8)},
    {"", SIB(15, 8, 2, 8)},
    {"", SIB(NONE, 6, 3, 32)},
    {"", ABSOLUTE(DATA_ALIGNED)},
    {"", ABSOLUTE(DATA_READONLY)},
    {"", RIP(DATA_UNALIGNED)},
    {"", RIP(DATA_READONLY)},
    {"", RIP(DATA_UNMAPPED)},
    {"\x64", BASE(0, 8)},
    {"\x64", SIB(1, 2, 2, 32)},
    {"\x64", SIB(NONE, 9, 2, 32)},
    {"\x64", BASE(4, 8)},
    {"\x64", RIP(DATA_ALIGNED)},
    {"\x65", ABSOLUTE(0)},
    {"\x65", SIB(10, 11, 3, 8)},
    {"\x65", BASE(13, 8)},
    {"\x65", SIB(5, 0, 0, 32)},
    {"\x67", BASE(0, 0)},
    {"\x67", BASE(3, 8)},
    {"\x67", BASE(4, 8)},
    {"\x67", SIB(13, 12, 1, 8)},
    {"\x67", SIB(NONE, 7, 2, 32)},
    {"\x67", ABSOLUTE(DATA_ALIGNED)},
    {"\x67", RIP(DATA_ALIGNED)},
    {"\x67\x64", BASE(0, 8)},
    {"\x64\x67", SIB(6, 7, 1, 32)},
    {"\x67\x65", ABSOLUTE(0)},
    {"\x65\x67", RIP(DATA_ALIGNED)},
    {"\x26", BASE(6, 8)},
    {"\x2e", RIP(DATA_ALIGNED)},
    {"\x3e", SIB(0, 1, 0, 0)},
    {"\x36", BASE(2, 32)},
    {"\x65\x64", BASE(0, 8)},
    {"\x64\x3e", BASE(9, 0)},
};
#define SHAPE_COUNT   (sizeof shapes / sizeof *shapes)
#define SHAPES_ALWAYS 6
#define SHAPES_TURN   5

// fs:[disp32] always has this displacement, so that several fit into one sequence.
#define SEGMENT_DISP 0x00123450

// Decodes fully and adds the draft of a finished encoding. `place` is where a rip-relative operand
// shall point.
static void finish(const struct encoding *e, uint16_t place) {
    struct draft d = {0};
    uint8_t buffer[ENCODE_BUFFER];
    int disp_at;
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    encode(e, buffer, &disp_at);
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&enumerate_decoder, buffer,
                                             ZYDIS_MAX_INSTRUCTION_LENGTH, &instruction, operands)))
        return;
    struct description description = describe(&instruction, operands);
    if (description.skipped) {
        draft_skip(description.skipped);
        return;
    }
    if (description.ignored)
        draft_ignore(description.ignored);
    d.form = description.form;
    d.group = description.group;
    if (compose_is_rare(&instruction))
        d.form.states = 1;
    draft_bytes(&d, buffer, instruction.length);
    if (e->rip && e->mod == 0 && disp_at >= 0) {
        draft_patch(&d, disp_at, instruction.length, AREA_DATA + place);
        for (int i = 0; i < d.form.mem_count; i++)
            if (d.form.mem[i].base == GPR_RIP)
                d.form.mem[i].disp = AREA_DATA + place;
    }
    if (description.relative) {
        compose_relative(&d, &instruction);
        return;
    }
    bool single = description.composable && !(e->rip && d.form.mem[0].segment);
    if (single)
        compose_remember(&d, &instruction);
    draft_exit(&d, 0);
    draft_add(&d);
    if (description.indirect) {
        d.group = GROUP_WILD;
        d.form.limits |= LIMIT_WILD;
        draft_add(&d);
    }
}

// Whether the encoding still is the instruction it was made from.
static bool still(const struct base_form *base, const struct encoding *e) {
    ZydisDecodedInstruction instruction;
    ZydisDecoderContext context;
    return enumerate_decode(e, &instruction, &context) && context.definition == base->definition &&
           (instruction.attributes & EFFECTIVE_PREFIXES) == base->prefixes;
}

// Replaces register fields by random ones as far as they are free.
static void randomize(const struct base_form *base, struct encoding *e, struct random *random,
                      unsigned registers) {
    struct encoding tried = *e;
    for (size_t i = 0; i < sizeof e->tail; i++)
        tried.tail[i] = random_next(random);
    if (still(base, &tried))
        *e = tried;
    uint8_t vvvv = random_below(random, registers), reg = random_below(random, registers);
    for (int what = 3; what > 0; what--) {
        tried = *e;
        if (what & 1 && e->kind >= ENC_VEX2)
            tried.vvvv = vvvv;
        if (what & 2)
            tried.reg = reg;
        if (still(base, &tried)) {
            *e = tried;
            return;
        }
    }
}

static void apply(struct encoding *e, const struct shape *shape, struct random *random) {
    for (const char *p = shape->prefixes; *p; p++)
        encode_add_prefix(e, *p);
    bool segment = strpbrk(shape->prefixes, "\x64\x65");
    e->rip = shape->rip;
    e->no_base = shape->base == NONE && !shape->rip;
    e->base = shape->base == NONE ? 0 : shape->base;
    e->index = shape->index == NONE ? 4 : shape->index;
    e->scale = shape->scale;
    e->sib = e->no_base || shape->index != NONE || (!e->rip && (e->base & 7) == 4);
    e->mod = e->no_base || e->rip ? 0 : shape->disp == 32 ? 2 : shape->disp == 8 ? 1 : 0;
    e->disp = 0;
    if (shape->absolute)
        e->disp = segment ? SEGMENT_DISP : AREA_LOW + AREA_DATA + shape->place;
    else if (e->mod == 1)
        e->disp = (int8_t)random_next(random) & ~7;
    else if (e->mod == 2 || e->no_base)
        // Near the stack pointer everything must stay inside the stack.
        e->disp = (shape->base == 4 ? (int)random_below(random, 1024) - 512
                                    : (int)random_below(random, 1 << 28) - (1 << 27)) &
                  ~7;
}

static bool is_vsib(const struct base_form *base) {
    uint8_t buffer[ENCODE_BUFFER];
    ZydisDecodedInstruction instruction;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    encode(&base->encoding, buffer, NULL);
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&enumerate_decoder, buffer,
                                             ZYDIS_MAX_INSTRUCTION_LENGTH, &instruction, operands)))
        return false;
    for (int i = 0; i < instruction.operand_count; i++)
        if (operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
            operands[i].mem.type == ZYDIS_MEMOP_TYPE_VSIB)
            return true;
    return false;
}

// A bit offset that is the address itself would hit anything.
static void part_bit_offset(struct encoding *e) {
    bool bit_test = e->kind == ENC_LEGACY && e->map == 1 && (e->opcode & 0xe7) == 0xa3;
    while (bit_test && (e->reg == e->base || e->reg == e->index))
        e->reg = (e->reg + 1) % 16;
}

static void expand_memory(const struct base_form *base, struct random *random) {
    bool vsib = is_vsib(base);
    unsigned registers = base->encoding.kind == ENC_EVEX ? 32 : 16;
    unsigned turn = random_below(random, SHAPE_COUNT);
    for (unsigned i = 0; i < SHAPE_COUNT; i++) {
        if (base->encoding.kind == ENC_EVEX && !vsib && i >= SHAPES_ALWAYS &&
            (i + turn) % (SHAPE_COUNT / SHAPES_TURN) != 0)
            continue;
        struct encoding e = base->encoding;
        struct shape shape = shapes[i];
        if (vsib && shape.index == NONE)
            continue;
        apply(&e, &shape, random);
        if (vsib) {
            e.index = random_below(random, registers);
            if (e.no_base)
                e.disp = AREA_LOW + AREA_DATA + DATA_MIDDLE;
        }
        if (!still(base, &e))
            continue;
        randomize(base, &e, random, registers);
        part_bit_offset(&e);
        if (vsib && e.no_base && strpbrk(shape.prefixes, "\x64\x65"))
            e.disp = SEGMENT_DISP;
        finish(&e, shape.place);
    }
}

static void expand_register(const struct base_form *base, struct random *random) {
    static const struct {
        int8_t reg, rm, limit;
        bool rex;
    } variants[] = {
        {NONE, NONE, 8, false}, {1, 1, 8, false},       {NONE, 4, 8, false},
        {4, NONE, 8, false},    {NONE, 4, 8, true},     {NONE, 12, 16, false},
        {13, NONE, 16, false},  {NONE, NONE, 16, true}, {NONE, NONE, 32, true},
        {31, NONE, 32, false},
    };
    unsigned count = base->encoding.kind == ENC_EVEX ? 10 : 8;
    for (unsigned i = 0; i < count; i++) {
        if (base->encoding.kind == ENC_EVEX && i < count - 3 && random_below(random, 4))
            continue;
        struct encoding e = base->encoding, tried;
        randomize(base, &e, random, variants[i].limit);
        tried = e;
        tried.rex = variants[i].rex;
        tried.rm = random_below(random, variants[i].limit);
        if (variants[i].rm != NONE)
            tried.rm = variants[i].rm;
        if (still(base, &tried))
            e = tried;
        if (variants[i].reg != NONE)
            tried.reg = variants[i].reg;
        if (still(base, &tried))
            e = tried;
        finish(&e, 0);
        // The short VEX prefix, where it can say the same.
        if (e.kind == ENC_VEX3 && e.map == 1 && e.rm < 8) {
            e.kind = ENC_VEX2;
            if (still(base, &e))
                finish(&e, 0);
        }
    }
}

// No modrm: registers in the opcode, implied memory, moffs, immediates.
static void expand_plain(const struct base_form *base, struct random *random) {
    static const char *const prefixes[] = {"",         "\x64", "\x65",     "\x67",
                                           "\x67\x64", "\x26", "\x67\x65", "\x2e"};
    static const uint8_t interrupts[] = {0, 1, 3, 4, 13, 0x80, 0x81, 0xff};
    bool moffs = base->encoding.map == 0 && (base->encoding.opcode & 0xfc) == 0xa0;
    for (unsigned i = 0; i < 8; i++) {
        struct encoding e = base->encoding;
        for (const char *p = prefixes[i]; *p; p++)
            encode_add_prefix(&e, *p);
        if (!still(base, &e))
            continue;
        if (e.opcode == 0xc8 && e.map == 0)
            e.tail[2] = i;
        else if (e.opcode == 0xcd && e.map == 0)
            e.tail[0] = interrupts[i];
        else if (moffs)
            memcpy(e.tail, &(uint64_t){AREA_LOW + AREA_DATA + DATA_ALIGNED}, 8);
        else
            randomize(base, &e, random, 16);
        finish(&e, 0);
    }
    for (unsigned reg = 0; reg < 16; reg++) {
        struct encoding e = base->encoding;
        e.opcode = (e.opcode & ~7) | (reg & 7);
        e.rm = reg;
        ZydisDecodedInstruction instruction;
        ZydisDecoderContext context;
        if (still(base, &e) && enumerate_decode(&e, &instruction, &context) && !moffs)
            finish(&e, 0);
    }
}

void shapes_expand(const struct base_form *base, struct random *random) {
    if (base->encoding.no_modrm)
        expand_plain(base, random);
    else if (base->encoding.mod == 3)
        expand_register(base, random);
    else
        expand_memory(base, random);
}

void shapes_rejected(const struct encoding *rejected) {
    for (int memory = 0; memory < 2; memory++) {
        struct encoding e = *rejected;
        struct draft d = {.group = GROUP_UNDECODABLE};
        uint8_t buffer[ENCODE_BUFFER];
        if (memory)
            e.mod = e.rm = e.base = 0, e.sib = e.rip = false;
        encode(&e, buffer, NULL);
        d.form.length = ZYDIS_MAX_INSTRUCTION_LENGTH;
        d.form.states = 1;
        d.form.special = GPR_NONE;
        draft_bytes(&d, buffer, d.form.length);
        draft_add(&d);
    }
}
