#include "compose.h"

#include "layout.h"

#include <stdlib.h>
#include <string.h>

// ---- Branches -----------------------------------------------------------------------------------
// Before the branch stands an exit for backward jumps, behind it the exit of the branch not taken
// and the exit for forward jumps; the longest reach is to a landing pad or out of all code.

static void add_branch(const struct draft *branch, unsigned imm_at, unsigned imm_bytes,
                       int direction) {
    struct draft d = {.form = branch->form, .group = branch->group};
    unsigned length = branch->form.length;
    draft_exit(&d, 1);
    d.entry = d.code_length;
    unsigned exit_length = d.code_length;
    draft_bytes(&d, branch->code, length);
    int32_t relative = direction < 0 ? -(int)(length + exit_length) : (int)exit_length;
    memcpy(d.code + d.entry + imm_at, &relative, imm_bytes);
    draft_exit(&d, 0);
    draft_exit(&d, 2);
    draft_add(&d);
}

static void add_far_reach(const struct draft *branch, unsigned imm_at, enum group group,
                          uint32_t target) {
    struct draft d = {.form = branch->form, .group = group};
    draft_bytes(&d, branch->code, branch->form.length);
    draft_patch(&d, imm_at, branch->form.length, target);
    draft_exit(&d, 0);
    draft_add(&d);
}

void compose_relative(const struct draft *branch, const ZydisDecodedInstruction *instruction) {
    unsigned at = instruction->raw.imm[0].offset, bytes = instruction->raw.imm[0].size / 8;
    add_branch(branch, at, bytes, 1);
    add_branch(branch, at, bytes, -1);
    if (bytes != 4)
        return;
    add_far_reach(branch, at, branch->group, AREA_CODE + 2 * PAD_SIZE);
    add_far_reach(branch, at, GROUP_WILD, AREA_DATA + DATA_UNMAPPED + 0x100);
    add_far_reach(branch, at, GROUP_WILD, AREA_DATA + DATA_MIDDLE);
}

// ---- Sequences ----------------------------------------------------------------------------------

struct piece {
    uint8_t code[FORM_BYTES_MAX], length;
    bool patched, x87;
    struct draft_patch patch;
    uint32_t limits;
    struct form_mem mem;
};

static struct piece *pieces;
static size_t piece_count;

// They would end most sequences with #UD at once.
bool compose_is_rare(const ZydisDecodedInstruction *instruction) {
    const char *name = ZydisISASetGetString(instruction->meta.isa_set);
    static const char *const rare[] = {"FP16", "ER_",  "PF_", "4FMAPS", "4VNNIW", "VP2INTERSECT",
                                       "XOP",  "FMA4", "TBM", "AMX",    "3DNOW",  "MPX",
                                       "AVX_", "KL",   "CET", "RTM",    "MOVDIR", "LWP"};
    for (size_t i = 0; i < sizeof rare / sizeof *rare; i++)
        if (strstr(name, rare[i]))
            return true;
    return false;
}

void compose_remember(const struct draft *single, const ZydisDecodedInstruction *instruction) {
    if (compose_is_rare(instruction) || single->group == GROUP_XOP)
        return;
    // An operand that reaches into an unmapped page always faults.
    if (single->patch_count && single->patches[0].target >= AREA_DATA + DATA_READONLY)
        return;
    if (piece_count % 4096 == 0)
        pieces = realloc(pieces, (piece_count + 4096) * sizeof *pieces);
    struct piece *piece = &pieces[piece_count++];
    *piece = (struct piece){.length = single->code_length,
                            .patched = single->patch_count,
                            .x87 = single->form.x87,
                            .patch = single->patches[0],
                            .limits = single->form.limits,
                            .mem = single->form.mem[0]};
    memcpy(piece->code, single->code, single->code_length);
}

static void append_piece(struct draft *d, const struct piece *piece) {
    struct form *form = &d->form;
    unsigned at = d->code_length;
    draft_bytes(d, piece->code, piece->length);
    form->length = d->code_length;
    form->x87 |= piece->x87;
    if (piece->patched)
        draft_patch(d, at + piece->patch.at, at + piece->patch.end, piece->patch.target);
    // All fs:[disp] have the same displacement, so one description finds the base for all.
    if (piece->mem.segment != SEGMENT_NONE) {
        uint32_t limit = piece->mem.segment == SEGMENT_FS ? LIMIT_FS_BASE : LIMIT_GS_BASE;
        if (!(form->limits & limit))
            form->mem[form->mem_count++] = piece->mem;
        form->limits |= limit;
    }
    form->limits |= piece->limits & LIMIT_DIVIDE;
}

// A short conditional jump over the next piece.
static void append_skip(struct draft *d, const struct piece *next, struct random *random) {
    uint8_t jump[2] = {0x70 | random_below(random, 16), next->length};
    draft_bytes(d, jump, sizeof jump);
}

void compose_sequences(unsigned count, struct random *random) {
    while (count--) {
        struct draft d = {.group = GROUP_SEQUENCE};
        unsigned wanted = 3 + random_below(random, 10);
        d.form.states = 4;
        d.form.special = GPR_NONE;
        for (unsigned i = 0; i < wanted; i++) {
            const struct piece *piece = &pieces[random_below(random, piece_count)];
            if (random_below(random, 6) == 0)
                append_skip(&d, piece, random);
            append_piece(&d, piece);
        }
        draft_exit(&d, 0);
        draft_add(&d);
    }
}

// ---- Special cases ------------------------------------------------------------------------------

static void add_special(enum group group, const char *bytes, size_t length, uint32_t limits,
                        uint8_t fill) {
    struct draft d = {.group = group};
    d.form.limits = limits;
    d.form.length = length;
    d.form.states = 8;
    d.form.special = GPR_NONE;
    if (limits & LIMIT_STACK) {
        d.form.mem_count = 1;
        d.form.mem[0] = (struct form_mem){
            .base = GPR_RSP, .index = GPR_NONE, .size = 8, .implicit = 1, .fill = fill};
    }
    draft_bytes(&d, bytes, length);
    draft_exit(&d, 0);
    draft_add(&d);
}

#define SPECIAL(group, bytes, limits, fill)                                                        \
    add_special(group, bytes, sizeof bytes - 1, limits, fill)

// With an operand-size prefix AMD CPUs branch to 16 bits, Intel's ignore it; REX.W overrides it
// (the thread-local storage calls of compilers rely on that).
static void add_branches16(void) {
    SPECIAL(GROUP_BRANCH16, "\x66\xe9\x00\x00\x00\x00", 0, FILL_VALUE);
    SPECIAL(GROUP_BRANCH16, "\x66\xe8\x00\x00\x00\x00", LIMIT_STACK, FILL_VALUE);
    SPECIAL(GROUP_BRANCH16, "\x66\x0f\x84\x00\x00\x00\x00", 0, FILL_VALUE);
    SPECIAL(GROUP_BRANCH16, "\x66\x0f\x8d\x00\x00\x00\x00", 0, FILL_VALUE);
    SPECIAL(GROUP_BRANCH16, "\x66\xeb\x00", 0, FILL_VALUE);
    SPECIAL(GROUP_BRANCH16, "\x66\x75\x00", 0, FILL_VALUE);
    SPECIAL(GROUP_BRANCH16, "\x66\xe2\x00", LIMIT_COUNT, FILL_VALUE);
    SPECIAL(GROUP_BRANCH16, "\x66\xe3\x00", LIMIT_COUNT, FILL_VALUE);
    SPECIAL(GROUP_BRANCH16, "\x66\xff\xe0", 0, FILL_VALUE);
    SPECIAL(GROUP_BRANCH16, "\x66\xff\xd0", LIMIT_STACK, FILL_VALUE);
    SPECIAL(GROUP_BRANCH16, "\x66\xff\x24\x24", LIMIT_STACK, FILL_VALUE);
    SPECIAL(GROUP_BRANCH16, "\x66\xc3", LIMIT_STACK, FILL_VALUE);
    SPECIAL(GROUP_BRANCH16, "\x66\xc2\x10\x00", LIMIT_STACK, FILL_VALUE);
    SPECIAL(GROUP_CONTROL, "\x66\x66\x48\xe8\x00\x00\x00\x00", LIMIT_STACK, FILL_VALUE);
    SPECIAL(GROUP_CONTROL, "\x66\x48\xff\x14\x24", LIMIT_STACK, FILL_POINTER);
    SPECIAL(GROUP_CONTROL, "\x66\x48\xc3", LIMIT_STACK, FILL_POINTER);
}

// Instructions that the end of mapped code cuts short, and a fall off that end.
static void add_fetches(void) {
    for (unsigned before_end = 1; before_end <= DRAFT_CODE_END; before_end++) {
        struct draft d = {.group = GROUP_FETCH, .before_end = before_end};
        d.form.states = 4;
        d.form.special = GPR_NONE;
        d.form.length = before_end;
        draft_add(&d);
    }
}

// An xsave image written by the target itself, compacted, and read back.
static void add_compacted(void) {
    struct draft d = {.group = GROUP_XSAVE};
    d.form.states = 8;
    d.form.special = GPR_NONE;
    d.form.length = 8;
    d.form.mem_count = 1;
    d.form.mem[0] =
        (struct form_mem){.base = GPR_RDI, .index = GPR_NONE, .size = 2816, .fill = FILL_XSAVE};
    draft_bytes(&d, "\x48\x0f\xc7\x27\x48\x0f\xae\x2f", 8);
    draft_exit(&d, 0);
    draft_add(&d);
}

void compose_special(void) {
    add_fetches();
    add_compacted();
    add_branches16();
    // popf sets TF: the trap comes after the next instruction, whatever that is.
    SPECIAL(GROUP_TRAP, "\x9d\x90\x90", LIMIT_STACK, FILL_TRAP);
    SPECIAL(GROUP_TRAP, "\x9d\x48\xff\xc0\x48\xff\xc1", LIMIT_STACK, FILL_TRAP);
    SPECIAL(GROUP_TRAP, "\x9d\xeb\x00\x90", LIMIT_STACK, FILL_TRAP);
    SPECIAL(GROUP_TRAP, "\x9d\x0f\xa2\x90", LIMIT_STACK | LIMIT_CPUID, FILL_TRAP);
    SPECIAL(GROUP_TRAP, "\x9d\x9c\x58", LIMIT_STACK, FILL_TRAP);
    // popf sets AC: unaligned access is a fault from then on.
    SPECIAL(GROUP_ALIGNMENT, "\x9d\x48\x8b\x44\x24\x01", LIMIT_STACK, FILL_ALIGNMENT);
    SPECIAL(GROUP_ALIGNMENT, "\x9d\x48\x8b\x44\x24\x10", LIMIT_STACK, FILL_ALIGNMENT);
    SPECIAL(GROUP_ALIGNMENT, "\x9d\x9c\x58\x48\x89\x5c\x24\xf3", LIMIT_STACK, FILL_ALIGNMENT);
    // x87 instruction pointers after x87 instructions, as the target can read them.
    SPECIAL(GROUP_X87_POINTERS, "\xdb\xe3\xd9\xe8\xd9\x34\x24", LIMIT_STACK, FILL_VALUE);
    SPECIAL(GROUP_X87_POINTERS, "\xdb\xe3\xd9\x04\x24\xdd\x74\x24\x08", LIMIT_STACK, FILL_VALUE);
    SPECIAL(GROUP_X87_POINTERS, "\xdb\xe3\xd9\xe8\xd9\xe0\x9b\xd9\x74\x24\x10", LIMIT_STACK,
            FILL_VALUE);
    // Control words and exceptions that come one instruction later.
    SPECIAL(GROUP_X87_POINTERS, "\xdb\xe3\xd9\xee\xd9\xe8\xde\xf1\xd9\x74\x24\x10", LIMIT_STACK,
            FILL_VALUE);
    // Branches around and into each other's middle: the same bytes as two instructions.
    SPECIAL(GROUP_CONTROL, "\xeb\xff\xc0", 0, FILL_VALUE);
    SPECIAL(GROUP_CONTROL, "\xe8\x00\x00\x00\x00\x58", LIMIT_STACK, FILL_VALUE);
    SPECIAL(GROUP_CONTROL, "\xe8\x01\x00\x00\x00\x90\x48\x83\x04\x24\x06\xc3", LIMIT_STACK,
            FILL_VALUE);
    // Loops, calls in loops, recursion.
    SPECIAL(GROUP_CONTROL, "\xb9\xe8\x03\x00\x00\x48\x01\xd8\xff\xc9\x75\xf9", 0, FILL_VALUE);
    SPECIAL(GROUP_CONTROL, "\xb9\xe8\x03\x00\x00\x48\x11\xd8\xe2\xfb", 0, FILL_VALUE);
    SPECIAL(GROUP_CONTROL,
            "\xb9\x64\x00\x00\x00\xe8\x04\x00\x00\x00\xe2\xf9\xeb\x04\x48\x11\xc8\xc3", LIMIT_STACK,
            FILL_VALUE);
    SPECIAL(GROUP_CONTROL,
            "\xb9\x14\x00\x00\x00\xe8\x02\x00\x00\x00\xeb\x0a\x48\x11\xc8\xff\xc9\x74"
            "\x05\xe8\xf4\xff\xff\xff\xc3\x90",
            LIMIT_STACK, FILL_VALUE);
    SPECIAL(GROUP_CONTROL, "\x48\x8d\x05\x03\x00\x00\x00\xff\xe0\x90", 0, FILL_VALUE);
    SPECIAL(GROUP_CONTROL, "\x48\x8d\x0d\x04\x00\x00\x00\x51\xc3\x90\x90", LIMIT_STACK, FILL_VALUE);
}
