#include "enumerate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

ZydisDecoder enumerate_decoder;

// What makes two encodings the same form. All fields count as bytes: no padding.
struct key {
    const void *definition;
    uint64_t prefixes;
    uint32_t operand_size, vector_length;
    uint32_t mask_mode, broadcast, rounding, is_register;
};

#define TABLE_SIZE (1u << 17)
static struct key *table;

static bool key_insert(const struct key *key) {
    uint64_t hash = 0;
    const uint64_t *words = (const uint64_t *)key;
    for (size_t i = 0; i < sizeof *key / 8; i++)
        hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15ul, hash ^= hash >> 31;
    for (uint32_t at = hash % TABLE_SIZE;; at = (at + 1) % TABLE_SIZE) {
        if (!table[at].definition) {
            table[at] = *key;
            return true;
        }
        if (!memcmp(&table[at], key, sizeof *key))
            return false;
    }
}

bool enumerate_decode(const struct encoding *e, ZydisDecodedInstruction *instruction,
                      ZydisDecoderContext *context) {
    uint8_t buffer[ENCODE_BUFFER];
    encode(e, buffer, NULL);
    return ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&enumerate_decoder, context, buffer,
                                                      ZYDIS_MAX_INSTRUCTION_LENGTH, instruction));
}

static void add(struct base_forms *all, const struct encoding *e, const void *definition,
                uint64_t prefixes) {
    if (all->count % 4096 == 0)
        all->form = realloc(all->form, (all->count + 4096) * sizeof *all->form);
    all->form[all->count++] = (struct base_form){*e, definition, prefixes};
}

static void reject(struct base_forms *all, const struct encoding *e) {
    if (all->rejected_count % 4096 == 0)
        all->rejected = realloc(all->rejected, (all->rejected_count + 4096) * sizeof *e);
    all->rejected[all->rejected_count++] = *e;
}

// Tries one encoding; keeps it if its form is new. Returns whether the decoder accepts it.
static bool try_encoding(struct base_forms *all, struct encoding *e) {
    static const ZydisInstructionEncoding expected[] = {
        [ENC_LEGACY] = ZYDIS_INSTRUCTION_ENCODING_LEGACY,
        [ENC_3DNOW] = ZYDIS_INSTRUCTION_ENCODING_3DNOW,
        [ENC_VEX3] = ZYDIS_INSTRUCTION_ENCODING_VEX,
        [ENC_XOP] = ZYDIS_INSTRUCTION_ENCODING_XOP,
        [ENC_EVEX] = ZYDIS_INSTRUCTION_ENCODING_EVEX,
    };
    ZydisDecodedInstruction instruction;
    ZydisDecoderContext context;
    if (!enumerate_decode(e, &instruction, &context))
        return false;
    if (instruction.encoding != expected[e->kind])
        return true;
    struct key key = {0};
    key.definition = context.definition;
    key.prefixes = instruction.attributes & EFFECTIVE_PREFIXES;
    key.operand_size = context.eosz_index;
    key.vector_length = instruction.avx.vector_length;
    key.mask_mode = instruction.avx.mask.mode;
    key.broadcast = instruction.avx.broadcast.mode;
    key.rounding = instruction.avx.rounding.mode << 1 | instruction.avx.has_sae;
    bool modrm = instruction.attributes & ZYDIS_ATTRIB_HAS_MODRM;
    key.is_register = modrm ? e->mod == 3 : 2;
    if (!key_insert(&key))
        return true;
    struct encoding kept = *e;
    if (!modrm) {
        kept.no_modrm = true;
        kept.mod = 3;
        kept.rm = kept.opcode & 7;
        kept.reg = 0;
        kept.sib = kept.rip = kept.no_base = false;
    }
    add(all, &kept, context.definition, key.prefixes);
    return true;
}

static void set_modrm(struct encoding *e, unsigned modrm) {
    e->mod = modrm >> 6;
    e->reg = modrm >> 3 & 7;
    e->rm = modrm & 7;
    e->sib = e->mod != 3 && e->rm == 4;
    e->rip = e->mod == 0 && e->rm == 5;
    e->no_base = false;
    e->base = e->sib ? 3 : e->rm;
    e->index = 1;
}

static bool walk_modrm(struct base_forms *all, struct encoding *e) {
    bool any = false;
    for (unsigned modrm = 0; modrm < 256; modrm++) {
        set_modrm(e, modrm);
        any |= try_encoding(all, e);
    }
    return any;
}

// Bytes of map 0 that are prefixes or escapes, not opcodes.
static bool is_escape(unsigned opcode) {
    static const uint8_t escapes[] = {0x0f, 0x26, 0x2e, 0x36, 0x3e, 0x62, 0x64, 0x65,
                                      0x66, 0x67, 0xc4, 0xc5, 0xf0, 0xf2, 0xf3};
    return (opcode & 0xf0) == 0x40 || memchr(escapes, opcode, sizeof escapes);
}

static bool is_map_escape(unsigned opcode) {
    return opcode == 0x0f || opcode == 0x38 || opcode == 0x3a;
}

static void walk_legacy(struct base_forms *all, const struct encoding *plain) {
    static const char *const prefixes[] = {"",         "\x66", "\xf2",     "\xf3",     "\x66\xf2",
                                           "\x66\xf3", "\xf0", "\x66\xf0", "\xf0\xf2", "\xf0\xf3"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        for (unsigned w = 0; w < 2; w++)
            for (unsigned map = 0; map < 4; map++)
                for (unsigned opcode = 0; opcode < 256; opcode++) {
                    if (map == 0 && is_escape(opcode))
                        continue;
                    if (map == 1 && is_map_escape(opcode))
                        continue;
                    struct encoding e = *plain;
                    e.kind = ENC_LEGACY;
                    e.prefix_count = strlen(prefixes[i]);
                    memcpy(e.prefixes, prefixes[i], e.prefix_count);
                    e.w = w;
                    e.map = map;
                    e.opcode = opcode;
                    if (!walk_modrm(all, &e) && w == 0)
                        reject(all, &e);
                }
    for (unsigned opcode = 0; opcode < 256; opcode++) {
        struct encoding e = *plain;
        e.kind = ENC_3DNOW;
        e.opcode = opcode;
        if (!walk_modrm(all, &e) && opcode % 16 == 0)
            reject(all, &e);
    }
}

static void walk_vex(struct base_forms *all, const struct encoding *plain, int kind, int map_first,
                     int map_last) {
    for (int map = map_first; map <= map_last; map++)
        for (unsigned bits = 0; bits < 16; bits++)
            for (unsigned opcode = 0; opcode < 256; opcode++) {
                struct encoding e = *plain;
                e.kind = kind;
                e.map = map;
                e.w = bits & 1;
                e.length = bits >> 1 & 1;
                e.pp = bits >> 2;
                e.opcode = opcode;
                if (!walk_modrm(all, &e) && opcode % 8 == bits % 8)
                    reject(all, &e);
            }
}

// Masked, zeroing, broadcast or rounding variants exist only of opcodes that exist at all.
static bool walk_evex_opcode(struct base_forms *all, struct encoding *e) {
    static const uint8_t modrms[] = {0x00, 0x04, 0xc0};
    bool any = false;
    for (unsigned bits = 0; bits < 32; bits++) {
        e->length = bits & 3;
        e->broadcast = bits >> 2 & 1;
        e->mask = bits >> 3 & 1 ? 2 : 0;
        e->zeroing = bits >> 4;
        for (unsigned reg = 0; reg < 8; reg++)
            for (unsigned i = 0; i < sizeof modrms; i++) {
                set_modrm(e, modrms[i] | reg << 3);
                any |= try_encoding(all, e);
            }
    }
    return any;
}

static void walk_evex(struct base_forms *all, const struct encoding *plain) {
    for (unsigned map = 1; map < 7; map++)
        for (unsigned bits = 0; bits < 8; bits++)
            for (unsigned opcode = 0; opcode < 256; opcode++) {
                struct encoding e = *plain;
                e.kind = ENC_EVEX;
                e.map = map;
                e.w = bits & 1;
                e.pp = bits >> 1;
                e.opcode = opcode;
                if (!walk_evex_opcode(all, &e) && opcode % 8 == bits) {
                    e.length = e.broadcast = e.mask = e.zeroing = 0;
                    reject(all, &e);
                }
            }
}

struct base_forms enumerate(void) {
    struct base_forms all = {0};
    struct encoding plain = {.tail = {0x11, 0x05, 0x03, 0x02, 0x07}};
    table = calloc(TABLE_SIZE, sizeof *table);
    ZydisDecoderInit(&enumerate_decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    walk_legacy(&all, &plain);
    walk_vex(&all, &plain, ENC_VEX3, 1, 3);
    walk_vex(&all, &plain, ENC_XOP, 8, 10);
    walk_evex(&all, &plain);
    free(table);
    return all;
}
