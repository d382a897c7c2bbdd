// Walks all opcode maps of 64-bit mode by brute force and keeps one encoding for each entry of the
// decoder's tables: for every combination of instruction definition, operand size, vector length,
// masking, broadcast, rounding, effective prefixes and register or memory operand.
#ifndef DIFFERENTIAL_ENUMERATE_H
#define DIFFERENTIAL_ENUMERATE_H

#include "encode.h"

#include <Zydis/Zydis.h>
#include <stddef.h>

struct base_form {
    struct encoding encoding;
    const void *definition;
    ZydisInstructionAttributes prefixes; // effective LOCK, REP, ... prefixes
};

struct base_forms {
    struct base_form *form;
    size_t count;
    // Encodings the decoder rejects, one for each opcode of each map and prefix.
    struct encoding *rejected;
    size_t rejected_count;
};

extern ZydisDecoder enumerate_decoder;

struct base_forms enumerate(void);

// Decodes only the instruction; false if the decoder rejects it.
bool enumerate_decode(const struct encoding *e, ZydisDecodedInstruction *instruction,
                      ZydisDecoderContext *context);

// The attributes of prefixes that change what an instruction does.
#define EFFECTIVE_PREFIXES                                                                         \
    (ZYDIS_ATTRIB_HAS_LOCK | ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE |                        \
     ZYDIS_ATTRIB_HAS_REPNE | ZYDIS_ATTRIB_HAS_BND | ZYDIS_ATTRIB_HAS_XACQUIRE |                   \
     ZYDIS_ATTRIB_HAS_XRELEASE | ZYDIS_ATTRIB_HAS_NOTRACK)

#endif
