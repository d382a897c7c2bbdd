// Preparing instructions, running them, and what every part shares.
#include <string.h>
#include <sys/mman.h>

#include "tools/memcheck/target/track/stub.h"
#include "tools/memcheck/target/track/table.h"

uint64_t track_loader_start, track_loader_end;
bool track_origins, track_partial_loads = true, track_value_errors = true;

// ---- memory for prepared instructions ----

enum { CHUNK_SIZE = 256 << 10 };

struct chunk {
    struct chunk *next;
    size_t used;
};
static struct chunk *chunks;

void *track_memory(size_t size) {
    size = (size + 15) & ~(size_t)15;
    if (!chunks || chunks->used + size > CHUNK_SIZE) {
        struct chunk *chunk =
            mmap(NULL, CHUNK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (chunk == MAP_FAILED)
            __builtin_trap();
        chunk->next = chunks;
        chunk->used = (sizeof *chunk + 15) & ~(size_t)15;
        chunks = chunk;
    }
    void *memory = (char *)chunks + chunks->used;
    chunks->used += size;
    return memory;
}

void track_forget_all(void) {
    while (chunks) {
        struct chunk *next = chunks->next;
        munmap(chunks, CHUNK_SIZE);
        chunks = next;
    }
    stub_forget_all();
}

// ---- whatever is not known better ----

// Flags count as one operand: anything undefined makes what they are set to undefined.
static bool fallback_reads(struct context *c, const struct track *t) {
    bool any = false;
    for (unsigned i = 0; i < t->operand_count; i++) {
        const struct track_operand *o = &t->operands[i];
        if (!o->reads)
            continue;
        if (o->kind == OPERAND_FLAGS) {
            any |= condition_bits(c) != 0;
        } else if (o->kind == OPERAND_X87) {
            any |= c->shadow->undefined[SHADOW_UNIT_X87] != 0;
        } else if (o->kind == OPERAND_MEMORY && o->size > sizeof(wide)) {
            uint64_t bad;
            any |= shadow_check_defined(operand_address(c, t, i), o->size, &bad) != SHADOW_FINE;
        } else {
            wide bits;
            wide_bits(c, t, i, bits);
            any |= wide_any(bits);
        }
    }
    if (t->mask)
        any |= mask_bits(c, t->mask) != 0;
    return any;
}

static void fallback_write(struct context *c, const struct track *t, unsigned operand, bool any) {
    const struct track_operand *o = &t->operands[operand];
    wide bits;
    if (o->kind == OPERAND_FLAGS) {
        set_conditions(c, any ? CONDITIONS_ALL : 0);
        return;
    }
    if (o->kind == OPERAND_X87) {
        for (unsigned i = 0; i < 8; i++)
            x87_set(c, i, any ? ~0ul : 0, any ? ~0ul : 0);
        return;
    }
    // Where a mask leaves memory as it is, so are its bits.
    if (o->kind == OPERAND_MEMORY && t->mask && !any)
        return;
    if (o->kind == OPERAND_MEMORY && o->size > sizeof bits) {
        uint64_t address = operand_address(c, t, operand), fill = any ? ~0ul : 0;
        for (unsigned i = 0; i < o->size; i += 8)
            memory_store_word(c, address + i, o->size - i < 8 ? o->size - i : 8, fill);
        return;
    }
    for (unsigned i = 0; i < WIDE_WORDS; i++)
        bits[i] = any ? ~0ul : 0;
    if (o->kind == OPERAND_VECTOR) {
        unsigned words = (o->size + 7) / 8 < 2 ? 2 : (o->size + 7) / 8;
        for (unsigned i = words; i < WIDE_WORDS; i++)
            bits[i] = 0;
        if (t->is_legacy && c->shadow->undefined[SHADOW_UNIT_VECTOR + o->number])
            for (unsigned i = 2; i < WIDE_WORDS; i++)
                bits[i] = c->shadow->vector[o->number][i];
    }
    wide_set_bits(c, t, operand, bits);
}

void track_fallback(struct context *c, const struct track *t) {
    bool any = fallback_reads(c, t);
    for (unsigned i = 0; i < t->operand_count; i++)
        if (t->operands[i].writes)
            fallback_write(c, t, i, any);
}

// ---- preparing ----

static bool is_between(ZydisRegister reg, ZydisRegister first, ZydisRegister last) {
    return reg >= first && reg <= last;
}

static void describe_register(struct track_operand *o, ZydisRegister reg) {
    o->kind = OPERAND_OTHER;
    if (is_between(reg, ZYDIS_REGISTER_AL, ZYDIS_REGISTER_R15)) {
        ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
        o->kind = OPERAND_GENERAL;
        o->number = whole - ZYDIS_REGISTER_RAX;
        o->shift = is_between(reg, ZYDIS_REGISTER_AH, ZYDIS_REGISTER_BH) ? 8 : 0;
    } else if (is_between(reg, ZYDIS_REGISTER_XMM0, ZYDIS_REGISTER_ZMM31)) {
        o->kind = OPERAND_VECTOR;
        o->number = reg >= ZYDIS_REGISTER_ZMM0   ? reg - ZYDIS_REGISTER_ZMM0
                    : reg >= ZYDIS_REGISTER_YMM0 ? reg - ZYDIS_REGISTER_YMM0
                                                 : reg - ZYDIS_REGISTER_XMM0;
    } else if (is_between(reg, ZYDIS_REGISTER_K0, ZYDIS_REGISTER_K7)) {
        o->kind = OPERAND_MASK;
        o->number = reg - ZYDIS_REGISTER_K0;
    } else if (is_between(reg, ZYDIS_REGISTER_MM0, ZYDIS_REGISTER_MM7)) {
        o->kind = OPERAND_MMX;
        o->number = reg - ZYDIS_REGISTER_MM0;
    } else if (is_between(reg, ZYDIS_REGISTER_ST0, ZYDIS_REGISTER_ST7)) {
        o->kind = OPERAND_X87;
        o->number = reg - ZYDIS_REGISTER_ST0;
    } else if (is_between(reg, ZYDIS_REGISTER_FLAGS, ZYDIS_REGISTER_RFLAGS)) {
        o->kind = OPERAND_FLAGS;
    }
}

static int general_number(ZydisRegister reg) {
    ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    bool is_general = is_between(whole, ZYDIS_REGISTER_RAX, ZYDIS_REGISTER_R15);
    return is_general ? (int)(whole - ZYDIS_REGISTER_RAX) : -1;
}

static void describe_memory(struct track_operand *o, uint64_t pc, const ZydisDecodedInstruction *z,
                            const ZydisDecodedOperand *operand) {
    ZydisRegister base = operand->mem.base, index = operand->mem.index;
    struct tool_access *access = &o->access;
    o->kind = OPERAND_MEMORY;
    access->size = o->size;
    access->base = general_number(base);
    access->index = general_number(index);
    if (is_between(index, ZYDIS_REGISTER_XMM0, ZYDIS_REGISTER_ZMM31)) {
        struct track_operand vector = {0};
        describe_register(&vector, index);
        o->vector_index = vector.number + 1;
    }
    access->scale = operand->mem.scale;
    access->displacement = operand->mem.disp.has_displacement ? operand->mem.disp.value : 0;
    access->narrow = z->address_width == 32;
    if (base == ZYDIS_REGISTER_RIP || base == ZYDIS_REGISTER_EIP)
        access->displacement += pc + z->length;
    access->segment = operand->mem.segment == ZYDIS_REGISTER_FS   ? 1
                      : operand->mem.segment == ZYDIS_REGISTER_GS ? 2
                                                                  : 0;
}

static uint8_t field_of(const ZydisDecodedOperand *operand) {
    switch (operand->encoding) {
    case ZYDIS_OPERAND_ENCODING_MODRM_REG:
        return FIELD_REG;
    case ZYDIS_OPERAND_ENCODING_MODRM_RM:
        return FIELD_RM;
    case ZYDIS_OPERAND_ENCODING_NDSNDD:
        return FIELD_VVVV;
    case ZYDIS_OPERAND_ENCODING_IS4:
        return FIELD_IS4;
    default:
        return FIELD_NONE;
    }
}

static void describe_operand(struct track_operand *o, uint64_t pc, const ZydisDecodedInstruction *z,
                             const ZydisDecodedOperand *operand) {
    o->size = operand->size / 8;
    o->reads = operand->actions & ZYDIS_OPERAND_ACTION_MASK_READ;
    o->writes = operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
    o->is_hidden = operand->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN;
    o->field = field_of(operand);
    switch (operand->type) {
    case ZYDIS_OPERAND_TYPE_REGISTER:
        describe_register(o, operand->reg.value);
        break;
    case ZYDIS_OPERAND_TYPE_MEMORY:
        describe_memory(o, pc, z, operand);
        break;
    case ZYDIS_OPERAND_TYPE_IMMEDIATE:
        o->kind = OPERAND_IMMEDIATE;
        o->immediate = operand->imm.value.u;
        break;
    default:
        o->kind = OPERAND_OTHER;
    }
}

// Writemasks are no operand of their own here.
static void describe(struct track *t, uint64_t pc, const ZydisDecodedInstruction *z,
                     const ZydisDecodedOperand *operands) {
    *t = (struct track){.pc = pc, .mnemonic = z->mnemonic, .length = z->length};
    for (unsigned i = 0; i < z->operand_count && t->operand_count < OPERANDS; i++) {
        if (operands[i].encoding == ZYDIS_OPERAND_ENCODING_MASK) {
            t->mask = operands[i].reg.value - ZYDIS_REGISTER_K0;
            continue;
        }
        describe_operand(&t->operands[t->operand_count++], pc, z, &operands[i]);
    }
    t->is_legacy = z->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY;
    t->is_zeroing = z->avx.mask.mode == ZYDIS_MASK_MODE_ZEROING;
    t->is_broadcast = z->avx.broadcast.mode && !z->avx.broadcast.is_static;
    t->width = t->operands[0].size * 8;
    t->repeats =
        z->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
    unsigned first = z->operand_count_visible >= 3 ? 1 : 0;
    const struct track_operand *a = &t->operands[first], *b = &t->operands[first + 1];
    t->is_same = z->operand_count_visible >= 2 && a->kind == b->kind && a->number == b->number &&
                 a->shift == b->shift && a->size == b->size &&
                 (a->kind == OPERAND_GENERAL || a->kind == OPERAND_VECTOR ||
                  a->kind == OPERAND_MASK || a->kind == OPERAND_MMX);
}

bool track_is_inert(ZydisMnemonic mnemonic) {
    switch (mnemonic) {
    case ZYDIS_MNEMONIC_NOP:
    case ZYDIS_MNEMONIC_ENDBR64:
    case ZYDIS_MNEMONIC_PAUSE:
    case ZYDIS_MNEMONIC_PREFETCH:
    case ZYDIS_MNEMONIC_PREFETCHNTA:
    case ZYDIS_MNEMONIC_PREFETCHT0:
    case ZYDIS_MNEMONIC_PREFETCHT1:
    case ZYDIS_MNEMONIC_PREFETCHT2:
    case ZYDIS_MNEMONIC_PREFETCHW:
    case ZYDIS_MNEMONIC_PREFETCHWT1:
    case ZYDIS_MNEMONIC_CLFLUSH:
    case ZYDIS_MNEMONIC_CLFLUSHOPT:
    case ZYDIS_MNEMONIC_CLWB:
    case ZYDIS_MNEMONIC_CLDEMOTE:
    case ZYDIS_MNEMONIC_LFENCE:
    case ZYDIS_MNEMONIC_SFENCE:
    case ZYDIS_MNEMONIC_MFENCE:
    case ZYDIS_MNEMONIC_CLD:
    case ZYDIS_MNEMONIC_STD:
    case ZYDIS_MNEMONIC_XABORT: // outside of a transaction
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_INT3:
    case ZYDIS_MNEMONIC_HLT:
    case ZYDIS_MNEMONIC_BNDMOV:
    case ZYDIS_MNEMONIC_RDSSPD:
    case ZYDIS_MNEMONIC_RDSSPQ:
        return true;
    default:
        return false;
    }
}

static track_function *choose(struct track *t, const uint8_t *bytes,
                              const ZydisDecodedInstruction *z,
                              const ZydisDecodedOperand *operands) {
    track_function *run = track_branch(t, z);
    if (!run)
        run = track_control(t, z);
    if (!run)
        run = track_integer(t, z);
    if (!run)
        run = track_shift(t, z);
    if (!run)
        run = track_bits(t, z);
    if (!run)
        run = track_string(t, z);
    if (!run)
        run = track_vector(t, bytes, z, operands);
    if (!run)
        run = track_x87(t, z);
    if (!run)
        run = track_state(t, z);
    return run ? run : track_fallback;
}

struct track *track_prepare(uint64_t pc, const uint8_t *bytes, const ZydisDecodedInstruction *z,
                            const ZydisDecodedOperand *operands) {
    if (track_is_inert(z->mnemonic))
        return NULL;
    struct track described;
    describe(&described, pc, z, operands);
    described.run = choose(&described, bytes, z, operands);
    size_t size = offsetof(struct track, operands[described.operand_count]);
    return memcpy(track_memory(size), &described, size);
}

void track_start(void) {
    stub_start();
    vector_rules_start();
    track_state_start();
}

void track_run(const struct track *t) {
    struct context c; // addresses are known one by one; clearing them would cost more than the rest
    c.shadow = tool_thread_state();
    c.values = tool_registers();
    c.origin = 0;
    c.known = 0;
    c.unread = 0;
    c.over_reads = t->pc - track_loader_start < track_loader_end - track_loader_start;
    t->run(&c, t);
}
