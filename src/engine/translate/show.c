// Instructions as the tool sees them: while a block is translated, and when one has faulted.
#include <signal.h>

#include "engine/hooks/hooks.h"
#include "engine/memory/target.h"
#include "engine/task.h"
#include "engine/translate/builder.h"
#include "engine/translate/translate.h"
#include "engine/translate/watch.h"

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

// Sets the accesses that there are, and leaves the rest of their array alone: it is long.
static void describe(struct insn *insn, struct tool_insn *shown) {
    shown->pc = insn->pc;
    shown->size = insn->z.length;
    shown->bytes = insn->bytes;
    shown->flow = flow_of(insn);
    shown->target = target_of(insn);
    shown->repeats = insn->z.attributes &
                     (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
    shown->access_count = 0;
    insn_operands(insn);
    for (unsigned i = 0; i < insn->z.operand_count && shown->access_count < TOOL_ACCESSES; i++) {
        const ZydisDecodedOperand *operand = &insn->operands[i];
        if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY &&
            operand->mem.type != ZYDIS_MEMOP_TYPE_AGEN &&
            insn->z.meta.category != ZYDIS_CATEGORY_WIDENOP &&
            insn->z.meta.category != ZYDIS_CATEGORY_PREFETCH &&
            insn->z.meta.category != ZYDIS_CATEGORY_NOP)
            describe_access(insn, operand, &shown->accesses[shown->access_count++]);
    }
}

bool tool_look(uint64_t pc, struct tool_insn *shown, uint8_t bytes[TOOL_INSN_BYTES]) {
    struct insn insn;
    size_t size = TOOL_INSN_BYTES;
    while (size && target_read(bytes, pc, size) != 0)
        size--; // code may end with its page
    if (!size || insn_decode(&insn, pc, bytes, size) != INSN_VALID)
        return false;
    describe(&insn, shown);
    return true;
}

static void show_instruction(struct builder *b, struct insn *insn, bool first) {
    struct tool_insn shown;
    describe(insn, &shown);
    if (watch_count)
        watch_insert(b, &shown, first);
    if (tool->instruction)
        tool->instruction((struct tool_block *)b, &shown);
}

void translate_show(struct builder *b, struct insn *insn, bool first) {
    const uint8_t *before = b->code.at;
    if (first) {
        const struct hooked_function *hooked = function_find(insn->pc);
        if (hooked && hooked->kind == TOOL_WATCH)
            tool_insert_call((struct tool_block *)b, hooked->function, hooked->argument);
        if (tool->block)
            tool->block((struct tool_block *)b, insn->pc);
    }
    if (tool->instruction || watch_count)
        show_instruction(b, insn, first);
    if (b->code.at != before)
        builder_state(b, STATE_WITHIN, 0); // what was inserted must not run twice
}

// ---- faults ------------------------------------------------------------------------------------

void translate_show_fault(int number, int code, uint64_t address, bool is_fetch) {
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
    tool->faulted(&insn, address, code != SI_KERNEL);
}
