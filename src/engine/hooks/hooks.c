#include <stdarg.h>
#include <stdlib.h>

#include "engine/fatal.h"
#include "engine/hooks/hooks.h"
#include "engine/log.h"
#include "engine/memory/target.h"
#include "engine/run/stack.h"
#include "engine/task.h"
#include "engine/translate/builder.h"
#include "tools/tools.h"
#include "wire/wire_target.h"

const struct tool *tool;

enum { SEGMENT_NONE, SEGMENT_FS, SEGMENT_GS };

void hooks_init(void) {
    const char *name = wire_option("tool");
    tool = tools_find(name ? name : "none");
    if (!tool)
        fatal("the engine has no tool '%s'", name);
}

void hooks_thread_start(void) {
    if (tool->thread_size) {
        self->tool = calloc(1, tool->thread_size);
        if (!self->tool)
            fatal("out of memory for a thread's state");
    }
    TOOL_HOOK(thread_started);
}

void hooks_thread_end(void) {
    TOOL_HOOK(thread_ended);
    free(self->tool);
    self->tool = NULL;
}

void hooks_end(void) {
    static int ended;
    if (__atomic_exchange_n(&ended, 1, __ATOMIC_SEQ_CST) == 0)
        TOOL_HOOK(end);
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
                                   .displacement = mem->disp.value};
    if (mem->base == ZYDIS_REGISTER_RIP || mem->base == ZYDIS_REGISTER_EIP)
        access->displacement = insn_rip_target(insn);
    // A push writes below the stack pointer that the instruction starts with.
    if (access->base == RSP && access->writes &&
        operand->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN)
        access->displacement -= access->size;
}

static void show_instruction(struct builder *b, struct insn *insn) {
    struct tool_insn shown = {
        .pc = insn->pc,
        .size = insn->z.length,
        .bytes = insn->bytes,
        .flow = flow_of(insn),
        .repeats = insn->z.attributes &
                   (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)};
    insn_operands(insn);
    for (unsigned i = 0; i < insn->z.operand_count && shown.access_count < TOOL_ACCESSES; i++) {
        const ZydisDecodedOperand *operand = &insn->operands[i];
        if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY &&
            operand->mem.type != ZYDIS_MEMOP_TYPE_AGEN &&
            insn->z.meta.category != ZYDIS_CATEGORY_WIDENOP &&
            insn->z.meta.category != ZYDIS_CATEGORY_NOP)
            describe_access(insn, operand, &shown.accesses[shown.access_count++]);
    }
    tool->instruction((struct tool_block *)b, &shown);
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

void tool_insert_call(struct tool_block *block, tool_function *fn, void *argument) {
    builder_call((struct builder *)block, fn, argument);
}

void tool_insert_add(struct tool_block *block, size_t offset, int32_t amount) {
    struct emitter *e = &((struct builder *)block)->e;
    emit_spill(e, RCX);
    emit_spill(e, RDX);
    emit_load_field(e, RDX, TASK_TOOL);
    emit_bytes(e, (uint8_t[]){0x48, 0x8b, 0x8a}, 3); // mov rcx, [rdx + offset]
    emit32(e, offset);
    emit_bytes(e, (uint8_t[]){0x48, 0x8d, 0x89}, 3); // lea rcx, [rcx + amount]
    emit32(e, amount);
    emit_bytes(e, (uint8_t[]){0x48, 0x89, 0x8a}, 3); // mov [rdx + offset], rcx
    emit32(e, offset);
    emit_unspill(e, RDX);
    emit_unspill(e, RCX);
}

// ---- state -------------------------------------------------------------------------------------

uint64_t tool_register(unsigned number) {
    return self->gpr[number];
}

void tool_set_register(unsigned number, uint64_t value) {
    self->gpr[number] = value;
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

int tool_thread_id(void) {
    return self->tid;
}

void *tool_thread_state(void) {
    return self->tool;
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

const char *tool_option(const char *name) {
    return wire_option(name);
}

void tool_say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    log_notice_list(format, arguments);
    va_end(arguments);
}
