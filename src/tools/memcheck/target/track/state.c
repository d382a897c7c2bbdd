// What tells of the processor: cpuid, xtest, and images of its state (fxsave, xsave and their kin).
//
// Lazy binding saves all vector registers around the dynamic linker, so their bits must survive a
// trip through memory. Components lie where the processor says, or, in compacted images, one after
// the other. A component that was in its initial state when it was saved is not in the image: what
// is restored from it is defined.
#include "tools/memcheck/target/track/stub.h"

enum {
    COMPONENT_X87,
    COMPONENT_SSE,
    COMPONENT_AVX,
    COMPONENT_MASK = 5,
    COMPONENT_ZMM_HIGH,
    COMPONENT_ZMM_LATER,
    COMPONENTS = 32,
};
enum { LEGACY_STATUS = 2, LEGACY_X87 = 32, LEGACY_SSE = 160, HEADER = 512, EXTENDED = 576 };

static struct {
    uint32_t offset, size;
    bool aligned; // to 64 bytes in a compacted image
} components[COMPONENTS];
static bool tells_use; // xgetbv says which components are not in their initial state

static void cpuid(uint32_t leaf, uint32_t subleaf, uint32_t out[4]) {
    __asm__ volatile("cpuid"
                     : "=a"(out[0]), "=b"(out[1]), "=c"(out[2]), "=d"(out[3])
                     : "a"(leaf), "c"(subleaf));
}

void track_state_start(void) {
    uint32_t out[4];
    cpuid(0, 0, out);
    if (out[0] < 0xd)
        return;
    cpuid(0xd, 1, out);
    tells_use = out[0] >> 2 & 1;
    for (unsigned i = COMPONENT_AVX; i < COMPONENTS; i++) {
        cpuid(0xd, i, out);
        components[i].size = out[0];
        components[i].offset = out[1];
        components[i].aligned = out[2] >> 1 & 1;
    }
}

// Leaves of cpuid that have no subleaves: for them ecx says nothing, and programs leave it as it
// is.
static bool is_single_leaf(uint32_t leaf) {
    return leaf <= 3 || leaf == 5 || leaf == 6 || leaf == 9 || leaf == 0xa || leaf == 0x15 ||
           leaf == 0x16 || (leaf >= 0x80000000 && leaf <= 0x8000001c);
}

static void run_cpuid(struct context *c, const struct track *t) {
    (void)t;
    uint32_t bits = general_bits(c, 0);
    if (!bits && !is_single_leaf(c->values[0]))
        bits = general_bits(c, 1);
    for (unsigned i = 0; i < 4; i++) // eax, ecx, edx, ebx
        set_general_bits(c, i, bits ? 0xffffffff : 0);
}

static uint64_t read_control(uint32_t number) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(number));
    return low | (uint64_t)high << 32;
}

// ---- one component ----

// A piece of a register and where it lies in the component.
struct piece {
    uint64_t *bits; // in the shadow registers
    unsigned unit, offset, size;
    bool valid;
};

static struct piece vector_piece(struct context *c, unsigned number, unsigned word, unsigned offset,
                                 unsigned size) {
    unsigned unit = SHADOW_UNIT_VECTOR + number;
    return (struct piece){&c->shadow->vector[number][word], unit, offset, size, true};
}

static struct piece piece_of(struct context *c, unsigned component, unsigned i) {
    struct piece none = {0};
    switch (component) {
    case COMPONENT_SSE:
        return i < 16 ? vector_piece(c, i, 0, LEGACY_SSE + 16 * i, 16) : none;
    case COMPONENT_AVX:
        return i < 16 ? vector_piece(c, i, 2, 16 * i, 16) : none;
    case COMPONENT_ZMM_HIGH:
        return i < 16 ? vector_piece(c, i, 4, 32 * i, 32) : none;
    case COMPONENT_ZMM_LATER:
        return i < 16 ? vector_piece(c, 16 + i, 0, 64 * i, 64) : none;
    case COMPONENT_MASK:
        return i < 8 ? (struct piece){&c->shadow->mask[i], SHADOW_UNIT_MASK + i, 8 * i, 8, true}
                     : none;
    default:
        return none;
    }
}

static void save_component(struct context *c, unsigned component, uint64_t base) {
    static const wide zeros;
    for (unsigned i = 0;; i++) {
        struct piece piece = piece_of(c, component, i);
        if (!piece.valid)
            return;
        bool undefined = c->shadow->undefined[piece.unit];
        c->origin = undefined ? c->shadow->origin[piece.unit] : 0;
        memory_store(c, base + piece.offset, piece.size, undefined ? piece.bits : zeros);
    }
}

static unsigned unit_words(unsigned unit) {
    return unit >= SHADOW_UNIT_VECTOR ? WIDE_WORDS : 1;
}

// The register keeps what other components hold of it.
static void load_piece(struct context *c, struct piece piece, const wide bits) {
    uint64_t *all = piece.unit >= SHADOW_UNIT_VECTOR
                        ? c->shadow->vector[piece.unit - SHADOW_UNIT_VECTOR]
                        : piece.bits;
    unsigned words = unit_words(piece.unit);
    uint64_t any = 0;
    if (!c->shadow->undefined[piece.unit])
        for (unsigned i = 0; i < words; i++)
            all[i] = 0;
    for (unsigned i = 0; i < piece.size / 8; i++)
        piece.bits[i] = bits[i];
    for (unsigned i = 0; i < words; i++)
        any |= all[i];
    if (c->origin || !any)
        set_unit(c, piece.unit, any != 0);
    else
        c->shadow->undefined[piece.unit] = 1;
}

static void load_component(struct context *c, unsigned component, uint64_t base, bool is_there) {
    for (unsigned i = 0;; i++) {
        struct piece piece = piece_of(c, component, i);
        wide bits = {0};
        if (!piece.valid)
            return;
        c->origin = 0;
        if (is_there)
            memory_load(c, base + piece.offset, piece.size, bits);
        load_piece(c, piece, bits);
    }
}

// ---- the legacy part ----

static void save_x87(struct context *c, uint64_t base) {
    bool undefined = c->shadow->undefined[SHADOW_UNIT_X87];
    uint64_t zeros[2] = {0, 0};
    c->origin = undefined ? c->shadow->origin[SHADOW_UNIT_X87] : 0;
    for (unsigned i = 0; i < LEGACY_X87; i += 8)
        memory_store_word(c, base + i, 8, 0);
    memory_store_word(c, base + LEGACY_STATUS, 2, x87_status_bits(c));
    for (unsigned i = 0; i < 8; i++)
        memory_store(c, base + LEGACY_X87 + 16 * i, 16,
                     undefined ? c->shadow->x87[x87_physical(i)] : zeros);
}

static void load_x87(struct context *c, uint64_t base, bool is_there) {
    unsigned top = is_there ? memory_value(base + LEGACY_STATUS, 2) >> 11 & 7 : 0;
    c->origin = 0;
    for (unsigned i = 0; i < 8; i++) {
        uint64_t bits[2] = {0, 0};
        if (is_there)
            memory_load(c, base + LEGACY_X87 + 16 * i, 10, bits);
        x87_set(c, (top + i) & 7, bits[0], bits[1]);
    }
    x87_set_status(c, is_there ? memory_load_word(c, base + LEGACY_STATUS, 2) & 0x4700 : 0);
}

static void run_fxsave(struct context *c, const struct track *t) {
    uint64_t base = operand_address(c, t, 0);
    save_x87(c, base);
    save_component(c, COMPONENT_SSE, base);
}

static void run_fxrstor(struct context *c, const struct track *t) {
    uint64_t base = operand_address(c, t, 0);
    load_x87(c, base, true);
    load_component(c, COMPONENT_SSE, base, true);
}

// ---- xsave ----

static uint64_t wanted_components(struct context *c) {
    uint32_t low = c->values[0], high = c->values[2];
    if ((general_bits(c, 0) | general_bits(c, 2)) & 0xffffffff)
        report_value(c, 8);
    return (low | (uint64_t)high << 32) & read_control(0);
}

// Where a component begins; `all` are those of a compacted image, 0: of a standard one.
static unsigned component_offset(unsigned component, uint64_t all) {
    if (!all)
        return components[component].offset;
    unsigned offset = EXTENDED;
    for (unsigned i = COMPONENT_AVX; i < COMPONENTS; i++) {
        if (!(all >> i & 1))
            continue;
        if (components[i].aligned)
            offset = (offset + 63) & ~63u;
        if (i == component)
            break;
        offset += components[i].size;
    }
    return offset;
}

static bool is_compacting(const struct track *t) {
    return t->mnemonic == ZYDIS_MNEMONIC_XSAVEC || t->mnemonic == ZYDIS_MNEMONIC_XSAVEC64;
}

static void run_xsave(struct context *c, const struct track *t) {
    uint64_t base = operand_address(c, t, 0), wanted = wanted_components(c), written = wanted;
    bool saves_all = t->mnemonic == ZYDIS_MNEMONIC_XSAVE || t->mnemonic == ZYDIS_MNEMONIC_XSAVE64;
    if (!saves_all && tells_use)
        written &= read_control(1);
    for (unsigned i = HEADER; i < (is_compacting(t) ? EXTENDED : HEADER + 8); i += 8)
        memory_store_word(c, base + i, 8, 0);
    if (written >> COMPONENT_X87 & 1)
        save_x87(c, base);
    if (wanted & (1u << COMPONENT_SSE | 1u << COMPONENT_AVX))
        memory_store_word(c, base + 24, 8, 0); // mxcsr
    if (written >> COMPONENT_SSE & 1)
        save_component(c, COMPONENT_SSE, base);
    for (unsigned i = COMPONENT_AVX; i < COMPONENTS; i++) {
        if (!(written >> i & 1))
            continue;
        uint64_t at = base + component_offset(i, is_compacting(t) ? wanted : 0);
        save_component(c, i, at);
        // Other components hold nothing that is followed.
        if (!piece_of(c, i, 0).valid)
            for (unsigned j = 0; j + 8 <= components[i].size; j += 8)
                memory_store_word(c, at + j, 8, 0);
    }
}

static void run_xrstor(struct context *c, const struct track *t) {
    uint64_t base = operand_address(c, t, 0), wanted = wanted_components(c);
    uint64_t there = memory_value(base + HEADER, 8), order = memory_value(base + HEADER + 8, 8);
    uint64_t compacted = order >> 63 ? order << 1 >> 1 : 0;
    if (wanted >> COMPONENT_X87 & 1)
        load_x87(c, base, there >> COMPONENT_X87 & 1);
    if (wanted >> COMPONENT_SSE & 1)
        load_component(c, COMPONENT_SSE, base, there >> COMPONENT_SSE & 1);
    for (unsigned i = COMPONENT_AVX; i < COMPONENTS; i++)
        if (wanted >> i & 1)
            load_component(c, i, base + component_offset(i, compacted), there >> i & 1);
}

// Whether a transaction is under way: the flags say so, whatever they were.
static void run_transaction_test(struct context *c, const struct track *t) {
    set_conditions(c, 0);
}

track_function *track_state(struct track *t, const ZydisDecodedInstruction *z) {
    switch (z->mnemonic) {
    case ZYDIS_MNEMONIC_XTEST:
        return run_transaction_test;
    case ZYDIS_MNEMONIC_CPUID:
        return run_cpuid;
    case ZYDIS_MNEMONIC_FXSAVE:
    case ZYDIS_MNEMONIC_FXSAVE64:
        return run_fxsave;
    case ZYDIS_MNEMONIC_FXRSTOR:
    case ZYDIS_MNEMONIC_FXRSTOR64:
        return run_fxrstor;
    case ZYDIS_MNEMONIC_XSAVE:
    case ZYDIS_MNEMONIC_XSAVE64:
    case ZYDIS_MNEMONIC_XSAVEC:
    case ZYDIS_MNEMONIC_XSAVEC64:
    case ZYDIS_MNEMONIC_XSAVEOPT:
    case ZYDIS_MNEMONIC_XSAVEOPT64:
        return run_xsave;
    case ZYDIS_MNEMONIC_XRSTOR:
    case ZYDIS_MNEMONIC_XRSTOR64:
        return run_xrstor;
    default:
        return NULL;
    }
}
