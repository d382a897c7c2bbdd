// What is inserted before each access: whether its cells say that the segment at hand has made such
// an access already. If not, races_access is called behind the block.
//
// Cells lie at the distance that GS holds, one byte for each byte of memory, so an aligned operand
// of 4 or 8 bytes is compared by one instruction. An operand that is not aligned sees parts of
// cells, which are equal to the pattern in no case: the numbers of segments are chosen so
// (clocks.c).
#include <string.h>

#include "engine/tool.h"
#include "tools/races/target/cells.h"

enum {
    SITES = INSERT_INSTRUCTIONS * TOOL_ACCESSES,
    SITE_JUMPS = 8,
    INLINE_MOST = 32, // bytes that are compared in place
    RANGES = 256,
};

// A call behind the block. The engine's lock of code guards all of them.
struct site {
    struct asm_jump jumps[SITE_JUMPS];
    unsigned jump_count;
    bool has_flags, has_rdx; // spilled when it jumps, besides rcx
    bool reads;              // and does not write
    uint8_t *back;
    uint64_t pc;
    struct described *access;
};
static struct site sites[SITES];
static unsigned site_count;

// Lasts as long as the block.
struct described {
    struct tool_access access;
    uint8_t kind;
    bool repeats;
};

uint64_t races_syscall, races_libc_start, races_libc_end;

// ---- code that is not looked at ----------------------------------------------------------------

enum code_kind { CODE_OWN, CODE_LIBC, CODE_QUIET };

static struct range {
    uint64_t start, end;
    enum code_kind kind;
} ranges[RANGES];
static unsigned range_count;

void races_insert_module(uint64_t start, uint64_t end, const char *path) {
    static const char *const libc[] = {"libc.so",     "libc-",    "libpthread.",
                                       "libpthread-", "ld-musl-", "libc.musl-"};
    static const char *const quiet[] = {"ld-", "libm.so", "libm-", "libdl.", "librt."};
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    enum code_kind kind = CODE_OWN;
    for (unsigned i = 0; i < sizeof quiet / sizeof *quiet; i++)
        if (strncmp(file, quiet[i], strlen(quiet[i])) == 0)
            kind = CODE_QUIET;
    for (unsigned i = 0; i < sizeof libc / sizeof *libc; i++)
        if (strncmp(file, libc[i], strlen(libc[i])) == 0)
            kind = CODE_LIBC;
    if (kind == CODE_LIBC) {
        races_libc_start = start;
        races_libc_end = end;
    }
    tool_lock_code();
    if (kind != CODE_OWN && range_count < RANGES)
        ranges[range_count++] = (struct range){start, end, kind};
    tool_unlock_code();
}

void races_insert_unmapped(uint64_t start, uint64_t end) {
    tool_lock_code();
    for (unsigned i = 0; i < range_count;) {
        if (ranges[i].start >= start && ranges[i].end <= end)
            ranges[i] = ranges[--range_count];
        else
            i++;
    }
    tool_unlock_code();
}

static enum code_kind code_at(struct tool_block *block) {
    uint64_t pc = insert_block_pc(block);
    unsigned rest;
    if (insn_is_vdso(insert_rest(block, &rest)))
        return CODE_QUIET; // it reads pages of the kernel's, which have no cells
    for (unsigned i = 0; i < range_count; i++)
        if (pc >= ranges[i].start && pc < ranges[i].end)
            return ranges[i].kind;
    return insert_is_generated(block) ? CODE_QUIET : CODE_OWN;
}

bool races_is_libc(uint64_t pc) {
    enum { SYSCALL_SIZE = 64 };
    bool found = false;
    if (pc - races_syscall < SYSCALL_SIZE)
        return false;
    tool_lock_code();
    for (unsigned i = 0; i < range_count && !found; i++)
        found = ranges[i].kind == CODE_LIBC && pc >= ranges[i].start && pc < ranges[i].end;
    tool_unlock_code();
    return found;
}

// ---- returns of the C library's functions ------------------------------------------------------

static void insert_return(struct tool_block *block) {
    struct assembler *a = insert_assembler(block);
    asm_spill(a, RCX);
    asm_load_field32(a, RCX, insert_word(1));
    struct asm_jump none = asm_jrcxz(a);
    asm_unspill(a, RCX);
    insert_saved_call(block, races_returned, NULL);
    asm_land(a, none);
    asm_unspill(a, RCX);
}

// A function that was called by a jump returns for the one that jumped.
void races_replaced(struct tool_block *block) {
    insert_return(block);
}

// ---- comparing ---------------------------------------------------------------------------------

#define PATTERN(field) (INSERT_THREAD_STATE + offsetof(struct races_thread, field))

static void call_access(void *argument) {
    const struct described *described = argument;
    uint64_t address = tool_access_address(&described->access), size = described->access.size;
    if (described->repeats) {
        size *= tool_register(RCX);
        if (tool_direction() < 0)
            address -= size - described->access.size;
    }
    races_access(address, size, described->kind);
}

static void jump_away(struct assembler *a, struct site *site, enum asm_condition condition) {
    site->jumps[site->jump_count++] = asm_jcc_forward(a, condition);
}

static struct asm_memory operand_of(const struct tool_access *access, unsigned offset) {
    static const uint8_t bits[] = {[1] = 0, [2] = 1, [4] = 2, [8] = 3};
    return asm_indexed(access->base, access->index, access->index < 0 ? 0 : bits[access->scale],
                       access->displacement + offset);
}

// Pieces of 4 or 8 bytes: rcx = the cells, then compared.
static void compare_words(struct tool_block *block, struct site *site,
                          const struct tool_access *access, bool writes, bool keeps_flags) {
    struct assembler *a = insert_assembler(block);
    for (unsigned at = 0, step; at < access->size; at += step) {
        step = access->size - at >= 8 ? 8 : 4;
        if (at) {
            if (keeps_flags)
                asm_unspill_flags(a);
            asm_unspill(a, RCX);
        }
        struct asm_memory cells = asm_in_segment(ASM_GS, operand_of(access, at));
        asm_mov_reg_mem(a, step * 8, RCX, cells);
        if (keeps_flags)
            asm_spill_flags(a);
        if (!writes)
            asm_and_reg_mem(a, step * 8, RCX, asm_task(PATTERN(read_mask)));
        asm_cmp_reg_mem(a, step * 8, RCX,
                        asm_task(writes ? PATTERN(write_pattern) : PATTERN(read_pattern)));
        jump_away(a, site, ASM_NOT_EQUAL);
    }
}

// One or two bytes: their bits in the cell.
static void compare_bytes(struct tool_block *block, struct site *site,
                          const struct tool_access *access, bool writes, bool keeps_flags) {
    struct assembler *a = insert_assembler(block);
    unsigned wanted = access->size == 1 ? 1 : 3;
    asm_lea(a, 64, RCX, operand_of(access, 0));
    asm_spill(a, RDX);
    if (keeps_flags)
        asm_spill_flags(a);
    asm_mov_reg_reg(a, 64, RDX, RCX);
    asm_and_reg_imm(a, 64, RDX, -CELL_BYTES);
    asm_mov_reg_mem(a, 32, RDX, asm_in_segment(ASM_GS, asm_at(RDX, 0)));
    asm_xor_reg_mem(a, 32, RDX, asm_task(PATTERN(byte_pattern)));
    asm_cmp_reg_imm(a, 32, RDX, CELL_BITS);
    jump_away(a, site, ASM_ABOVE);
    asm_and_reg_imm(a, 32, RCX, CELL_BYTES - 1);
    asm_shr_reg_cl(a, 32, RDX);
    asm_and_reg_imm(a, 32, RDX, (int32_t)(writes ? wanted << CELL_WRITES : wanted));
    asm_cmp_reg_imm(a, 32, RDX, (int32_t)(writes ? wanted << CELL_WRITES : wanted));
    jump_away(a, site, ASM_NOT_EQUAL);
}

static bool is_compared_in_place(const struct tool_access *access) {
    bool has_size = access->size <= 2 || (access->size % 4 == 0 && access->size <= INLINE_MOST);
    bool is_near = access->base >= 0 || access->index >= 0 ||
                   (access->displacement >= 0 && access->displacement < INT32_MAX - INLINE_MOST);
    return has_size && is_near && access->size && !access->narrow && access->scale <= 8;
}

static void insert_access(struct tool_block *block, const struct tool_insn *insn,
                          const struct tool_access *access, unsigned kind) {
    struct assembler *a = insert_assembler(block);
    struct described *described = tool_allocate(sizeof *described);
    *described = (struct described){*access, (uint8_t)kind, insn->repeats};
    if (site_count == SITES || insn->repeats || kind & ACCESS_ATOMIC ||
        !is_compared_in_place(access)) {
        insert_saved_call(block, call_access, described);
        return;
    }
    struct site *site = &sites[site_count++];
    bool keeps_flags = !insert_flags_are_dead(block), writes = kind & ACCESS_WRITE;
    *site = (struct site){.has_flags = keeps_flags,
                          .has_rdx = access->size <= 2,
                          .reads = !writes,
                          .pc = insn->pc,
                          .access = described};
    asm_spill(a, RCX);
    if (access->size <= 2)
        compare_bytes(block, site, access, writes, keeps_flags);
    else
        compare_words(block, site, access, writes, keeps_flags);
    if (keeps_flags)
        asm_unspill_flags(a);
    if (site->has_rdx)
        asm_unspill(a, RDX);
    asm_unspill(a, RCX);
    site->back = a->at;
}

static bool may_be_node(const struct site *site) {
    const struct tool_access *access = &site->access->access;
    return site->reads && (access->size == 1 || access->size == 4 || access->size == 8) &&
           !(site->has_flags && (access->base == RAX || access->index == RAX));
}

// Whether the cells are one node by which the segment at hand has read them: goes back then. The
// target's registers are in their places but for rcx, which is spilled, and rax, if flags are.
static void look_at_node(struct assembler *a, const struct site *site) {
    const struct tool_access *access = &site->access->access;
    struct asm_memory hit = asm_task(PATTERN(hits));
    struct asm_jump differ = {0};
    hit.index = RDX;
    hit.scale = 2;
    hit.form = ASM_LONG;
    asm_unspill(a, RCX);
    if (access->size == 1) {
        asm_unspill(a, RDX);
        asm_lea(a, 64, RCX, operand_of(access, 0));
        asm_and_reg_imm(a, 64, RCX, -CELL_BYTES);
        asm_mov_reg_mem(a, 32, RCX, asm_in_segment(ASM_GS, asm_at(RCX, 0)));
    } else {
        asm_spill(a, RDX);
        asm_mov_reg_mem(a, access->size * 8, RCX, asm_in_segment(ASM_GS, operand_of(access, 0)));
    }
    if (access->size == 8) {
        asm_mov_reg_reg(a, 64, RDX, RCX);
        asm_shr_reg_imm(a, 64, RDX, 32);
        asm_cmp_reg_reg(a, 32, RDX, RCX);
        differ = asm_jcc_short(a, ASM_NOT_EQUAL);
    }
    asm_mov_reg_reg(a, 32, RDX, RCX);
    asm_and_reg_imm(a, 32, RDX, RACES_HITS - 1);
    asm_cmp_reg_mem(a, 32, RCX, hit);
    struct asm_jump other = asm_jcc_short(a, ASM_NOT_EQUAL);
    asm_unspill(a, RDX);
    asm_unspill(a, RCX);
    if (site->has_flags)
        asm_unspill_flags(a);
    asm_jmp(a, (uint64_t)site->back);
    if (access->size == 8)
        asm_land(a, differ);
    asm_land(a, other);
    if (access->size != 1)
        asm_unspill(a, RDX);
}

void races_block_end(struct tool_block *block) {
    struct assembler *a = insert_assembler(block);
    for (unsigned i = 0; i < site_count; i++) {
        const struct site *site = &sites[i];
        for (unsigned jump = 0; jump < site->jump_count; jump++)
            asm_land(a, site->jumps[jump]);
        insert_for_pc(block, site->pc);
        insert_state(block, INSERT_WITHIN, 0);
        if (may_be_node(site))
            look_at_node(a, site);
        if (site->has_flags)
            asm_unspill_flags(a);
        if (site->has_rdx)
            asm_unspill(a, RDX);
        asm_unspill(a, RCX);
        insert_saved_call(block, call_access, site->access);
        asm_jmp(a, (uint64_t)site->back);
    }
    site_count = 0;
}

// ---- instructions ------------------------------------------------------------------------------

// lock-prefixed ones, and xchg, which needs no prefix.
static bool is_atomic(const struct tool_insn *insn) {
    enum { LOCK = 0xf0, XCHG_BYTE = 0x86, XCHG = 0x87 };
    unsigned at = 0;
    for (; at < insn->size; at++) {
        uint8_t byte = insn->bytes[at];
        if (byte == LOCK)
            return true;
        if (!asm_is_address_prefix(byte) && byte != 0x66 && byte != 0xf2 && byte != 0xf3 &&
            !asm_is_rex(byte))
            break;
    }
    return at < insn->size && (insn->bytes[at] == XCHG_BYTE || insn->bytes[at] == XCHG);
}

// A thread's own stack by its stack pointer, and its thread-local memory by its segment: what is
// not reached by these in other threads is not looked at in its own either.
static bool is_left_out(const struct tool_access *access) {
    return access->segment || access->scattered || (access->base == RSP && access->index < 0) ||
           (!access->reads && !access->writes);
}

void races_instruction(struct tool_block *block, const struct tool_insn *insn) {
    enum code_kind code = code_at(block);
    if (code == CODE_LIBC && insn->flow == TOOL_RETURN)
        insert_return(block);
    if (code != CODE_OWN)
        return;
    for (unsigned i = 0; i < insn->access_count; i++) {
        const struct tool_access *access = &insn->accesses[i];
        unsigned kind = (access->reads ? ACCESS_READ : 0) | (access->writes ? ACCESS_WRITE : 0);
        if (access->size > ACCESS_MOST || (is_left_out(access) && !is_atomic(insn)))
            continue;
        insert_access(block, insn, access, is_atomic(insn) ? kind | ACCESS_ATOMIC : kind);
    }
}
