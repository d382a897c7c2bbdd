// Which flags are still wanted: where none is, added code may overwrite them.
//
// Code behind a direct jump is looked at, in programs and libraries: what a program makes at run time
// may change. Calls, returns and indirect jumps count as readers: Go and the code in node hand flags
// over by them.
#include "engine/memory/target.h"
#include "engine/translate/builder.h"

static const uint32_t status_flags = ZYDIS_CPUFLAG_CF | ZYDIS_CPUFLAG_PF | ZYDIS_CPUFLAG_AF |
                                     ZYDIS_CPUFLAG_ZF | ZYDIS_CPUFLAG_SF | ZYDIS_CPUFLAG_OF;

// Whether an instruction may leave the flags that it names as they were.
static bool may_keep_flags(const ZydisDecodedInstruction *z) {
    return z->meta.category == ZYDIS_CATEGORY_SHIFT || z->meta.category == ZYDIS_CATEGORY_ROTATE ||
           z->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
}

// What becomes of the flags in `live`: true if all are overwritten, false if one is read or it is not
// known; otherwise *live is what is left.
enum outcome { FLAGS_DEAD, FLAGS_LIVE, FLAGS_OPEN };

static enum outcome step(const ZydisDecodedInstruction *z, uint32_t *live) {
    if (z->cpu_flags->tested & *live || z->mnemonic == ZYDIS_MNEMONIC_SYSCALL)
        return FLAGS_LIVE;
    if (!may_keep_flags(z))
        *live &= ~(z->cpu_flags->modified | z->cpu_flags->set_0 | z->cpu_flags->set_1 |
                   z->cpu_flags->undefined);
    return *live ? FLAGS_OPEN : FLAGS_DEAD;
}

static bool is_direct(const ZydisDecodedInstruction *z) {
    return z->raw.imm[0].is_relative;
}

// Whether code at pc overwrites the flags soon.
static bool dead_at(uint64_t pc, uint32_t live) {
    enum { INSTRUCTIONS = 6, BYTES = 64 };
    uint8_t bytes[BYTES];
    struct insn insn;
    if (target_read(bytes, pc, sizeof bytes))
        return false;
    for (unsigned i = 0, at = 0; i < INSTRUCTIONS && at + INSN_BYTES <= BYTES; i++) {
        if (insn_decode(&insn, pc + at, bytes + at, INSN_BYTES) != INSN_VALID)
            return false;
        enum outcome outcome = step(&insn.z, &live);
        if (outcome != FLAGS_OPEN)
            return outcome == FLAGS_DEAD;
        if (insn.z.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE)
            return false;
        at += insn.z.length;
    }
    return false;
}

bool builder_flags_are_dead(const struct builder *b) {
    uint32_t live = status_flags;
    for (unsigned i = 0; i < b->rest_count; i++) {
        const struct insn *insn = &b->rest[i];
        const ZydisDecodedInstruction *z = &insn->z;
        enum outcome outcome = step(z, &live);
        if (outcome != FLAGS_OPEN)
            return outcome == FLAGS_DEAD;
        if (z->meta.branch_type == ZYDIS_BRANCH_TYPE_NONE)
            continue;
        if (!b->is_module)
            return false;
        if (z->meta.category == ZYDIS_CATEGORY_CALL || !is_direct(z))
            return false;
        if (!dead_at(insn_next(insn) + z->raw.imm[0].value.s, live))
            return false;
        if (z->meta.category != ZYDIS_CATEGORY_COND_BR)
            return true;
    }
    return false;
}
