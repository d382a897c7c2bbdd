// Which flags are still wanted: where none is, added code may overwrite them.
//
// Within the block that is exact. Beyond it, in programs and libraries (what a program makes at run
// time may change), the next instructions are looked at, both ways of a branch. Then there are
// three ways into the unknown:
//
// - Calls. No convention hands flags to a function: a call through the procedure linkage table may
//   go by way of the dynamic linker, which overwrites them. The functions that direct calls lead to
//   are looked at all the same.
// - Returns. By the convention of C flags mean nothing after a call, but code in assembly and Go do
//   hand them over. Whoever makes use of that has an instruction behind a call that reads flags. So
//   these places are looked at when a call is translated, and where one reads flags, those of
//   returns are kept in that mapping from then on (in all, if the call is not in a program or
//   library). At that time the call has not been made yet.
// - Indirect jumps. Anything may be there (the code in node does hand flags over): all are wanted.
//   `jmp [rip + x]` is a call in disguise.
//
// What popf puts back is wanted until it is overwritten.
#include "engine/translate/builder.h"

#include "engine/memory/target.h"

static const uint32_t status_flags = ZYDIS_CPUFLAG_CF | ZYDIS_CPUFLAG_PF | ZYDIS_CPUFLAG_AF |
                                     ZYDIS_CPUFLAG_ZF | ZYDIS_CPUFLAG_SF | ZYDIS_CPUFLAG_OF;

// ---- returns -----------------------------------------------------------------------------------

enum { MAPPINGS = 16 };

static uint64_t returning[MAPPINGS]; // first addresses of mappings whose returns hand over flags
static unsigned returning_count;
static bool all_return;

static bool returns_flags(uint64_t mapping) {
    if (all_return)
        return true;
    for (unsigned i = 0; i < returning_count; i++)
        if (returning[i] == mapping)
            return true;
    return false;
}

// ---- instructions ------------------------------------------------------------------------------

// A shift or rotation by no place leaves all flags as they were.
static bool may_not_shift(const ZydisDecodedInstruction *z) {
    bool by_cl = z->opcode_map == ZYDIS_OPCODE_MAP_0F ? z->opcode == 0xa5 || z->opcode == 0xad
                                                      : z->opcode == 0xd2 || z->opcode == 0xd3;
    uint64_t mask = z->operand_width == 64 ? 63 : 31;
    return by_cl || (z->raw.imm[0].size && !(z->raw.imm[0].value.u & mask));
}

// Whether an instruction may leave the flags that it names as they were.
static bool may_keep_flags(const ZydisDecodedInstruction *z) {
    if (z->meta.category == ZYDIS_CATEGORY_SHIFT || z->meta.category == ZYDIS_CATEGORY_ROTATE)
        return may_not_shift(z);
    return z->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
}

static uint32_t overwritten(const ZydisDecodedInstruction *z) {
    if (may_keep_flags(z))
        return 0;
    return z->cpu_flags->modified | z->cpu_flags->set_0 | z->cpu_flags->set_1 |
           z->cpu_flags->undefined;
}

// Of a jump or call whose destination it holds itself.
static bool is_direct(const ZydisDecodedInstruction *z) {
    return z->raw.imm[0].is_relative;
}

static uint64_t destination(const struct insn *insn) {
    return insn_next(insn) + insn->z.raw.imm[0].value.s;
}

static bool is_rip_jump(const ZydisDecodedInstruction *z) {
    return z->meta.category == ZYDIS_CATEGORY_UNCOND_BR && z->raw.modrm.offset &&
           z->raw.modrm.mod == 0 && z->raw.modrm.rm == 5;
}

// ---- beyond the block --------------------------------------------------------------------------

struct look {
    unsigned left; // instructions to be looked at yet
    uint64_t mapping;
    bool reads; // one that reads some flag has been met
};

enum { LOOK_AT = 24, LOOK_BYTES = 64 };

static uint32_t after_branch(struct look *, const struct insn *, uint32_t flags);

// Of the flags, those that may be read by code from pc on before they are overwritten.
static uint32_t wanted_at(struct look *look, uint64_t pc, uint32_t flags) {
    uint8_t bytes[LOOK_BYTES];
    struct insn insn;
    if (!look->left || target_read(bytes, pc, sizeof bytes))
        return flags;
    for (unsigned at = 0; look->left && at + INSN_BYTES <= LOOK_BYTES; at += insn.z.length) {
        look->left--;
        if (insn_decode(&insn, pc + at, bytes + at, INSN_BYTES) != INSN_VALID)
            return flags;
        if (insn.z.cpu_flags->tested & flags) {
            look->reads = true;
            return flags;
        }
        if (insn.z.mnemonic == ZYDIS_MNEMONIC_SYSCALL)
            return flags;
        flags &= ~overwritten(&insn.z);
        if (!flags)
            return 0;
        if (insn.z.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE)
            return after_branch(look, &insn, flags);
    }
    return flags;
}

static uint32_t after_branch(struct look *look, const struct insn *insn, uint32_t flags) {
    const ZydisDecodedInstruction *z = &insn->z;
    switch (z->meta.category) {
    case ZYDIS_CATEGORY_RET:
        if (!returns_flags(look->mapping))
            return 0;
        look->reads = true; // behind the call
        return flags;
    case ZYDIS_CATEGORY_CALL: {
        struct look there = {.left = look->left, .mapping = look->mapping};
        if (is_direct(z))
            wanted_at(&there, destination(insn), flags);
        return there.reads ? flags : 0;
    }
    case ZYDIS_CATEGORY_UNCOND_BR:
        if (is_rip_jump(z))
            return 0;
        return is_direct(z) ? wanted_at(look, destination(insn), flags) : flags;
    case ZYDIS_CATEGORY_COND_BR: {
        uint32_t wanted = wanted_at(look, destination(insn), flags);
        return wanted == flags ? flags : wanted | wanted_at(look, insn_next(insn), flags);
    }
    default:
        return flags;
    }
}

bool flags_look_behind_call(const struct insn *insn, uint64_t mapping, bool is_module) {
    if (insn->z.meta.category != ZYDIS_CATEGORY_CALL || returns_flags(mapping))
        return false;
    struct look look = {.left = LOOK_AT, .mapping = mapping};
    wanted_at(&look, insn_next(insn), status_flags);
    if (!look.reads)
        return false;
    if (is_module && returning_count < MAPPINGS)
        returning[returning_count++] = mapping;
    else
        all_return = true;
    return true;
}

// ---- the block ---------------------------------------------------------------------------------

static uint32_t wanted_after(const struct builder *b, const struct insn *insn) {
    struct look look = {.left = LOOK_AT, .mapping = b->mapping};
    if (!b->is_module)
        return status_flags;
    if (insn->z.meta.category ==
        ZYDIS_CATEGORY_COND_BR) // the other way is in the block, or follows
        return wanted_at(&look, destination(insn), status_flags);
    if (insn->z.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE)
        return after_branch(&look, insn, status_flags);
    return 0;
}

enum { OPCODE_POPF = 0x9d, OPCODE_SAHF = 0x9e };

static bool restores_flags(const ZydisDecodedInstruction *z) {
    return z->mnemonic == ZYDIS_MNEMONIC_POPF || z->mnemonic == ZYDIS_MNEMONIC_POPFQ ||
           z->mnemonic == ZYDIS_MNEMONIC_SAHF;
}

// Who puts flags back wants them, wherever the code goes then: a call that a signal handler has put
// between two instructions (Go's preemption) saves all there is, and returns.
static void keep_restored(struct builder *b) {
    // popf may end a block: then the next one begins behind it.
    uint8_t before;
    uint32_t restored = 0;
    if (target_read(&before, b->start - 1, 1) == 0 &&
        (before == OPCODE_POPF || before == OPCODE_SAHF))
        restored = status_flags;
    for (unsigned i = 0; i < b->all_count; i++) {
        const ZydisDecodedInstruction *z = &b->all[i].z;
        b->wanted_flags[i] |= restored;
        restored = restores_flags(z) ? status_flags : restored & ~overwritten(z);
    }
}

static void find_wanted(struct builder *b) {
    struct look look = {.left = LOOK_AT, .mapping = b->mapping};
    const struct insn *last = &b->all[b->all_count - 1];
    bool falls_out = last->z.meta.branch_type == ZYDIS_BRANCH_TYPE_NONE ||
                     last->z.meta.category == ZYDIS_CATEGORY_COND_BR;
    uint32_t wanted = !falls_out     ? 0
                      : b->is_module ? wanted_at(&look, insn_next(last), status_flags)
                                     : status_flags;
    for (unsigned i = b->all_count; i-- > 0;) {
        const struct insn *insn = &b->all[i];
        if (insn->z.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE)
            wanted |= wanted_after(b, insn);
        if (insn->z.mnemonic == ZYDIS_MNEMONIC_SYSCALL)
            wanted = status_flags;
        wanted = (wanted & ~overwritten(&insn->z)) | (insn->z.cpu_flags->tested & status_flags);
        b->wanted_flags[i] = wanted;
    }
    keep_restored(b);
    b->has_wanted_flags = true;
}

// Before the instruction at hand, or before one of those behind it.
static bool are_dead(struct builder *b, unsigned ahead) {
    if (b->rest_count <= ahead)
        return false;
    if (!b->has_wanted_flags)
        find_wanted(b);
    return !b->wanted_flags[b->rest - b->all + ahead];
}

bool builder_flags_are_dead(struct builder *b) {
    return are_dead(b, 0);
}

bool builder_flags_are_dead_behind(struct builder *b) {
    return are_dead(b, 1);
}
