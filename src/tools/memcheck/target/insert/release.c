// The stack pointer and the shadow of what it releases.
#include "tools/memcheck/target/insert/insert.h"

enum { INLINE_RELEASE = 96 }; // bytes of stack whose shadow is set without a loop

// ---- the stack pointer -------------------------------------------------------------------------

// How far an instruction moves rsp up; 0: not, or down; -1: anywhere.
int64_t release_of(struct insn *insn) {
    const ZydisDecodedOperand *first = &insn->operands[0], *second = &insn->operands[1];
    bool is_rsp = insn->z.operand_count && first->type == ZYDIS_OPERAND_TYPE_REGISTER &&
                  first->reg.value == ZYDIS_REGISTER_RSP;
    switch (insn->z.mnemonic) {
    case ZYDIS_MNEMONIC_POP:
    case ZYDIS_MNEMONIC_POPFQ:
        return is_rsp ? -1 : insn->z.operand_width / 8;
    case ZYDIS_MNEMONIC_LEAVE:
        return -1;
    case ZYDIS_MNEMONIC_ADD:
        if (!is_rsp)
            return 0;
        if (second->type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
            return -1;
        return second->imm.value.s > 0 ? second->imm.value.s : 0;
    case ZYDIS_MNEMONIC_SUB:
        if (!is_rsp || second->type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
            return 0;
        return second->imm.value.s < 0 ? -second->imm.value.s : 0;
    case ZYDIS_MNEMONIC_LEA:
        if (!is_rsp)
            return 0;
        if (second->mem.base != ZYDIS_REGISTER_RSP || second->mem.index != ZYDIS_REGISTER_NONE)
            return -1;
        return second->mem.disp.value > 0 ? second->mem.disp.value : 0;
    case ZYDIS_MNEMONIC_AND:
    case ZYDIS_MNEMONIC_PUSH:
    case ZYDIS_MNEMONIC_PUSHFQ:
    case ZYDIS_MNEMONIC_CALL:
    case ZYDIS_MNEMONIC_CMP:
    case ZYDIS_MNEMONIC_TEST:
        return 0;
    default:
        break;
    }
    for (unsigned i = 0; i < insn->z.operand_count; i++)
        if (insn->operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
            register_number(insn->operands[i].reg.value) == RSP &&
            insn->operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
            return -1;
    return 0;
}

// Whether rsp comes from somewhere else; not if a function leaves a frame of its own, whose size is
// known or whose end rbp tells.
static bool is_loaded(const struct insn *insn) {
    const ZydisDecodedOperand *second = &insn->operands[1];
    switch (insn->z.mnemonic) {
    case ZYDIS_MNEMONIC_LEAVE:
    case ZYDIS_MNEMONIC_ADD:
        return false;
    case ZYDIS_MNEMONIC_LEA:
        return second->mem.base != ZYDIS_REGISTER_RSP && second->mem.base != ZYDIS_REGISTER_RBP;
    case ZYDIS_MNEMONIC_MOV:
        return second->type != ZYDIS_OPERAND_TYPE_REGISTER ||
               second->reg.value != ZYDIS_REGISTER_RBP;
    default:
        return true;
    }
}

// ---- when the red zone ends --------------------------------------------------------------------
//
// The ABI gives the function that runs the RED_ZONE bytes below rsp. Where rsp rises, the zone
// rises with it: what it now covers keeps its contents, and as many bytes leave it at its lower
// end. Only a call and a return end the zone. Compilers raise rsp just before they return. Nothing
// reads the zone in between, so what rsp has passed is released at once there.

// Whether an operand may lie in the red zone. Pops and the like read above rsp.
static bool may_read_zone(const struct insn *insn, const ZydisDecodedOperand *operand) {
    if (!checks_touches_memory(insn, operand) ||
        !(operand->actions & ZYDIS_OPERAND_ACTION_MASK_READ) ||
        operand->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN)
        return false;
    if (operand->mem.index != ZYDIS_REGISTER_NONE)
        return true;
    switch (operand->mem.base) {
    case ZYDIS_REGISTER_NONE:
    case ZYDIS_REGISTER_RIP:
        return false;
    case ZYDIS_REGISTER_RSP:
        return operand->mem.disp.value < 0;
    default:
        return true;
    }
}

// An address below rsp, accessed or computed; or rsp is lowered again, over what is there.
static bool names_zone(const ZydisDecodedOperand *operand, bool lowers) {
    if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER)
        return lowers && operand->reg.value == ZYDIS_REGISTER_RSP &&
               operand->visibility != ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
               operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
    return operand->type == ZYDIS_OPERAND_TYPE_MEMORY && operand->mem.base == ZYDIS_REGISTER_RSP &&
           operand->mem.disp.value < 0;
}

// Whether the zone ends before anything behind the instruction at hand can read it: by a call or a
// return, or by a jump that looks like one to another function, far or to an address that is
// computed. (An indirect jump after rsp was loaded is longjmp or a switch of contexts. Who goes on
// there has called setjmp or the like, which ended its zone.)
static bool zone_ends_unread(const struct checked_block *b, bool is_loaded) {
    bool may_read = false, is_named = false;
    unsigned count;
    struct insn *rest = insert_rest(b->block, &count);
    for (unsigned i = 1; i < count; i++) {
        struct insn *insn = &rest[i];
        insn_operands(insn);
        bool lowers = release_of(insn) == 0;
        for (unsigned k = 0; k < insn->z.operand_count; k++) {
            may_read |= may_read_zone(insn, &insn->operands[k]);
            is_named |= names_zone(&insn->operands[k], lowers);
        }
        switch (insn->z.meta.category) {
        case ZYDIS_CATEGORY_RET:
        case ZYDIS_CATEGORY_CALL:
            return !may_read && !is_named;
        case ZYDIS_CATEGORY_UNCOND_BR:
            return !is_named && (is_loaded || !may_read) && insn->z.raw.imm[0].size != 8;
        default:
            break;
        }
    }
    return false;
}

// ---- how deep it is used -----------------------------------------------------------------------
//
// Contents that are still in the red zone when it ends have to be released there. To release all
// of it at each return would be slow. Code that leaves contents in it is noted as it is translated:
// a return from nearby releases as much, and after a rise, so does a call.

enum { GRANULE = 64, NEARBY = 1024 / GRANULE, SLOT = 8 };

// In slots, by granules of code; sparse.
static uint8_t stored[LOW_END / GRANULE]; // by stores below rsp
static uint8_t kept[LOW_END / GRANULE];   // by rises of rsp

static void note_depth(uint8_t *depths, uint64_t pc, uint64_t slots) {
    if (pc < LOW_END && depths[pc / GRANULE] < slots)
        depths[pc / GRANULE] = slots;
}

static unsigned depth_near(const uint8_t *depths, uint64_t pc) {
    unsigned slots = 0;
    if (pc >= LOW_END)
        return 0;
    for (unsigned i = 0; i < NEARBY && pc / GRANULE >= i; i++)
        if (depths[pc / GRANULE - i] > slots)
            slots = depths[pc / GRANULE - i];
    return slots * SLOT;
}

void release_note_red_zone(const struct insn *insn, const ZydisDecodedOperand *operand) {
    int64_t displacement = operand->mem.disp.value;
    if ((operand->mem.base != ZYDIS_REGISTER_RSP && operand->mem.base != ZYDIS_REGISTER_RBP) ||
        displacement >= 0 || displacement < -RED_ZONE ||
        !(operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
        return;
    // From rbp, which was pushed, one slot more.
    note_depth(stored, insn->pc,
               (-displacement + SLOT - 1) / SLOT + (operand->mem.base == ZYDIS_REGISTER_RBP));
}

// The rise of rsp by size bytes leaves them in the zone, here and where a jump leads at the end of
// the block: to the rest of the function, or to one that takes its place.
static void note_kept(const struct checked_block *b, uint64_t size) {
    unsigned count;
    const struct insn *rest = insert_rest(b->block, &count), *last = &rest[count - 1];
    uint64_t slots = (size < RED_ZONE ? size + SLOT - 1 : RED_ZONE) / SLOT;
    note_depth(kept, rest->pc, slots);
    if (last->z.meta.category == ZYDIS_CATEGORY_UNCOND_BR && last->z.raw.imm[0].size)
        note_depth(kept, insn_next(last) + last->z.raw.imm[0].value.s, slots);
}

// ---- releasing ---------------------------------------------------------------------------------
//
// Generated code releases nothing, unless it loads rsp: it need not keep to the ABI. Erlang's has
// heap and stack in one block, with less than the red zone between them, and what it would release
// is data.

// How rsp has moved, by enum stack_move.
#define MOVED(name, how)                                                                           \
    __attribute__((target("general-regs-only"))) static void name(uint32_t unused, uint64_t rsp,   \
                                                                  void *state) {                   \
        memcheck_stack_moved(((struct memcheck_thread *)state)->old_rsp, rsp, how);                \
    }
MOVED(stack_left, 0)
MOVED(stack_raised, STACK_KEEPS_ZONE)
MOVED(stack_loaded, STACK_LOADED)
MOVED(stack_loaded_and_kept, STACK_LOADED | STACK_KEEPS_ZONE)
#undef MOVED

static tool_fast_function *moved_function(bool is_loaded, bool is_kept) {
    if (is_loaded)
        return is_kept ? stack_loaded_and_kept : stack_loaded;
    return is_kept ? stack_raised : stack_left;
}

// The shadow of size bytes that end `below` bytes below rsp.
static void write_release(struct checked_block *b, unsigned size, unsigned below) {
    struct asm_memory a = asm_at(RSP, -(int)(below + size));
    for (unsigned step; size; size -= step, a.displacement += step) {
        step = checks_piece(size);
        checks_set_shadow(b->code, &a, step, -1u);
    }
}

static void write_call_after_rise(struct checked_block *b, unsigned size,
                                  tool_fast_function *moved) {
    asm_begin_gate_call(b->code);
    asm_lea(b->code, 64, RDI, asm_at32(RSP, -(int64_t)size));
    asm_store_field(b->code, RDI, OLD_RSP);
    asm_gate_call(b->code, insert_fast_gate(moved));
}

void release_after(struct checked_block *b, struct insn *insn) {
    int64_t size = release_of(insn);
    bool loaded = size < 0 && is_loaded(insn);
    if (!size || size >= INT32_MAX || (b->is_generated && !loaded))
        return;
    bool is_kept = !zone_ends_unread(b, loaded);
    if (is_kept)
        note_kept(b, size < 0 ? RED_ZONE : size);
    if (size < 0) {
        asm_begin_gate_call(b->code);
        asm_gate_call(b->code, insert_fast_gate(moved_function(loaded, is_kept)));
    } else if (size > INLINE_RELEASE) {
        write_call_after_rise(b, size, moved_function(false, is_kept));
    } else {
        write_release(b, size, is_kept ? RED_ZONE : 0);
    }
}

void release_at_call(struct checked_block *b, const struct insn *insn) {
    unsigned depth = depth_near(kept, insn->pc);
    if (depth > SLOT && !b->is_generated)
        write_release(b, depth - SLOT, SLOT); // the return address goes into the first slot
}

void release_returned(struct checked_block *b, uint64_t pc, unsigned size) {
    if (b->is_generated)
        return;
    unsigned count;
    const struct insn *all = insert_all(b->block, &count), *rest = insert_rest(b->block, &count);
    bool after_leave = rest > all && rest[-1].z.mnemonic == ZYDIS_MNEMONIC_LEAVE;
    if (!after_leave) {
        unsigned by_stores = depth_near(stored, pc), by_rises = depth_near(kept, pc);
        write_release(b, by_stores > by_rises ? by_stores : by_rises, size);
    }
    if (size > INLINE_RELEASE)
        write_call_after_rise(b, size, moved_function(false, false));
    else
        write_release(b, size, 0);
}
