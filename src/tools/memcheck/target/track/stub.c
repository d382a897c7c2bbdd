#include <sys/mman.h>

#include "engine/tool.h"
#include "tools/memcheck/target/track/stub.h"

enum { POOL_SIZE = 4 << 20, KNOWN_MAX = 8192, INSTRUCTION_MAX = 24 };

enum vector_reach { REACH_XMM, REACH_YMM, REACH_ZMM };

static uint8_t *pool, *stubs_start;
static struct assembler code; // writes into the pool
static enum vector_reach reach;
static bool has_wide_masks;
static void (*read_vector[32])(void *);
static uint64_t (*read_mask[8])(void);
static uint64_t (*read_mmx[8])(void);

// ---- code ----

enum { VECTOR_WIDTH_XMM = 128 };
static unsigned vector_width(enum vector_reach size) {
    return VECTOR_WIDTH_XMM << size;
}

static unsigned mask_width(void) {
    return has_wide_masks ? 64 : 16;
}

// A part of the frame, which rdi points at.
static struct asm_memory frame_at(size_t offset) {
    return asm_at32(RDI, offset);
}

// A vector register below 8 from or to the frame.
static void write_vector(enum vector_reach size, unsigned number, size_t offset, bool store) {
    if (store)
        asm_vector_mem_reg(&code, vector_width(size), frame_at(offset), number);
    else
        asm_vector_reg_mem(&code, vector_width(size), number, frame_at(offset));
}

static void write_mmx(unsigned number, size_t offset, bool store) {
    if (store)
        asm_mmx_mem_reg(&code, frame_at(offset), number);
    else
        asm_mmx_reg_mem(&code, number, frame_at(offset));
}

static void write_general(unsigned number, size_t offset, bool store) {
    if (store)
        asm_mov_mem_reg(&code, 64, frame_at(offset), number);
    else
        asm_mov_reg_mem(&code, 64, number, frame_at(offset));
}

static void write_mask(unsigned number, size_t offset, bool store) {
    if (store)
        asm_mask_mem_reg(&code, mask_width(), frame_at(offset), number);
    else
        asm_mask_reg_mem(&code, mask_width(), number, frame_at(offset));
}

// ---- the target's registers ----

static void make_readers(void) {
    unsigned vectors = reach == REACH_ZMM ? 32 : 16;
    for (unsigned i = 0; i < vectors; i++) {
        read_vector[i] = (void (*)(void *))code.at;
        asm_vector_mem_reg(&code, vector_width(reach), asm_at(RDI, 0), i);
        asm_ret(&code);
    }
    for (unsigned i = 0; i < 8; i++) {
        read_mask[i] = (uint64_t(*)(void))code.at;
        asm_mov_reg_mask(&code, mask_width(), RAX, i);
        asm_ret(&code);
    }
    for (unsigned i = 0; i < 8; i++) {
        read_mmx[i] = (uint64_t(*)(void))code.at;
        asm_mov_reg_mmx(&code, RAX, i);
        asm_ret(&code);
    }
}

void stub_start(void) {
    pool = mmap(NULL, POOL_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pool == MAP_FAILED)
        __builtin_trap();
    code.at = pool;
    __builtin_cpu_init();
    reach = __builtin_cpu_supports("avx512f") ? REACH_ZMM
            : __builtin_cpu_supports("avx")   ? REACH_YMM
                                              : REACH_XMM;
    has_wide_masks = __builtin_cpu_supports("avx512bw");
    make_readers();
    stubs_start = code.at;
}

void stub_read_vector(unsigned number, wide value) {
    for (unsigned i = 0; i < WIDE_WORDS; i++)
        value[i] = 0;
    read_vector[number](value);
}

uint64_t stub_read_mask(unsigned number) {
    return read_mask[number]();
}

uint64_t stub_read_mmx(unsigned number) {
    return read_mmx[number]();
}

// ---- the instruction with registers of its own ----

struct instruction {
    uint8_t length;
    uint8_t bytes[INSTRUCTION_MAX];
};

static void append(struct instruction *n, uint8_t byte) {
    n->bytes[n->length++] = byte;
}

static bool names(const struct track *t, unsigned field) {
    for (unsigned i = 0; i < t->operand_count; i++)
        if (t->operands[i].field == field && t->operands[i].kind != OPERAND_MEMORY)
            return true;
    return false;
}

static unsigned kind_in(const struct track *t, unsigned field) {
    for (unsigned i = 0; i < t->operand_count; i++)
        if (t->operands[i].field == field)
            return t->operands[i].kind;
    return OPERAND_NONE;
}

// rax, rdx and rsi, which C expects to be changed; rdi holds the frame.
static unsigned register_for(unsigned kind, unsigned field) {
    static const uint8_t general[SLOTS] = {RAX, RAX, RDX, RSI, RCX};
    return kind == OPERAND_GENERAL ? general[field] : field;
}

static void append_prefixes(struct instruction *n, const uint8_t *bytes,
                            const ZydisDecodedInstruction *z) {
    for (unsigned i = 0; i < z->raw.prefix_count; i++) {
        uint8_t byte = bytes[i];
        bool is_rex = z->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY && asm_is_rex(byte);
        if (is_rex)
            append(n, byte & ~(ASM_REX_R | ASM_REX_X | ASM_REX_B));
        else if (!asm_is_address_prefix(byte))
            append(n, byte);
    }
}

// The head of a VEX, XOP or EVEX instruction; returns how many bytes of the original it stands for.
static unsigned append_head(struct instruction *n, const struct track *t, const uint8_t *head,
                            const ZydisDecodedInstruction *z, enum stub_mask mask) {
    uint8_t vvvv = 15;
    if (names(t, FIELD_VVVV))
        vvvv = ~register_for(kind_in(t, FIELD_VVVV), FIELD_VVVV) & 15;
    switch (z->encoding) {
    case ZYDIS_INSTRUCTION_ENCODING_VEX:
        if (z->raw.vex.size == 2) {
            append(n, head[0]);
            append(n, 0x80 | vvvv << 3 | (head[1] & 7));
            return 2;
        }
        // fall through
    case ZYDIS_INSTRUCTION_ENCODING_XOP:
        append(n, head[0]);
        append(n, 0xe0 | (head[1] & 0x1f));
        append(n, (head[2] & 0x87) | vvvv << 3);
        return 3;
    case ZYDIS_INSTRUCTION_ENCODING_EVEX:
        append(n, head[0]);
        append(n, 0xf0 | (head[1] & 0x0f));
        append(n, (head[2] & 0x87) | vvvv << 3);
        if (mask == STUB_MASKED && (head[3] & 7))
            append(n, (head[3] & 0xf0) | 8 | SLOT_WRITEMASK);
        else
            append(n, (head[3] & 0x70) | 8);
        return 4;
    default:
        return 0;
    }
}

static bool rewrite(struct instruction *n, const struct track *t, const uint8_t *bytes,
                    const ZydisDecodedInstruction *z, enum stub_mask mask) {
    n->length = 0;
    if (!(z->attributes & ZYDIS_ATTRIB_HAS_MODRM) ||
        z->encoding == ZYDIS_INSTRUCTION_ENCODING_MVEX ||
        z->encoding == ZYDIS_INSTRUCTION_ENCODING_3DNOW)
        return false;
    unsigned at = z->raw.prefix_count;
    append_prefixes(n, bytes, z);
    at += append_head(n, t, bytes + at, z, mask);
    while (at < z->raw.modrm.offset)
        append(n, bytes[at++]);
    unsigned reg = z->raw.modrm.reg;
    if (names(t, FIELD_REG))
        reg = register_for(kind_in(t, FIELD_REG), FIELD_REG);
    unsigned rest = z->raw.modrm.offset + 1;
    if (z->raw.modrm.mod != 3) {
        append(n, 0x87 | reg << 3); // [rdi + 0], a long displacement, which is never scaled
        for (unsigned i = 0; i < 4; i++)
            append(n, 0);
        rest = z->raw.disp.size    ? z->raw.disp.offset + z->raw.disp.size / 8u
               : z->raw.sib.offset ? z->raw.sib.offset + 1u
                                   : rest;
    } else {
        unsigned rm =
            names(t, FIELD_RM) ? register_for(kind_in(t, FIELD_RM), FIELD_RM) : z->raw.modrm.rm;
        append(n, 0xc0 | reg << 3 | rm);
    }
    for (unsigned i = rest; i < z->length; i++) {
        bool is_register = names(t, FIELD_IS4) && i == z->length - 1u;
        append(n, is_register ? SLOT_IS4 << 4 | (bytes[i] & 15) : bytes[i]);
    }
    return true;
}

// ---- stubs ----

struct known {
    struct instruction instruction;
    bool implied;
    void (*stub)(struct stub_frame *);
};
static struct known known[KNOWN_MAX];
static unsigned known_count;

static struct known *look_up(const struct instruction *n, bool implied) {
    uint32_t hash = implied;
    for (unsigned i = 0; i < n->length; i++)
        hash = (hash ^ n->bytes[i]) * 0x01000193u;
    for (unsigned at = hash % KNOWN_MAX;; at = (at + 1) % KNOWN_MAX) {
        struct known *k = &known[at];
        if (!k->stub)
            return k;
        bool same = k->implied == implied && k->instruction.length == n->length;
        for (unsigned i = 0; same && i < n->length; i++)
            same = k->instruction.bytes[i] == n->bytes[i];
        if (same)
            return k;
    }
}

enum step { SAVE, LOAD, TAKE, RESTORE };

static void write_step(const struct track *t, enum vector_reach size, enum step step,
                       bool writemask) {
    bool store = step == SAVE || step == TAKE;
    bool saved = step == SAVE || step == RESTORE;
    for (unsigned i = 0; i < t->operand_count; i++) {
        const struct track_operand *o = &t->operands[i];
        unsigned slot = o->field;
        if (o->kind == OPERAND_VECTOR)
            write_vector(size, slot,
                         saved ? offsetof(struct stub_frame, saved[slot])
                               : offsetof(struct stub_frame, vector[slot]),
                         store);
        else if (o->kind == OPERAND_MMX)
            write_mmx(slot,
                      saved ? offsetof(struct stub_frame, saved[slot])
                            : offsetof(struct stub_frame, vector[slot]),
                      store);
        else if (o->kind == OPERAND_MASK)
            write_mask(slot,
                       saved ? offsetof(struct stub_frame, saved_mask[slot])
                             : offsetof(struct stub_frame, mask[slot]),
                       store);
        else if (o->kind == OPERAND_GENERAL && o->field && !saved)
            write_general(register_for(OPERAND_GENERAL, slot),
                          offsetof(struct stub_frame, general[slot]), store);
    }
    if (writemask && step != TAKE)
        write_mask(SLOT_WRITEMASK,
                   saved ? offsetof(struct stub_frame, saved_mask[SLOT_WRITEMASK])
                         : offsetof(struct stub_frame, mask[SLOT_WRITEMASK]),
                   store);
}

static bool is_possible(const struct track *t) {
    for (unsigned i = 0; i < t->operand_count; i++) {
        const struct track_operand *o = &t->operands[i];
        bool is_vector = o->kind == OPERAND_VECTOR && (o->field || o->number == 0);
        bool is_named =
            (o->kind == OPERAND_GENERAL || o->kind == OPERAND_MASK || o->kind == OPERAND_MMX) &&
            o->field;
        bool is_plain = o->kind == OPERAND_MEMORY || o->kind == OPERAND_IMMEDIATE ||
                        o->kind == OPERAND_OTHER || o->kind == OPERAND_NONE;
        if (!is_vector && !is_named && !is_plain)
            return false;
    }
    return true;
}

// Stubs are few and soon made again: they are given up only when there are many.
void stub_forget_all(void) {
    if (known_count < KNOWN_MAX / 4)
        return;
    for (unsigned i = 0; i < KNOWN_MAX; i++)
        known[i].stub = NULL;
    known_count = 0;
    code.at = stubs_start;
}

void (*stub_make(const struct track *t, const uint8_t *bytes, const ZydisDecodedInstruction *z,
                 enum stub_mask mask))(struct stub_frame *) {
    struct instruction n;
    if (!is_possible(t) || !rewrite(&n, t, bytes, z, mask))
        return NULL;
    bool implied = false;
    for (unsigned i = 0; i < t->operand_count; i++)
        implied |= t->operands[i].kind == OPERAND_VECTOR && !t->operands[i].field;
    struct known *k = look_up(&n, implied);
    if (k->stub)
        return k->stub;
    if (known_count >= KNOWN_MAX / 2 || code.at + 1024 > pool + POOL_SIZE)
        return NULL;
    bool legacy = z->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY;
    enum vector_reach size = legacy ? REACH_XMM : reach;
    bool writemask = mask == STUB_MASKED && t->mask;
    void (*stub)(struct stub_frame *) = (void (*)(struct stub_frame *))code.at;
    write_step(t, size, SAVE, writemask);
    write_step(t, size, LOAD, writemask);
    asm_bytes(&code, n.bytes, n.length);
    write_step(t, size, TAKE, writemask);
    write_step(t, size, RESTORE, writemask);
    asm_ret(&code);
    known_count++;
    *k = (struct known){n, implied, stub};
    return stub;
}
