// Accesses to heap blocks: whether it is one, in place; which block, and counting, behind the block
// of code. Notes (tool.h) are reached through GS.
//
// Accesses through the same registers make a group, which is looked at once, where its first access
// is: nothing between them frees a block. The address is that of the least displacement, which is
// filled in when the group is complete.
//
// Of an address that is a register and a displacement, the register itself is asked: slots are so
// far from both ends of the area that no displacement leads from outside to one of them. The
// address is computed behind the block then. Where it is computed depends: if the instruction is a
// load, in the register that it is about to load, so that nothing need be saved; and if the load
// faults, that register has lost what it held. Else it is rcx, spilled.
#include <cpuid.h>

#include "engine/hooks/hooks.h"
#include "engine/task.h"
#include "engine/translate/builder.h"

enum {
    HEAP_BIT = 43,   // set in addresses of the heap, clear in those of the target's other memory
    SPAN_MOST = 512, // bytes of a group that is counted in place
    COUNTS_MOST = 4,
    // What of an address is above the class, less what it has beyond the shift that is wanted.
    CLASS_EXCESS = (TOOL_HEAP_START >> TOOL_HEAP_CLASS_BITS) - 2 - TOOL_HEAP_PLACE_SHIFT,
    SHIFT_MOST = TOOL_HEAP_MOST + TOOL_HEAP_PLACE_SHIFT,
    NOTE_BITS = 7,
    XMM15_OF_REX = 0x44,
};

_Static_assert(TOOL_HEAP_END - TOOL_HEAP_START == 1ul << HEAP_BIT, "");
_Static_assert(TOOL_HEAP_START % (1ul << (HEAP_BIT + 1)) == 1ul << HEAP_BIT, "");
_Static_assert(TOOL_HEAP_PLACE_SHIFT + HEAP_BIT == 64, "");
_Static_assert(TOOL_HEAP_NOTE == 1 << NOTE_BITS, "");
_Static_assert((long)SPAN_MOST << TOOL_HEAP_PLACE_SHIFT < INT32_MAX, "");

static _Thread_local uint8_t kept_vector[16] __attribute__((tls_model("local-exec")));

static int32_t displacement_of_kept(void) {
    return (int32_t)((intptr_t)kept_vector - ((intptr_t)self - task_displacement));
}

// ---- groups ------------------------------------------------------------------------------------

static void add_access(struct heap_group *group, const struct tool_access *access, unsigned reads,
                       unsigned writes) {
    int64_t end = access->displacement + access->size;
    group->accesses[group->count++] =
        (struct heap_access){access->displacement, access->size, reads, writes};
    if (access->displacement < group->from)
        group->from = access->displacement;
    if (end > group->to)
        group->to = end;
}

// 0: it is one access (of a processor's state) that is too large to be counted in place.
static uint32_t span_of(const struct heap_group *group) {
    uint64_t span = group->to - group->from;
    return span <= SPAN_MOST ? span : 0;
}

static bool belongs(const struct heap_group *group, const struct tool_access *access) {
    const struct tool_access *first = &group->first;
    int64_t from = access->displacement, to = from + access->size;
    return group->is_open && group->count < HEAP_GROUP_MOST && first->base == access->base &&
           first->index == access->index && first->scale == access->scale && !access->segment &&
           !access->narrow &&
           (to > group->to ? to : group->to) - (from < group->from ? from : group->from) <=
               SPAN_MOST;
}

static bool has_shrx(void) {
    static int known; // 1: yes, -1: no
    unsigned a, b = 0, c, d;
    if (!known)
        known = __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & bit_BMI2 ? 1 : -1;
    return known > 0;
}

// The register that the instruction at hand loads from memory and does nothing else with; -1: none.
static int loaded_register(const struct builder *b, const struct tool_access *access) {
    const struct insn *insn = b->rest;
    ZydisMnemonic mnemonic = insn->z.mnemonic;
    const ZydisDecodedOperand *to = &insn->operands[0];
    bool loads = mnemonic == ZYDIS_MNEMONIC_MOV || mnemonic == ZYDIS_MNEMONIC_MOVZX ||
                 mnemonic == ZYDIS_MNEMONIC_MOVSX || mnemonic == ZYDIS_MNEMONIC_MOVSXD;
    if (!has_shrx() || !insn->has_operands || !loads || access->segment || to->size < 32 ||
        to->type != ZYDIS_OPERAND_TYPE_REGISTER)
        return -1;
    int number = register_number(to->reg.value);
    return number != RSP && number != access->base && number != access->index ? number : -1;
}

_Static_assert((TOOL_HEAP_LEAST - 2ul) << TOOL_HEAP_CLASS_BITS > 1ul << 32, "");
_Static_assert(((TOOL_HEAP_MOST - 1ul) << TOOL_HEAP_CLASS_BITS) + (1ul << 32) < 1ul << HEAP_BIT,
               "");

// Whether the base alone tells. Flags that are kept are in rax meanwhile.
static bool can_ask_base(const struct tool_access *access, bool keeps_flags) {
    return access->base >= 0 && access->index < 0 && !access->segment && !access->narrow &&
           !(keeps_flags && access->base == RAX);
}

static void emit_ask(struct emitter *e, struct heap_group *group, unsigned reg, bool keeps_flags) {
    if (keeps_flags)
        hooks_emit_save_flags(e);
    emit8(e, 0x48 | reg >> 3);
    emit_bytes(e, (uint8_t[]){0x0f, 0xba, 0xe0 | (reg & 7), HEAP_BIT}, 4); // bt
    emit_bytes(e, (uint8_t[]){0x0f, 0x82}, 2);                             // jc
    emit32(e, 0);
    group->branch = e->at - 4;
    group->back = e->at;
    if (keeps_flags)
        hooks_emit_restore_flags(e);
}

// The address is computed in place.
static void emit_ask_address(struct emitter *e, struct heap_group *group, bool can_grow,
                             bool keeps_flags) {
    const struct tool_access *access = &group->first;
    if (group->spills_at)
        emit_spill(e, RCX);
    if (access->segment)
        emit_spill(e, RDX);
    hooks_emit_address(e, access, group->at);
    group->displacement = can_grow ? e->at - 4 : NULL;
    if (access->segment)
        emit_unspill(e, RDX);
    emit_ask(e, group, group->at, keeps_flags);
    if (group->spills_at)
        emit_unspill(e, RCX);
}

static void open_group(struct builder *b, const struct tool_access *access, unsigned reads,
                       unsigned writes, tool_line_function *beyond) {
    struct heap_group *group = &b->heap_groups[b->heap_group_count++];
    bool can_grow =
        (access->base >= 0 || access->index >= 0) && !access->segment && !access->narrow;
    bool keeps_flags = !builder_flags_are_dead(b);
    *group = (struct heap_group){.is_open = can_grow,
                                 .first = *access,
                                 .from = access->displacement,
                                 .to = access->displacement + access->size,
                                 .beyond = beyond};
    add_access(group, access, reads, writes);
    int loaded = keeps_flags ? -1 : loaded_register(b, access);
    group->at = loaded >= 0 ? (unsigned)loaded : RCX;
    group->spills_at = loaded < 0;
    group->other = group->at == RDX ? RCX : RDX;
    group->by_base = can_ask_base(access, keeps_flags);
    if (group->by_base)
        emit_ask(&b->e, group, access->base, keeps_flags);
    else
        emit_ask_address(&b->e, group, can_grow, keeps_flags);
}

void tool_insert_heap_access(struct tool_block *block, const struct tool_access *access,
                             unsigned reads, unsigned writes, tool_line_function *beyond) {
    struct builder *b = (struct builder *)block;
    for (unsigned i = b->heap_group_count; i-- > 0;)
        if (belongs(&b->heap_groups[i], access)) {
            add_access(&b->heap_groups[i], access, reads, writes);
            return;
        }
    open_group(b, access, reads, writes, beyond);
}

static bool writes_register(const struct insn *insn, int number) {
    for (unsigned i = 0; number >= 0 && i < insn->z.operand_count; i++) {
        const ZydisDecodedOperand *operand = &insn->operands[i];
        if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
            operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
            register_number(operand->reg.value) == number)
            return true;
    }
    return false;
}

// While a group is open, nothing may stop between its accesses: all of them have been counted.
void hooks_end_heap_groups(struct builder *b, const struct insn *insn, bool goes_on) {
    b->together = false;
    for (unsigned i = 0; i < b->heap_group_count; i++) {
        struct heap_group *group = &b->heap_groups[i];
        if (!goes_on || writes_register(insn, group->first.base) ||
            writes_register(insn, group->first.index))
            group->is_open = false;
        b->together |= group->is_open;
    }
}

// ---- counting ----------------------------------------------------------------------------------

// Code below has the address in the register `at` of the group, and uses `other`, which is one of
// the first eight.

// An instruction with a register and its immediate of 8 bits, or the opcode's extension.
static void emit_shift(struct emitter *e, unsigned extension, unsigned reg, unsigned count) {
    emit_bytes(e, (uint8_t[]){0x48 | reg >> 3, 0xc1, 0xc0 | extension << 3 | (reg & 7), count}, 4);
}
enum { SHL = 4, SHR = 5 };

// The operands are `to` (r/m) and `from`.
static void emit_both(struct emitter *e, uint8_t opcode, unsigned to, unsigned from) {
    emit_bytes(
        e, (uint8_t[]){0x48 | from >> 3 << 2 | to >> 3, opcode, 0xc0 | (from & 7) << 3 | (to & 7)},
        3);
}
enum { ADD_BOTH = 0x01, MOVE_BOTH = 0x89 };

// An instruction with the operand gs:[other + field of the note]; reg is a register or part of the
// opcode.
static void emit_note(struct emitter *e, const struct heap_group *group, uint8_t opcode,
                      unsigned reg, size_t field) {
    emit_bytes(e,
               (uint8_t[]){0x65, 0x48 | reg >> 3 << 2, opcode, 0x40 | (reg & 7) << 3 | group->other,
                           field},
               5);
}

static uint8_t *emit_jump_ahead(struct emitter *e, uint8_t condition) {
    emit_bytes(e, (uint8_t[]){0x0f, 0x80 | condition}, 2);
    emit32(e, 0);
    return e->at;
}

static uint8_t *emit_jump_always(struct emitter *e) {
    emit8(e, 0xe9);
    emit32(e, 0);
    return e->at;
}

static void land_here(struct emitter *e, const uint8_t *after_jump) {
    uint32_t distance = e->at - after_jump;
    memcpy((uint8_t *)after_jump - 4, &distance, 4);
}

enum { ABOVE = 7 };

// other = the distance of the note for the address, which is shifted. The jump leads away if there
// is none.
static uint8_t *emit_find(struct emitter *e, const struct heap_group *group) {
    unsigned at = group->at, other = group->other;
    // Without shrx, the address is in rcx, and the places are changed for a while.
    unsigned counter = has_shrx() ? other : at, place = has_shrx() ? at : other;
    emit_both(e, MOVE_BOTH, other, at);
    emit_shift(e, SHR, counter, TOOL_HEAP_CLASS_BITS);
    emit_bytes(e, (uint8_t[]){0x48, 0x81, 0xe8 | counter}, 3); // sub
    emit32(e, CLASS_EXCESS);
    emit_bytes(e, (uint8_t[]){0x48, 0x83, 0xf8 | counter, SHIFT_MOST}, 4); // cmp
    uint8_t *none = emit_jump_ahead(e, ABOVE);
    emit_shift(e, SHL, place, TOOL_HEAP_PLACE_SHIFT);
    if (has_shrx()) { // shrx other, at, other
        emit_bytes(e,
                   (uint8_t[]){0xc4, at >= 8 ? 0xc2 : 0xe2, 0x83 | (~other & 15) << 3, 0xf7,
                               0xc0 | other << 3 | (at & 7)},
                   5);
    } else {
        emit_store_field(e, RDX, TASK_SPILL + 8 * R8);
        emit_bytes(e, (uint8_t[]){0x48, 0xd3, 0xea}, 3); // shr rdx, cl
        emit_load_field(e, RCX, TASK_SPILL + 8 * R8);
    }
    emit_shift(e, SHL, other, NOTE_BITS);
    return none;
}

// Vectors of a small number in each lane, for saturating additions; made when first needed.
static uint64_t lanes_of(unsigned count) {
    static uint64_t places[COUNTS_MOST + 1];
    if (places[count])
        return places[count];
    struct emitter e = cache_gate_begin();
    while (emit_address(&e) & 15)
        emit8(&e, 0xcc);
    places[count] = emit_address(&e);
    for (unsigned i = 0; i < 8; i++)
        emit_bytes(&e, (uint16_t[]){count}, 2);
    cache_gate_end(&e);
    return places[count];
}

// Adds to the counters at base + place, up to 8 of them, a power of two from 2 on.
static void emit_add_lanes(struct emitter *e, unsigned base, unsigned lanes, int32_t place,
                           uint64_t amounts) {
    static const uint8_t loads[9][4] = {[2] = {0x66, XMM15_OF_REX, 0x0f, 0x6e},
                                        [4] = {0xf3, XMM15_OF_REX, 0x0f, 0x7e},
                                        [8] = {0xf3, XMM15_OF_REX, 0x0f, 0x6f}};
    static const uint8_t stores[9][4] = {[2] = {0x66, XMM15_OF_REX, 0x0f, 0x7e},
                                         [4] = {0x66, XMM15_OF_REX, 0x0f, 0xd6},
                                         [8] = {0xf3, XMM15_OF_REX, 0x0f, 0x7f}};
    emit_bytes(e, loads[lanes], 4);
    emit8(e, 0xb8 | base);
    emit32(e, place);
    emit_bytes(e, (uint8_t[]){0x66, XMM15_OF_REX, 0x0f, 0xdd, 0x3d}, 5); // paddusw, amounts
    emit32(e, amounts - (emit_address(e) + 4));
    emit_bytes(e, stores[lanes], 4);
    emit8(e, 0xb8 | base);
    emit32(e, place);
}

// The same for one, in the register `at`.
static void emit_add_one(struct emitter *e, const struct heap_group *group, int32_t place,
                         unsigned count) {
    uint8_t field = 0x40 | group->at >> 3 << 2, operand = 0x40 | group->at >> 3;
    uint8_t memory = 0x80 | (group->at & 7) << 3 | group->other;
    uint8_t low = group->at & 7;
    emit_bytes(e, (uint8_t[]){field, 0x0f, 0xb7, memory}, 4); // movzx at, word [other + place]
    emit32(e, place);
    emit_bytes(e, (uint8_t[]){0x66, operand, 0x83, 0xc0 | low, count}, 5);   // add, 16 bits
    emit_bytes(e, (uint8_t[]){0x73, 4, operand, 0x83, 0xc8 | low, 0xff}, 6); // jnc; or at, -1
    emit_bytes(e, (uint8_t[]){0x66, field, 0x89, memory}, 4);                // mov back
    emit32(e, place);
}

// The keeping of xmm15: movups fs:[kept], xmm15 and back.
static void emit_keep(struct emitter *e, bool back) {
    emit_bytes(e, (uint8_t[]){0x64, XMM15_OF_REX, 0x0f, back ? 0x10 : 0x11, 0x3c, 0x25}, 6);
    emit32(e, displacement_of_kept());
}

// The register `at` is the shifted end of the group.
static void emit_count_bytes(struct emitter *e, const struct heap_group *group) {
    bool keeps = false;
    emit_shift(e, SHR, group->at, TOOL_HEAP_PLACE_SHIFT - 1);
    emit_bytes(e, (uint8_t[]){0x48, 0xb8 | group->other}, 2); // mov other, …
    emit64(e, TOOL_HEAP_COUNTERS);
    emit_both(e, ADD_BOTH, group->other, group->at);
    for (unsigned i = 0; i < group->count; i++)
        keeps |= group->accesses[i].size > 1;
    if (keeps)
        emit_keep(e, false);
    for (unsigned i = 0; i < group->count; i++) {
        const struct heap_access *access = &group->accesses[i];
        int32_t place = 2 * (int32_t)(access->displacement - group->to);
        unsigned count = access->reads + access->writes;
        for (unsigned at = 0, lanes; at < access->size; at += lanes) {
            unsigned left = access->size - at;
            lanes = left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
            if (lanes == 1)
                emit_add_one(e, group, place + 2 * (int32_t)at, count);
            else
                emit_add_lanes(e, group->other, lanes, place + 2 * (int32_t)at, lanes_of(count));
        }
    }
    if (keeps)
        emit_keep(e, true);
}

static void emit_add_note(struct emitter *e, const struct heap_group *group, size_t field,
                          uint32_t amount) {
    if (!amount)
        return;
    emit_note(e, group, 0x81, 0, field); // add qword gs:[…], amount
    emit32(e, amount);
}

static void emit_sums(struct emitter *e, const struct heap_group *group, unsigned lane) {
    uint32_t reads = 0, writes = 0;
    for (unsigned i = 0; i < group->count; i++) {
        reads += group->accesses[i].reads * group->accesses[i].size;
        writes += group->accesses[i].writes * group->accesses[i].size;
    }
    emit_add_note(e, group, offsetof(struct tool_heap_note, reads[lane]), reads);
    emit_add_note(e, group, offsetof(struct tool_heap_note, writes[lane]), writes);
}

static void emit_return(struct emitter *e, const struct heap_group *group) {
    emit_unspill(e, group->other);
    if (group->by_base && group->spills_at)
        emit_unspill(e, group->at);
    emit_jump(e, (uint64_t)group->back);
}

// Where the description of the group is written.
static uint64_t emit_description(struct emitter *e, const struct heap_group *group) {
    while (emit_address(e) & 1)
        emit8(e, 0xcc);
    uint64_t place = emit_address(e);
    struct tool_heap_group head = {group->count, span_of(group)};
    emit_bytes(e, &head, sizeof head);
    for (unsigned i = 0; i < group->count; i++) {
        const struct heap_access *access = &group->accesses[i];
        struct tool_heap_touch touch = {access->displacement - group->from, access->size,
                                        access->reads, access->writes};
        emit_bytes(e, &touch, sizeof touch);
    }
    return place;
}

// Counts a group that lies within one block, and goes on behind this; the jump leads away if it
// does not.
static uint8_t *emit_count(struct emitter *e, const struct heap_group *group, unsigned lane) {
    emit_bytes(e, (uint8_t[]){0x48 | group->at >> 3, 0x81, 0xc0 | (group->at & 7)}, 3); // add
    emit32(e, span_of(group) << TOOL_HEAP_PLACE_SHIFT);
    emit_note(e, group, 0x3b, group->at, offsetof(struct tool_heap_note, counted_end)); // cmp
    uint8_t *not_counted = emit_jump_ahead(e, ABOVE);
    emit_sums(e, group, lane);
    emit_count_bytes(e, group);
    emit_return(e, group);
    land_here(e, not_counted);
    emit_note(e, group, 0x3b, group->at, offsetof(struct tool_heap_note, end));
    uint8_t *beyond = emit_jump_ahead(e, ABOVE);
    emit_sums(e, group, lane);
    return beyond;
}

// The function wants the address in rcx.
static void emit_beyond(struct emitter *e, const struct heap_group *group, uint64_t description) {
    bool spills = group->at != RCX && group->other != RCX;
    if (spills)
        emit_spill(e, RCX);
    if (group->at != RCX)
        emit_both(e, MOVE_BOTH, RCX, group->at);
    hooks_emit_fast_call(e, (tool_fast_function *)(void *)group->beyond, description);
    if (spills)
        emit_unspill(e, RCX);
}

static void emit_base_address(struct emitter *e, const struct heap_group *group) {
    struct tool_access access = group->first;
    access.displacement = group->from;
    if (group->spills_at)
        emit_spill(e, group->at);
    hooks_emit_address(e, &access, group->at);
}

static void write_group(struct builder *b, const struct heap_group *group) {
    static unsigned groups;
    struct emitter *e = &b->e;
    unsigned lane = groups++ % TOOL_HEAP_LANES;
    int32_t from = (int32_t)group->from;
    if (group->displacement)
        memcpy(group->displacement, &from, 4);
    land_here(e, group->branch + 4);
    if (group->by_base)
        emit_base_address(e, group);
    emit_spill(e, group->other);
    uint8_t *none = emit_find(e, group);
    uint8_t *beyond = span_of(group) ? emit_count(e, group, lane) : emit_jump_always(e);
    land_here(e, none);
    emit_return(e, group);
    uint64_t description = emit_description(e, group);
    land_here(e, beyond);
    emit_beyond(e, group, description);
    emit_return(e, group);
}

void hooks_write_heap_groups(struct builder *b) {
    for (unsigned i = 0; i < b->heap_group_count; i++) {
        if (i == 0)
            builder_state(b, STATE_WITHIN, 0);
        write_group(b, &b->heap_groups[i]);
    }
    b->heap_group_count = 0;
}
