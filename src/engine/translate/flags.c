// Which flags are still wanted: where none is, added code may overwrite them.
#include "engine/translate/builder.h"

static const uint32_t status_flags = ZYDIS_CPUFLAG_CF | ZYDIS_CPUFLAG_PF | ZYDIS_CPUFLAG_AF |
                                     ZYDIS_CPUFLAG_ZF | ZYDIS_CPUFLAG_SF | ZYDIS_CPUFLAG_OF;

// Whether an instruction may leave the flags that it names as they were.
static bool may_keep_flags(const ZydisDecodedInstruction *z) {
    return z->meta.category == ZYDIS_CATEGORY_SHIFT || z->meta.category == ZYDIS_CATEGORY_ROTATE ||
           z->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
}

bool builder_flags_are_dead(const struct builder *b) {
    uint32_t live = status_flags;
    for (unsigned i = 0; i < b->rest_count; i++) {
        const ZydisDecodedInstruction *z = &b->rest[i].z;
        if (z->cpu_flags->tested & live || z->mnemonic == ZYDIS_MNEMONIC_SYSCALL)
            return false;
        if (!may_keep_flags(z))
            live &= ~(z->cpu_flags->modified | z->cpu_flags->set_0 | z->cpu_flags->set_1 |
                      z->cpu_flags->undefined);
        if (!live)
            return true;
        if (z->meta.branch_type != ZYDIS_BRANCH_TYPE_NONE)
            return false; // it may go elsewhere
    }
    return false;
}
