// Counters that translated code increments: the thread's words, and an area that GS points at.
#include <asm/prctl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/hooks/hooks.h"
#include "engine/task.h"
#include "engine/translate/builder.h"

void tool_insert_add(struct tool_block *block, size_t offset, int32_t amount) {
    struct assembler *a = &((struct builder *)block)->code;
    asm_spill(a, RCX);
    asm_spill(a, RDX);
    asm_load_field(a, RDX, TASK_TOOL);
    asm_mov_reg_mem(a, 64, RCX, asm_at32(RDX, offset));
    asm_lea(a, 64, RCX, asm_at32(RCX, amount));
    asm_mov_mem_reg(a, 64, asm_at32(RDX, offset), RCX);
    asm_unspill(a, RDX);
    asm_unspill(a, RCX);
}

// ---- counting ---------------------------------------------------------------------------------

// The counter of an index that tool_fill_count fills in: its site is the displacement.
static struct asm_memory counter_operand(void) {
    return asm_in_segment(ASM_GS, asm_absolute(0));
}

static void note_index(const struct assembler *a, struct tool_count *count) {
    count->index_sites[count->index_count++] = a->displacement;
}

static void note_amount(struct tool_count *count, uint8_t *site) {
    count->amount_sites[count->amount_count++] = site;
}

// reg += amount
static void write_lea_amount(struct assembler *a, struct tool_count *count, unsigned reg) {
    asm_lea(a, 64, reg, asm_at8(reg, 0));
    note_amount(count, a->displacement);
}

// word += amount, through rcx
static void write_word_add(struct assembler *a, struct tool_count *count, unsigned word) {
    asm_load_field(a, RCX, insert_word(word));
    write_lea_amount(a, count, RCX);
    asm_store_field(a, RCX, insert_word(word));
}

// The same where flags are dead.
static void write_short_word_add(struct assembler *a, struct tool_count *count, unsigned word) {
    asm_add_mem_imm(a, 64, asm_task(insert_word(word)), 0);
    note_amount(count, a->immediate);
}

void tool_insert_count(struct tool_block *block, struct tool_count *count, unsigned word) {
    struct builder *b = (struct builder *)block;
    struct assembler *a = &b->code;
    *count = (struct tool_count){.index_count = 0};
    if (builder_flags_are_dead(b)) {
        asm_add_mem_imm(a, 64, counter_operand(), 1);
        note_index(a, count);
        write_short_word_add(a, count, word);
        return;
    }
    asm_spill(a, RCX);
    asm_mov_reg_mem(a, 64, RCX, counter_operand());
    note_index(a, count);
    asm_lea(a, 64, RCX, asm_at(RCX, 1));
    asm_mov_mem_reg(a, 64, counter_operand(), RCX);
    note_index(a, count);
    write_word_add(a, count, word);
    asm_unspill(a, RCX);
}

void tool_insert_word_count(struct tool_block *block, struct tool_count *count, unsigned word) {
    struct builder *b = (struct builder *)block;
    struct assembler *a = &b->code;
    *count = (struct tool_count){.start = a->at};
    if (builder_flags_are_dead(b)) {
        write_short_word_add(a, count, word);
    } else {
        asm_spill(a, RCX);
        write_word_add(a, count, word);
        asm_unspill(a, RCX);
    }
    count->end = a->at;
}

void tool_insert_count_at(struct tool_block *block, struct tool_count *count, unsigned word,
                          unsigned index_word, uint32_t distance) {
    struct assembler *a = &((struct builder *)block)->code;
    struct asm_memory counter = asm_in_segment(ASM_GS, asm_indexed(ASM_NONE, RCX, 3, 8 * distance));
    *count = (struct tool_count){.index_count = 0};
    asm_spill(a, RCX);
    asm_spill(a, RDX);
    write_word_add(a, count, word);
    asm_load_field32(a, RCX, insert_word(index_word));
    asm_mov_reg_mem(a, 64, RDX, counter);
    write_lea_amount(a, count, RDX);
    asm_mov_mem_reg(a, 64, counter, RDX);
    asm_unspill(a, RDX);
    asm_unspill(a, RCX);
}

void tool_fill_count(const struct tool_count *count, uint32_t index, uint8_t amount) {
    uint32_t displacement = 8 * index;
    if (!amount && count->start) {
        struct assembler a = {.at = count->start};
        asm_nops(&a, count->end - count->start);
        return;
    }
    for (unsigned i = 0; i < count->index_count; i++)
        memcpy(count->index_sites[i], &displacement, 4);
    for (unsigned i = 0; i < count->amount_count; i++)
        *count->amount_sites[i] = amount;
}

void tool_keep_together(struct tool_block *block, bool together) {
    ((struct builder *)block)->together = together;
}

void tool_insert_set(struct tool_block *block, unsigned word, unsigned half, uint32_t value) {
    asm_store_field_imm(&((struct builder *)block)->code, insert_word(word) + 4 * half, value);
}

bool tool_can_set_counters_quickly(void) {
    return getauxval(AT_HWCAP2) & 2;
}

__attribute__((target("general-regs-only"))) void tool_set_counters(void *counters) {
    static int can_write; // 1: by an instruction, -1: by a system call
    if (!can_write)
        can_write = tool_can_set_counters_quickly() ? 1 : -1;
    if (can_write > 0)
        tool_set_counters_quickly(counters);
    else
        syscall(SYS_arch_prctl, ARCH_SET_GS, counters);
}

uint64_t *tool_thread_words(void) {
    return self->tool_words;
}
