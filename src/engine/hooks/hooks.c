#include <signal.h>
#include <stdarg.h>
#include <asm/prctl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/fatal.h"
#include "engine/hooks/hooks.h"
#include "engine/layout.h"
#include "engine/log.h"
#include "engine/memory/memory.h"
#include "engine/memory/shadow_area.h"
#include "engine/memory/target.h"
#include "engine/run/enter.h"
#include "engine/run/stack.h"
#include "engine/signal/signal.h"
#include "engine/space/place.h"
#include "engine/task.h"
#include "engine/translate/builder.h"
#include "tools/tools.h"
#include "wire/wire_target.h"

const struct tool *tool;

void hooks_init(void) {
    const char *name = wire_option("tool");
    tool = tools_find(name ? name : "none");
    if (!tool)
        fatal("the engine has no tool '%s'", name);
    stack_merged_frames = (unsigned)wire_option_number("merge-recursive-frames", 0);
    if (tool->shadows)
        shadow_area_init();
    if (tool->counts_by_address)
        place_in_one_piece();
    checks_init();
}

void hooks_thread_start(void) {
    if (tool->shadows)
        shadow_area_thread();
    if (tool->thread_size <= sizeof self->tool_memory) {
        memset(self->tool_memory, 0, sizeof self->tool_memory);
        self->tool = self->tool_memory;
    } else {
        self->tool = calloc(1, tool->thread_size);
        if (!self->tool)
            fatal("out of memory for a thread's state");
    }
    TOOL_HOOK(thread_started);
}

void hooks_thread_end(void) {
    TOOL_HOOK(thread_ended);
    if (self->tool != self->tool_memory)
        free(self->tool);
    self->tool = NULL;
}

void hooks_end(void) {
    static int ended;
    if (!tool->end || __atomic_exchange_n(&ended, 1, __ATOMIC_SEQ_CST))
        return;
    wire_send_ending();
    tool->end();
}

void hooks_mapped(uint64_t start, uint64_t end, int prot) {
    if (start == end)
        return;
    if (tool->shadows)
        shadow_area_clear(start, end);
    TOOL_HOOK(mapped, start, end, prot);
}

void hooks_unmapped(uint64_t start, uint64_t end) {
    if (tool->shadows)
        shadow_area_clear(start, end);
    TOOL_HOOK(unmapped, start, end);
}

void hooks_faulted(int number, int code, uint64_t address, bool is_fetch) {
    struct insn insn;
    uint8_t bytes[INSN_BYTES];
    bool is_missing = number == SIGSEGV && (code == SEGV_MAPERR || code == SI_KERNEL || is_fetch);
    if (!tool->faulted || !is_missing)
        return;
    if (is_fetch) {
        tool->jumped_nowhere(address, code == SEGV_ACCERR);
        return;
    }
    if (target_read(bytes, self->pc, sizeof bytes) ||
        insn_decode(&insn, self->pc, bytes, sizeof bytes) != INSN_VALID)
        return;
    insn_operands(&insn);
    cache_lock(); // guards what is prepared
    void *prepared = tool->prepare(insn.pc, bytes, &insn.z, insn.operands);
    cache_unlock();
    if (prepared)
        tool->faulted(prepared, address, code != SI_KERNEL);
    self->any_hidden = true; // at least it may be
}

void hooks_define(unsigned number) {
    if (tool->shadows)
        self->tool_memory[number] = 0;
}

void hooks_stored(uint64_t address, uint64_t size) {
    if (tool->shadows)
        shadow_area_clear(address, address + size);
}

void hooks_moved(uint64_t to, uint64_t from, uint64_t size) {
    if (tool->shadows)
        shadow_area_move(to, from, size);
}

// ---- code --------------------------------------------------------------------------------------

static enum tool_flow flow_of(const struct insn *insn) {
    switch (insn->z.meta.category) {
    case ZYDIS_CATEGORY_COND_BR:
        return TOOL_BRANCH;
    case ZYDIS_CATEGORY_UNCOND_BR:
        return TOOL_JUMP;
    case ZYDIS_CATEGORY_CALL:
        return TOOL_CALL;
    case ZYDIS_CATEGORY_RET:
        return TOOL_RETURN;
    case ZYDIS_CATEGORY_SYSCALL:
        return TOOL_SYSTEM;
    default:
        return TOOL_NEXT;
    }
}

static uint64_t target_of(const struct insn *insn) {
    enum tool_flow flow = flow_of(insn);
    if ((flow != TOOL_BRANCH && flow != TOOL_JUMP && flow != TOOL_CALL) ||
        insn->z.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR || !insn->z.raw.imm[0].size)
        return 0;
    return insn_next(insn) + insn->z.raw.imm[0].value.s;
}

static void describe_access(const struct insn *insn, const ZydisDecodedOperand *operand,
                            struct tool_access *access) {
    const ZydisDecodedOperandMem *mem = &operand->mem;
    *access = (struct tool_access){.size = operand->size / 8,
                                   .reads = operand->actions & ZYDIS_OPERAND_ACTION_MASK_READ,
                                   .writes = operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE,
                                   .base = register_number(mem->base),
                                   .index = register_number(mem->index),
                                   .scale = mem->scale,
                                   .segment = mem->segment == ZYDIS_REGISTER_FS   ? SEGMENT_FS
                                              : mem->segment == ZYDIS_REGISTER_GS ? SEGMENT_GS
                                                                                  : SEGMENT_NONE,
                                   .narrow = insn->z.address_width == 32,
                                   .scattered = mem->type == ZYDIS_MEMOP_TYPE_VSIB,
                                   .displacement = mem->disp.value};
    if (mem->base == ZYDIS_REGISTER_RIP || mem->base == ZYDIS_REGISTER_EIP)
        access->displacement = insn_rip_target(insn);
    // A push writes below the stack pointer that the instruction starts with.
    if (access->base == RSP && access->writes &&
        operand->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN)
        access->displacement -= access->size;
}

static struct tool_insn describe(struct insn *insn) {
    struct tool_insn shown = {
        .pc = insn->pc,
        .size = insn->z.length,
        .bytes = insn->bytes,
        .flow = flow_of(insn),
        .target = target_of(insn),
        .repeats = insn->z.attributes &
                   (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)};
    insn_operands(insn);
    for (unsigned i = 0; i < insn->z.operand_count && shown.access_count < TOOL_ACCESSES; i++) {
        const ZydisDecodedOperand *operand = &insn->operands[i];
        if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY &&
            operand->mem.type != ZYDIS_MEMOP_TYPE_AGEN &&
            insn->z.meta.category != ZYDIS_CATEGORY_WIDENOP &&
            insn->z.meta.category != ZYDIS_CATEGORY_PREFETCH &&
            insn->z.meta.category != ZYDIS_CATEGORY_NOP)
            describe_access(insn, operand, &shown.accesses[shown.access_count++]);
    }
    return shown;
}

bool tool_look(uint64_t pc, struct tool_insn *shown, uint8_t bytes[TOOL_INSN_BYTES]) {
    struct insn insn;
    size_t size = TOOL_INSN_BYTES;
    while (size && target_read(bytes, pc, size) != 0)
        size--; // code may end with its page
    if (!size || insn_decode(&insn, pc, bytes, size) != INSN_VALID)
        return false;
    *shown = describe(&insn);
    return true;
}

static void show_instruction(struct builder *b, struct insn *insn) {
    struct tool_insn shown = describe(insn);
    tool->instruction((struct tool_block *)b, &shown);
    if (b->heap_group_count)
        hooks_end_heap_groups(b, insn, shown.flow == TOOL_NEXT);
}

void hooks_translate(struct builder *b, struct insn *insn, bool first) {
    const uint8_t *before = b->e.at;
    if (first) {
        const struct hooked_function *hooked = function_find(insn->pc);
        if (hooked && hooked->kind == TOOL_WATCH)
            tool_insert_call((struct tool_block *)b, hooked->function, hooked->argument);
        if (tool->block)
            tool->block((struct tool_block *)b, insn->pc);
    }
    if (tool->instruction)
        show_instruction(b, insn);
    if (b->e.at != before)
        builder_state(b, STATE_WITHIN, 0); // what was inserted must not run twice
}

void *tool_allocate(size_t size) {
    return block_memory(size);
}

void tool_insert_call(struct tool_block *block, tool_function *fn, void *argument) {
    builder_call((struct builder *)block, fn, argument);
}

void tool_insert_add(struct tool_block *block, size_t offset, int32_t amount) {
    struct assembler *a = &((struct builder *)block)->e;
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
    asm_load_field(a, RCX, hooks_word_field(word));
    write_lea_amount(a, count, RCX);
    asm_store_field(a, RCX, hooks_word_field(word));
}

// The same where flags are dead.
static void write_short_word_add(struct assembler *a, struct tool_count *count, unsigned word) {
    asm_add_mem_imm(a, 64, asm_task(hooks_word_field(word)), 0);
    note_amount(count, a->immediate);
}

void tool_insert_count(struct tool_block *block, struct tool_count *count, unsigned word) {
    struct builder *b = (struct builder *)block;
    struct assembler *a = &b->e;
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
    struct assembler *a = &b->e;
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
    struct assembler *a = &((struct builder *)block)->e;
    struct asm_memory counter = asm_in_segment(ASM_GS, asm_indexed(ASM_NONE, RCX, 3, 8 * distance));
    *count = (struct tool_count){.index_count = 0};
    asm_spill(a, RCX);
    asm_spill(a, RDX);
    write_word_add(a, count, word);
    asm_load_field32(a, RCX, hooks_word_field(index_word));
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
    asm_store_field_imm(&((struct builder *)block)->e, hooks_word_field(word) + 4 * half, value);
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

void tool_give_file(int fd) {
    wire_send_file(WIRE_COUNTS, fd);
}

void tool_give_heap(int fd, uint64_t size) {
    wire_send_heap(fd, size);
}

void tool_give_ledger(int fd) {
    wire_send_file(WIRE_LEDGER, fd);
}

void tool_send(unsigned type, const void *first, size_t first_size, const void *second,
               size_t second_size) {
    wire_send_parts(type, first, first_size, second, second_size);
}

// ---- shadow memory -----------------------------------------------------------------------------

__attribute__((target("general-regs-only"))) bool tool_has_shadow(uint64_t start, size_t size) {
    return start + size <= CACHE_START ||
           (start - HIGH_START < HIGH_END - HIGH_START && size <= HIGH_END - start);
}

__attribute__((target("general-regs-only"))) bool tool_is_engines(uint64_t address) {
    uint64_t low = TOOL_SHADOW_DISTANCE, high = HIGH_START + TOOL_SHADOW_DISTANCE;
    return address - CACHE_START < JUMP_TABLE_END - CACHE_START || address - low < CACHE_START ||
           address - high < HIGH_END - HIGH_START;
}

void tool_shadow_fill(uint64_t start, uint64_t end) {
    shadow_area_fill(start, end);
}

void tool_shadow_clear(uint64_t start, uint64_t end) {
    shadow_area_clear(start, end);
}

// The C library's functions use vector registers as they please.
__attribute__((target("general-regs-only"))) void tool_with_vectors(tool_function *fn,
                                                                    void *argument) {
    uint8_t memory[XSTATE_MOST + 64];
    uint8_t *area = (uint8_t *)(((uint64_t)memory + 63) & ~63ul);
    for (unsigned i = 512; i < 576; i++)
        area[i] = 0; // the header: xsave leaves parts of it alone
    uint32_t low = xstate_features, high = xstate_features >> 32;
    uint32_t mxcsr = 0x1f80;
    __asm__ volatile("xsave64 (%0)" : : "r"(area), "a"(low), "d"(high) : "memory");
    __asm__ volatile("ldmxcsr %0" : : "m"(mxcsr));
    fn(argument);
    __asm__ volatile("xrstor64 (%0)" : : "r"(area), "a"(low), "d"(high) : "memory");
}

void tool_ask_report(bool report, const char *why) {
    wire_send_dump(report ? 0 : 1, why);
}

// ---- state -------------------------------------------------------------------------------------

// Also called from functions that must leave vector registers alone.
#pragma GCC push_options
#pragma GCC target("general-regs-only")

uint64_t tool_register(unsigned number) {
    return self->gpr[number];
}

uint64_t *tool_registers(void) {
    return self->gpr;
}

uint64_t tool_flags(void) {
    return self->flags;
}

uint64_t tool_pc(void) {
    return self->pc;
}

uint64_t tool_access_address(const struct tool_access *access) {
    uint64_t address = access->displacement;
    if (access->base >= 0)
        address += self->gpr[access->base];
    if (access->index >= 0)
        address += self->gpr[access->index] * access->scale;
    if (access->narrow)
        address = (uint32_t)address;
    return address + (access->segment == SEGMENT_FS   ? self->fs_base
                      : access->segment == SEGMENT_GS ? self->gs_base
                                                      : 0);
}

int tool_direction(void) {
    return self->flags & FLAG_DIRECTION ? -1 : 1;
}

uint64_t tool_thread_pointer(void) {
    return self->fs_base;
}

void *tool_thread_state(void) {
    return self->tool;
}

#pragma GCC pop_options

__attribute__((target("general-regs-only"))) size_t tool_stack_quickly(uint64_t *pcs, size_t max) {
    return stack_of_task_quickly(pcs, max);
}

__attribute__((target("general-regs-only"))) uint32_t tool_stack_recall(void) {
    return stack_recall();
}

__attribute__((target("general-regs-only"))) void tool_stack_note(const uint64_t *pcs, size_t count,
                                                                  uint32_t value) {
    stack_note(pcs, count, value);
}

size_t tool_stack(uint64_t *pcs, size_t max) {
    return stack_of_task(pcs, max);
}

long tool_read(void *to, uint64_t from, size_t size) {
    return target_read(to, from, size);
}

long tool_write(uint64_t to, const void *from, size_t size) {
    return target_write(to, from, size);
}

enum { TRAP_PAGE_FAULT = 14, ERROR_WRITE = 2, ERROR_USER = 4 };

static void look_at_guarded_fault(void *is_own) {
    const struct queued_signal *fault = &self->guarded_fault;
    *(bool *)is_own = fault->number == SIGSEGV && fault->trap == TRAP_PAGE_FAULT &&
                      fault->error & ERROR_WRITE && memory_write_fault(fault->fault_address);
}

__attribute__((target("general-regs-only"))) bool tool_try(tool_function *fn, void *argument,
                                                           uint64_t *address) {
    while (!call_guarded(fn, argument)) {
        bool is_own;
        tool_with_vectors(look_at_guarded_fault, &is_own);
        if (!is_own) {
            *address = (uint64_t)self->guarded_fault.info.si_addr;
            return false;
        }
    }
    return true;
}

struct denied {
    uint64_t address;
    bool writes;
};

static void deny(void *argument) {
    const struct denied *denied = argument;
    int error = ERROR_USER | (denied->writes ? ERROR_WRITE : 0);
    signal_raise(SIGSEGV, SEGV_MAPERR, denied->address, TRAP_PAGE_FAULT, error);
}

__attribute__((target("general-regs-only"))) void tool_fault(uint64_t address, bool writes) {
    struct denied denied = {address, writes};
    if (!self->guard) {
        tool_with_vectors(deny, &denied);
        cache_abandon();
    }
    struct queued_signal *fault = &self->guarded_fault;
    fault->number = SIGSEGV;
    fault->info.si_code = SEGV_MAPERR;
    fault->info.si_addr = (void *)address;
    fault->trap = TRAP_PAGE_FAULT;
    fault->error = ERROR_USER | (writes ? ERROR_WRITE : 0);
    fault->fault_address = address;
    call_guarded_abandon();
}

__attribute__((target("general-regs-only"))) void tool_run_itself(void) {
    self->unreplaced = true;
}

void tool_raise(void) {
    const struct queued_signal *fault = &self->guarded_fault;
    signal_raise(fault->number, fault->info.si_code, (uint64_t)fault->info.si_addr, fault->trap,
                 fault->error);
}

void tool_print(const char *text, bool with_stack) {
    uint64_t pcs[500];
    size_t count = 0;
    if (with_stack)
        count = tool_stack(pcs, sizeof pcs / sizeof *pcs);
    wire_send_print(tool_thread_number(), text, pcs, count);
}

const char *tool_option(const char *name) {
    return wire_option(name);
}

const char *tool_option_next(const char *name, const char *previous) {
    return wire_option_next(name, previous);
}

void tool_say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    log_notice_list(0, format, arguments);
    va_end(arguments);
}

void tool_give_up(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    log_notice_list(-1, format, arguments);
    va_end(arguments);
    _exit(1);
}
