// Checks of cache lines, in three steps: whether the line is the one that its set has used last, in
// place; whether it is known to be in the cache, behind the block and, for data, in code shared by
// all blocks; a call of the tool.
//
// For each group of lines that share the low bits of their numbers, a thread remembers the one used
// last, as the address of its first byte. An access is within a line if address xor line is at most
// line size less access size.
#include "tools/callgrind/target/lines.h"

#include <string.h>

#include "engine/tool.h"

enum { RECENT = 512 }; // lines remembered, per thread and cache

static _Thread_local uint64_t recent[LINES_CACHES][RECENT] __attribute__((tls_model("local-exec")));

static _Thread_local struct lines *lines __attribute__((tls_model("local-exec")));

static struct {
    unsigned bits;
    uint64_t mask; // of the numbers of lines: which group
} caches[LINES_CACHES];

enum { LARGEST = 64 };
static uint64_t known_gates[LARGEST + 1]; // by size of access; 0: not made yet

void lines_set_shape(enum lines_cache cache, unsigned bits, uint64_t sets) {
    caches[cache].bits = bits;
    caches[cache].mask = (sets < RECENT ? sets : RECENT) - 1;
}

__attribute__((target("general-regs-only"))) void lines_used(enum lines_cache cache,
                                                             uint64_t line) {
    recent[cache][line & caches[cache].mask] = line << caches[cache].bits;
}

void lines_set_thread(struct lines *own) {
    memset(recent, 0, sizeof recent);
    lines = own;
}

// Code behind the block, from a branch and back. The engine's lock of code guards all of them.
struct detour {
    struct asm_jump branch;
    uint8_t *back;
    uint64_t line; // of a check of code
    uint32_t size; // of a check of data; 0: of code
    bool spills;   // rcx, of a check of code: it is not spilled yet
    tool_address_function *function;
    uint32_t argument;
};
static struct detour detours[INSERT_INSTRUCTIONS * 6];
static unsigned detour_count; // of the block at hand

// A way out of line by the jump, which has just been written. For data, rcx and rdx are spilled,
// the address is in rcx, and no flag is to be kept.
static struct detour *add_detour(const struct assembler *a, struct asm_jump branch, uint32_t size,
                                 uint64_t line, tool_address_function *function,
                                 uint32_t argument) {
    struct detour *detour = &detours[detour_count++];
    *detour = (struct detour){.branch = branch,
                              .back = a->at,
                              .size = size,
                              .line = line,
                              .function = function,
                              .argument = argument};
    return detour;
}

// The largest distance from a line's start at which an access of that size lies within it.
static uint32_t last_start(uint32_t size) {
    uint32_t line = 1u << caches[LINES_DATA].bits;
    return size < line ? line - size : 0;
}

// edx = the offset of the recent line for the address in rcx.
static void write_recent_offset(struct assembler *a) {
    asm_mov_reg_reg(a, 32, RDX, RCX);
    asm_shr_reg_imm(a, 32, RDX, caches[LINES_DATA].bits - 3);
    asm_and_reg_imm32(a, 32, RDX, caches[LINES_DATA].mask << 3);
}

// A recent line of data by its offset, which is in rdx.
static struct asm_memory recent_at_offset(void) {
    struct asm_memory memory = asm_thread_local(recent[LINES_DATA]);
    memory.base = RDX;
    memory.form = ASM_LONG;
    return memory;
}

void lines_insert_check(struct tool_block *block, const struct tool_access *access,
                        tool_address_function *function, uint32_t argument) {
    struct assembler *a = insert_assembler(block);
    bool dead = insert_flags_are_dead(block);
    asm_spill(a, RCX);
    asm_spill(a, RDX);
    insert_access_address(a, access, RCX);
    if (!dead)
        asm_spill_flags(a);
    write_recent_offset(a);
    asm_mov_reg_mem(a, 64, RDX, recent_at_offset());
    asm_xor_reg_reg(a, 64, RDX, RCX);
    asm_cmp_reg_imm32(a, 64, RDX, last_start(access->size));
    add_detour(a, asm_jcc_forward(a, ASM_ABOVE), access->size, 0, function, argument);
    if (!dead)
        asm_unspill_flags(a);
    asm_unspill(a, RDX);
    asm_unspill(a, RCX);
}

void lines_insert_code_check(struct tool_block *block, uint64_t line,
                             tool_address_function *function, uint32_t argument) {
    struct assembler *a = insert_assembler(block);
    uint64_t start = line << caches[LINES_CODE].bits;
    struct asm_memory place = asm_thread_local(&recent[LINES_CODE][line & caches[LINES_CODE].mask]);
    if (start <= INT32_MAX && insert_flags_are_dead(block)) {
        asm_cmp_mem_imm32(a, 64, place, (int32_t)start);
        add_detour(a, asm_jcc_forward(a, ASM_NOT_EQUAL), 0, line, function, argument)->spills =
            true;
        return;
    }
    asm_spill(a, RCX);
    if (start <= INT32_MAX) {
        asm_mov_reg_mem(a, 64, RCX, place);
        asm_lea(a, 64, RCX, asm_at32(RCX, -(int64_t)start));
        struct asm_jump same = asm_jrcxz(a);
        add_detour(a, asm_jmp_forward(a), 0, line, function, argument);
        asm_land(a, same);
    } else { // code high up is rare
        add_detour(a, asm_jmp_forward(a), 0, line, function, argument);
    }
    asm_unspill(a, RCX);
}

void lines_flushed(void) {
    __builtin_memset(known_gates, 0, sizeof known_gates);
}

// Goes to r8 if the access of so many bytes at rcx lies within a known line, to r9 if not.
static uint64_t known_gate(uint32_t size) {
    enum { BITS_OF_LINE = 4 }; // of sizeof(struct known_line)
    if (known_gates[size])
        return known_gates[size];
    struct assembler start = insert_gate_begin(), *a = &start;
    uint64_t gate = asm_address(a);
    asm_mov_reg_mem(a, 64, R10, asm_thread_local(&lines));
    asm_mov_reg_reg(a, 64, RDX, RCX);
    asm_shr_reg_imm(a, 64, RDX, caches[LINES_DATA].bits - BITS_OF_LINE);
    asm_and_reg_imm32(a, 32, RDX, (LINES_KNOWN - 1) << BITS_OF_LINE);
    asm_lea(a, 64, R10, asm_indexed(R10, RDX, 0, offsetof(struct lines, known[LINES_DATA])));
    asm_mov_reg_mem(a, 64, RDX, asm_at(R10, 0));
    asm_xor_reg_reg(a, 64, RDX, RCX);
    asm_cmp_reg_imm32(a, 64, RDX, last_start(size));
    struct asm_jump unknown = asm_jcc_short(a, ASM_ABOVE);
    asm_mov_reg_mem(a, 64, RDX, asm_thread_local(&lines));
    asm_mov_reg_mem(a, 64, R9, asm_at(RDX, 0)); // the clock
    asm_inc_reg(a, 64, R9);
    asm_mov_mem_reg(a, 64, asm_at(RDX, 0), R9);
    asm_mov_reg_mem(a, 64, RDX, asm_at(R10, offsetof(struct known_line, stamp)));
    asm_mov_mem_reg(a, 64, asm_at(RDX, 0), R9);
    asm_mov_reg_mem(a, 64, R9, asm_at(R10, 0));
    write_recent_offset(a);
    asm_mov_mem_reg(a, 64, recent_at_offset(), R9);
    asm_mov_reg_reg(a, 64, R9, R8);
    asm_land(a, unknown);
    asm_mov_reg_reg(a, 64, RDX, R9);
    asm_unspill(a, R8);
    asm_unspill(a, R9);
    asm_unspill(a, R10);
    asm_jmp_reg(a, RDX);
    insert_gate_end(a);
    known_gates[size] = gate;
    return gate;
}

static void write_data_detour(struct assembler *a, const struct detour *detour) {
    enum { REST = 6 + 5 }; // bytes of the next two
    uint64_t gate = known_gate(detour->size);
    asm_spill(a, R8);
    asm_spill(a, R9);
    asm_spill(a, R10);
    asm_mov_reg_imm(a, R8, (uint64_t)detour->back);
    asm_mov_reg_imm(a, R9, asm_address(a) + REST);
    asm_jmp(a, gate);
}

static void jump_back(struct assembler *a, const struct detour *detour) {
    if (detour->spills)
        asm_unspill(a, RCX);
    asm_jmp(a, (uint64_t)detour->back);
}

static void write_code_detour(struct assembler *a, const struct detour *detour) {
    uint64_t start = detour->line << caches[LINES_CODE].bits;
    uint64_t slot = detour->line & caches[LINES_CODE].mask;
    uint32_t place = offsetof(struct lines, known[LINES_CODE]) +
                     sizeof(struct known_line) * (detour->line % LINES_KNOWN);
    if (start > INT32_MAX)
        return;
    if (detour->spills)
        asm_spill(a, RCX);
    asm_spill(a, RDX);
    asm_mov_reg_mem(a, 64, RDX, asm_thread_local(&lines));
    asm_mov_reg_mem(a, 64, RCX, asm_at32(RDX, place));
    asm_lea(a, 64, RCX, asm_at32(RCX, -(int64_t)start));
    struct asm_jump known = asm_jrcxz(a), unknown = asm_jmp_short(a);
    asm_land(a, known);
    asm_mov_reg_mem(a, 64, RCX, asm_at(RDX, 0)); // the clock
    asm_lea(a, 64, RCX, asm_at(RCX, 1));
    asm_mov_mem_reg(a, 64, asm_at(RDX, 0), RCX);
    asm_mov_reg_mem(a, 64, RDX, asm_at32(RDX, place + offsetof(struct known_line, stamp)));
    asm_mov_mem_reg(a, 64, asm_at(RDX, 0), RCX);
    asm_mov_mem_imm(a, 64, asm_thread_local(&recent[LINES_CODE][slot]), start);
    asm_unspill(a, RDX);
    jump_back(a, detour);
    asm_land(a, unknown);
    asm_unspill(a, RDX);
}

void lines_end_block(struct tool_block *block) {
    struct assembler *a = insert_assembler(block);
    for (unsigned i = 0; i < detour_count; i++) {
        const struct detour *detour = &detours[i];
        asm_land(a, detour->branch);
        if (i == 0)
            insert_state(block, INSERT_WITHIN, 0);
        if (detour->size && detour->size <= LARGEST)
            write_data_detour(a, detour);
        else if (!detour->size)
            write_code_detour(a, detour);
        tool_insert_fast_call(block, TOOL_ALWAYS, (tool_fast_function *)(void *)detour->function,
                              detour->argument);
        jump_back(a, detour);
    }
    detour_count = 0;
}
