#include <string.h>

#include "engine/cache/breakpoints.h"
#include "engine/cache/version.h"
#include "engine/hooks/hooks.h"
#include "engine/layout.h"
#include "engine/task.h"
#include "engine/translate/builder.h"
#include "engine/translate/translate.h"

// rol rdi by 3, 13, 61, 51: how a target asks the engine for something (include/quern).
static const uint8_t request_preamble[16] = {0x48, 0xc1, 0xc7, 0x03, 0x48, 0xc1, 0xc7, 0x0d,
                                             0x48, 0xc1, 0xc7, 0x3d, 0x48, 0xc1, 0xc7, 0x33};
enum { REQUEST_SIZE = 19 };

// Work area; the cache lock guards it.
static struct insn insns[BLOCK_INSTRUCTIONS];
static struct builder builder;
static uint32_t first_link;

void builder_state(struct builder *b, enum state_kind kind, uint16_t spilled) {
    struct block_state state = {
        .host = b->code.at - b->begin, .guest = b->pc - b->start, .spilled = spilled, .kind = kind};
    b->states[b->state_count++] = state;
}

static struct pending_exit *add_exit_to(struct builder *b, enum exit_kind kind, uint64_t target,
                                        unsigned version) {
    struct pending_exit *exit = &b->exits[b->exit_count++];
    *exit = (struct pending_exit){.target = target, .kind = kind, .version = version};
    return exit;
}

static struct pending_exit *add_exit(struct builder *b, enum exit_kind kind, uint64_t target) {
    return add_exit_to(b, kind, target,
                       kind == EXIT_MODIFIED ? b->version : version_number(b->exit_set, false));
}

static void write_leave_through_link(struct assembler *a, uint32_t link) {
    asm_store_field_imm(a, TASK_EXIT_LINK, link);
    asm_jmp(a, cache_gate_link);
}

void builder_exit_by(struct builder *b, struct asm_jump jump, uint64_t target) {
    add_exit(b, EXIT_TO, target)->site = jump.distance;
}

void builder_force_by(struct builder *b, struct asm_jump jump, uint64_t set) {
    add_exit_to(b, EXIT_TO, b->pc, version_number(set, true))->site = jump.distance;
}

void builder_exit_inline(struct builder *b, enum exit_kind kind, uint64_t target) {
    add_exit(b, kind, target);
    write_leave_through_link(&b->code, first_link + b->exit_count - 1);
    b->ended = true;
}

void builder_note_branch(struct builder *b, uint64_t pc) {
    add_exit(b, EXIT_TO, pc);
    asm_store_field_imm(&b->code, TASK_EXIT_LINK, first_link + b->exit_count - 1);
}

void builder_call(struct builder *b, void (*function)(void *), void *argument) {
    struct inserted_call *call = inserted_call_allocate();
    *call = (struct inserted_call){function, argument};
    struct pending_exit *exit = add_exit(b, EXIT_CALL, b->pc);
    exit->call = call;
    write_leave_through_link(&b->code, first_link + b->exit_count - 1);
    exit->resume = asm_address(&b->code);
}

void builder_saved_call(struct builder *b, void (*function)(void *), void *argument) {
    asm_begin_gate_call(&b->code);
    builder_state(b, STATE_WITHIN, 1u << RDI | 1u << RSP);
    asm_mov_reg_imm(&b->code, RDI, (uint64_t)argument);
    asm_gate_call(&b->code, cache_gate_saved(function));
}

struct asm_jump builder_jump_if_zero(struct builder *b, unsigned width, unsigned field) {
    asm_spill(&b->code, RCX);
    builder_state(b, STATE_WITHIN, 1u << RCX);
    asm_mov_reg_mem(&b->code, width, RCX, asm_task(field));
    return asm_jrcxz(&b->code);
}

void builder_jump_exit(struct builder *b, uint64_t target) {
    asm_align_patch(&b->code, 1);
    builder_exit_by(b, asm_jmp_forward(&b->code), target);
    b->ended = true;
}

// ---- decoding ----------------------------------------------------------------------------------

static bool is_block_end(const struct insn *insn) {
    switch (insn->z.meta.category) {
    case ZYDIS_CATEGORY_UNCOND_BR:
    case ZYDIS_CATEGORY_CALL:
    case ZYDIS_CATEGORY_RET:
    case ZYDIS_CATEGORY_SYSCALL:
    case ZYDIS_CATEGORY_INTERRUPT:
        return true;
    default:
        return false;
    }
}

static bool writes_memory(struct insn *insn) {
    insn_operands(insn);
    for (unsigned i = 0; i < insn->z.operand_count; i++)
        if (insn->operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
            insn->operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
            return true;
    return false;
}

// Decodes the instructions of the block. An instruction that does not decode ends it; at the start
// of a block it is left to emulate_instruction, which raises what the processor would.
static unsigned decode_block(const struct code_bytes *code, unsigned most, unsigned *guest_size) {
    unsigned count = 0, offset = 0, branches = 0;
    while (count < most && branches <= BLOCK_BRANCHES && offset < BLOCK_BYTES &&
           offset < code->size) {
        const uint8_t *bytes = code->bytes + offset;
        unsigned available = code->size - offset;
        struct insn *insn = &insns[count];
        if (available >= REQUEST_SIZE && memcmp(bytes, request_preamble, 16) == 0 && count > 0)
            break;
        if (count > 0 && breakpoint_at(code->pc + offset))
            break;
        if (insn_decode(insn, code->pc + offset, bytes,
                        available < INSN_BYTES ? available : INSN_BYTES) != INSN_VALID)
            break;
        count++;
        offset += insn->z.length;
        branches += insn->z.meta.category == ZYDIS_CATEGORY_COND_BR;
        if (is_block_end(insn) || (code->checked && writes_memory(insn)))
            break;
    }
    *guest_size = offset;
    return count;
}

// ---- checked blocks ----------------------------------------------------------------------------

static void write_compare(struct builder *b, const struct code_bytes *code, unsigned offset,
                          unsigned size) {
    struct assembler *a = &b->code;
    uint64_t expected = 0;
    memcpy(&expected, code->bytes + offset, size);
    asm_mov_reg_imm(a, RDX, code->pc + offset);
    if (size >= 4)
        asm_mov_reg_mem(a, 8 * size, RCX, asm_at(RDX, 0));
    else
        asm_movzx_reg_mem(a, RCX, 8 * size, asm_at(RDX, 0));
    asm_mov_reg_imm(a, RDX, -expected);
    asm_lea_sum(a, RCX, RCX, RDX);
    struct asm_jump same = asm_jrcxz(a);
    asm_unspill(a, RCX);
    asm_unspill(a, RDX);
    add_exit(b, EXIT_MODIFIED, code->pc);
    write_leave_through_link(a, first_link + b->exit_count - 1);
    asm_land(a, same);
}

static void write_check(struct builder *b, const struct code_bytes *code, unsigned size) {
    asm_spill(&b->code, RCX);
    asm_spill(&b->code, RDX);
    builder_state(b, STATE_WITHIN, 1u << RCX | 1u << RDX);
    for (unsigned offset = 0; offset < size;) {
        unsigned left = size - offset;
        unsigned step = left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
        write_compare(b, code, offset, step);
        offset += step;
    }
    asm_unspill(&b->code, RCX);
    asm_unspill(&b->code, RDX);
}

// ---- the block ---------------------------------------------------------------------------------

static void translate_insn(struct builder *b, struct insn *insn) {
    b->pc = insn->pc;
    builder_state(b, b->together ? STATE_WITHIN : STATE_CLEAN, 0);
    translate_show(b, insn, insn == insns);
    TOOL_HOOK(before, (struct tool_block *)b, insn);
    if (!translate_control(b, insn))
        translate_plain(b, insn);
    if (!b->ended)
        TOOL_HOOK(after, (struct tool_block *)b, insn);
}

static void note_wrapped(void *pc) {
    self->wrapped = (uint64_t)pc;
}

// Goes to the function that the target has for this one. Not after a check that has failed: that
// was the function's own.
static bool translate_redirection(struct builder *b) {
    const struct redirected_function *redirected = b->forced ? NULL : redirection_find(b->start);
    if (!redirected || b->unredirected)
        return false;
    builder_state(b, STATE_CLEAN, 0);
    if (redirected->wraps) {
        builder_call(b, note_wrapped, (void *)b->start);
        builder_state(b, STATE_WITHIN, 0);
    }
    builder_jump_exit(b, redirected->to);
    return true;
}

// Instructions that are run alone are run past the breakpoint. A check that has failed belongs to
// such an instruction, or to one that had no breakpoint.
static bool translate_breakpoint(struct builder *b) {
    if (b->is_single || b->forced || !breakpoint_at(b->start))
        return false;
    builder_state(b, STATE_CLEAN, 0);
    builder_exit_inline(b, EXIT_DEBUG, b->start);
    return true;
}

static void translate_body(struct builder *b, const struct code_bytes *code, unsigned count) {
    if (translate_breakpoint(b))
        return;
    if (code->size >= REQUEST_SIZE && memcmp(code->bytes, request_preamble, 16) == 0) {
        builder_state(b, STATE_CLEAN, 0);
        builder_exit_inline(b, EXIT_REQUEST, b->start + REQUEST_SIZE);
        return;
    }
    const struct hooked_function *hooked = b->unreplaced ? NULL : function_find(b->start);
    b->all = b->rest = insns;
    b->all_count = b->rest_count = count;
    b->has_wanted_flags = false;
    if (translate_redirection(b))
        return;
    if (hooked && hooked->kind == TOOL_REPLACE && tool->plain_hooks) {
        translate_replaced(b, hooked);
        return;
    }
    if (hooked && hooked->kind == TOOL_REPLACE) {
        builder_state(b, STATE_CLEAN, 0);
        builder_exit_inline(b, EXIT_REPLACED, b->start);
        return;
    }
    if (tool->head) {
        builder_state(b, STATE_CLEAN, 0);
        tool->head((struct tool_block *)b);
    }
    for (unsigned i = 0; i < count && !b->ended; i++) {
        b->rest = &insns[i];
        b->rest_count = count - i;
        translate_insn(b, &insns[i]);
    }
    if (count == 0) {
        builder_state(b, STATE_CLEAN, 0);
        builder_exit_inline(b, EXIT_EMULATE, b->start);
    }
    if (!b->ended)
        builder_jump_exit(b, insn_next(&insns[count - 1]));
    if (count)
        TOOL_HOOK(block_end, (struct tool_block *)b);
}

// Writes the stubs of the exits below *cold and fills in the link records.
static void finish_exits(struct builder *b, struct block *block, uint8_t **cold) {
    for (unsigned i = 0; i < b->exit_count; i++) {
        struct pending_exit *exit = &b->exits[i];
        struct link *link = link_get(first_link + i);
        *link = (struct link){.target = exit->target,
                              .kind = exit->kind,
                              .version = exit->version,
                              .from = block,
                              .stub = exit->resume,
                              .call = exit->call};
        if (!exit->site)
            continue;
        *cold -= 17;
        struct assembler stub = {.at = *cold};
        write_leave_through_link(&stub, first_link + i);
        link->site = (uint64_t)exit->site - cache_start;
        link->stub = (uint64_t)*cold;
        uint32_t distance = (uint64_t)*cold - ((uint64_t)exit->site + 4);
        memcpy(exit->site, &distance, 4);
    }
}

static struct block *translate(const struct code_bytes *code, unsigned number, unsigned most,
                               bool unredirected) {
    struct tool_version version = version_get(number);
    struct builder *b = &builder;
    uint8_t *cold;
    unsigned guest_size;
    unsigned count = decode_block(code, most, &guest_size);
    if (count && flags_look_behind_call(&insns[count - 1], code->mapping, code->is_module))
        return NULL;
    if (!cache_room(&b->code.at, &cold))
        return NULL;
    first_link = link_begin(BLOCK_EXITS);
    b->begin = b->code.at;
    b->start = b->pc = code->pc;
    b->checked = code->checked;
    b->is_module = code->is_module;
    b->mapping = code->mapping;
    b->version = number;
    b->exit_set = version.set;
    b->forced = version.forced;
    b->unredirected = unredirected;
    b->is_single = most == 1;
    b->unreplaced = b->is_single && self->unreplaced;
    b->ended = b->together = false;
    b->state_count = b->exit_count = 0;

    struct block *block = block_allocate();
    builder_state(b, STATE_WITHIN, 1u << RCX);
    asm_unspill(&b->code, RCX);
    block->direct_entry = b->code.at - b->begin;
    if (code->checked)
        write_check(b, code, guest_size ? guest_size : 1);
    translate_body(b, code, count);

    block->pc = code->pc;
    block->version = number;
    block->guest_size = guest_size ? guest_size : 1;
    block->code = (uint64_t)b->begin - cache_start;
    block->code_size = b->code.at - b->begin;
    block->checked = code->checked;
    block->first_link = first_link;
    block->link_count = b->exit_count;
    block->states = block_states_allocate(b->state_count);
    block->state_count = b->state_count;
    memcpy(block->states, b->states, b->state_count * sizeof *b->states);
    finish_exits(b, block, &cold);
    link_end(b->exit_count);
    cache_commit(b->code.at, cold);
    cache_stats.instructions += count;
    return block;
}

struct block *translate_single(const struct code_bytes *code, unsigned version, bool unredirected) {
    struct block *block = translate(code, version, 1, unredirected);
    if (block)
        block_publish_code(block);
    return block;
}

struct block *translate_block(const struct code_bytes *code, unsigned version) {
    struct block *block = translate(code, version, BLOCK_INSTRUCTIONS, false);
    if (!block)
        return NULL;
    block_publish(block);
    for (unsigned i = 0; i < block->link_count; i++) {
        struct link *link = link_get(first_link + i);
        struct block *to = link->site ? block_find(link->target, link->version) : NULL;
        if (to)
            block_link(link, to);
    }
    return block;
}
