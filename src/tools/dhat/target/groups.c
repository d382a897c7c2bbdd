// Accesses to heap blocks: whether it is one, in place; which block, and counting, behind the block
// of code. Notes (heap.h) are reached through GS.
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
#include "tools/dhat/target/heap.h"

#include <cpuid.h>
#include <string.h>

#include "engine/tool.h"

enum {
    HEAP_BIT = 43,   // set in addresses of the heap, clear in those of the target's other memory
    SPAN_MOST = 512, // bytes of a group that is counted in place
    COUNTS_MOST = 4,
    // What of an address is above the class, less what it has beyond the shift that is wanted.
    CLASS_EXCESS = (HEAP_START >> HEAP_CLASS_BITS) - 2 - HEAP_PLACE_SHIFT,
    SHIFT_MOST = HEAP_MOST + HEAP_PLACE_SHIFT,
    NOTE_BITS = 7,
    XMM15 = 15,
};

_Static_assert(HEAP_END - HEAP_START == 1ul << HEAP_BIT, "");
_Static_assert(HEAP_START % (1ul << (HEAP_BIT + 1)) == 1ul << HEAP_BIT, "");
_Static_assert(HEAP_PLACE_SHIFT + HEAP_BIT == 64, "");
_Static_assert(sizeof(struct dhat_note) == 1 << NOTE_BITS, "");
_Static_assert((long)SPAN_MOST << HEAP_PLACE_SHIFT < INT32_MAX, "");

static _Thread_local uint8_t kept_vector[16] __attribute__((tls_model("local-exec")));

// Accesses through the same registers.
enum { HEAP_GROUP_MOST = 16 };
struct heap_group {
    bool is_open;      // more may come
    uint8_t at, other; // registers: of the address, and one more
    bool by_base;      // the base was asked: the address is computed behind the block
    bool spills_at;    // there, too
    struct asm_jump branch;
    uint8_t *back;
    uint8_t *displacement; // of the address; it becomes `from`. NULL: as it is
    struct tool_access first;
    int64_t from, to; // least displacement, end of the last
    unsigned count;
    struct heap_access {
        int64_t displacement;
        uint16_t size;
        uint8_t reads, writes;
    } accesses[HEAP_GROUP_MOST];
    tool_address_function *beyond;
};
// Of the block at hand; the engine's lock of code guards them.
static struct heap_group groups[INSERT_INSTRUCTIONS * TOOL_ACCESSES];
static unsigned group_count;

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
static int loaded_register(struct tool_block *block, const struct tool_access *access) {
    unsigned count;
    const struct insn *insn = insert_rest(block, &count);
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

_Static_assert((HEAP_LEAST - 2ul) << HEAP_CLASS_BITS > 1ul << 32, "");
_Static_assert(((HEAP_MOST - 1ul) << HEAP_CLASS_BITS) + (1ul << 32) < 1ul << HEAP_BIT, "");

// Whether the base alone tells. Flags that are kept are in rax meanwhile.
static bool can_ask_base(const struct tool_access *access, bool keeps_flags) {
    return access->base >= 0 && access->index < 0 && !access->segment && !access->narrow &&
           !(keeps_flags && access->base == RAX);
}

static void write_ask(struct assembler *a, struct heap_group *group, unsigned reg,
                      bool keeps_flags) {
    if (keeps_flags)
        asm_spill_flags(a);
    asm_bt_reg_imm(a, 64, reg, HEAP_BIT);
    group->branch = asm_jcc_forward(a, ASM_CARRY);
    group->back = a->at;
    if (keeps_flags)
        asm_unspill_flags(a);
}

// The address is computed in place.
static void write_ask_address(struct assembler *a, struct heap_group *group, bool can_grow,
                              bool keeps_flags) {
    const struct tool_access *access = &group->first;
    if (group->spills_at)
        asm_spill(a, RCX);
    if (access->segment)
        asm_spill(a, RDX);
    insert_access_address(a, access, group->at);
    group->displacement = can_grow ? a->displacement : NULL;
    if (access->segment)
        asm_unspill(a, RDX);
    write_ask(a, group, group->at, keeps_flags);
    if (group->spills_at)
        asm_unspill(a, RCX);
}

static void open_group(struct tool_block *block, const struct tool_access *access, unsigned reads,
                       unsigned writes, tool_address_function *beyond) {
    struct heap_group *group = &groups[group_count++];
    struct assembler *a = insert_assembler(block);
    bool can_grow =
        (access->base >= 0 || access->index >= 0) && !access->segment && !access->narrow;
    bool keeps_flags = !insert_flags_are_dead(block);
    *group = (struct heap_group){.is_open = can_grow,
                                 .first = *access,
                                 .from = access->displacement,
                                 .to = access->displacement + access->size,
                                 .beyond = beyond};
    add_access(group, access, reads, writes);
    int loaded = keeps_flags ? -1 : loaded_register(block, access);
    group->at = loaded >= 0 ? (unsigned)loaded : RCX;
    group->spills_at = loaded < 0;
    group->other = group->at == RDX ? RCX : RDX;
    group->by_base = can_ask_base(access, keeps_flags);
    if (group->by_base)
        write_ask(a, group, access->base, keeps_flags);
    else
        write_ask_address(a, group, can_grow, keeps_flags);
}

void heap_insert_access(struct tool_block *block, const struct tool_access *access, unsigned reads,
                        unsigned writes, tool_address_function *beyond) {
    for (unsigned i = group_count; i-- > 0;)
        if (belongs(&groups[i], access)) {
            add_access(&groups[i], access, reads, writes);
            return;
        }
    open_group(block, access, reads, writes, beyond);
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
void heap_end_instruction(struct tool_block *block, bool goes_on) {
    unsigned rest;
    const struct insn *insn = insert_rest(block, &rest);
    bool together = false;
    if (!group_count)
        return;
    for (unsigned i = 0; i < group_count; i++) {
        struct heap_group *group = &groups[i];
        if (!goes_on || writes_register(insn, group->first.base) ||
            writes_register(insn, group->first.index))
            group->is_open = false;
        together |= group->is_open;
    }
    tool_keep_together(block, together);
}

// ---- counting ----------------------------------------------------------------------------------

// Code below has the address in the register `at` of the group, and uses `other`, which is one of
// the first eight.

// A field of the note, whose distance is in the register `other`.
static struct asm_memory note_field(const struct heap_group *group, size_t field) {
    return asm_in_segment(ASM_GS, asm_at8(group->other, field));
}

// other = the distance of the note for the address, which is shifted. The jump leads away if there
// is none.
static struct asm_jump write_find(struct assembler *a, const struct heap_group *group) {
    unsigned at = group->at, other = group->other;
    // Without shrx, the address is in rcx, and the places are changed for a while.
    unsigned counter = has_shrx() ? other : at, place = has_shrx() ? at : other;
    asm_mov_reg_reg(a, 64, other, at);
    asm_shr_reg_imm(a, 64, counter, HEAP_CLASS_BITS);
    asm_sub_reg_imm32(a, 64, counter, CLASS_EXCESS);
    asm_cmp_reg_imm(a, 64, counter, SHIFT_MOST);
    struct asm_jump none = asm_jcc_forward(a, ASM_ABOVE);
    asm_shl_reg_imm(a, 64, place, HEAP_PLACE_SHIFT);
    if (has_shrx()) {
        asm_shrx(a, other, at, other);
    } else {
        asm_store_field(a, RDX, INSERT_SCRATCH);
        asm_shr_reg_cl(a, 64, RDX);
        asm_load_field(a, RCX, INSERT_SCRATCH);
    }
    asm_shl_reg_imm(a, 64, other, NOTE_BITS);
    return none;
}

// Vectors of a small number in each lane, for saturating additions; made when first needed.
static uint64_t places[COUNTS_MOST + 1];

void heap_code_flushed(void) {
    __builtin_memset(places, 0, sizeof places);
}

static uint64_t lanes_of(unsigned count) {
    enum { VECTOR = 16, FILLER = 0xcc }; // int3
    if (places[count])
        return places[count];
    struct assembler a = insert_gate_begin();
    asm_align(&a, VECTOR, FILLER);
    places[count] = asm_address(&a);
    for (unsigned i = 0; i < 8; i++)
        asm_bytes(&a, (uint16_t[]){count}, 2);
    insert_gate_end(&a);
    return places[count];
}

// Adds to up to 8 counters, a power of two from 2 on.
static void write_add_lanes(struct assembler *a, struct asm_memory counters, unsigned lanes,
                            uint64_t amounts) {
    unsigned width = 16 * lanes;
    asm_lanes_reg_mem(a, width, XMM15, counters);
    asm_paddusw_reg_mem(a, XMM15, asm_rip(amounts));
    asm_lanes_mem_reg(a, width, counters, XMM15);
}

// The same for one, in the register `at`.
static void write_add_one(struct assembler *a, struct asm_memory counter, unsigned at,
                          unsigned count) {
    asm_movzx_reg_mem(a, at, 16, counter);
    asm_add_reg_imm(a, 16, at, (int32_t)count);
    struct asm_jump fits = asm_jcc_short(a, ASM_NOT_CARRY);
    asm_or_reg_imm(a, 32, at, -1);
    asm_land(a, fits);
    asm_mov_mem_reg(a, 16, counter, at);
}

static void write_count_access(struct assembler *a, const struct heap_group *group,
                               const struct heap_access *access) {
    int32_t place = 2 * (int32_t)(access->displacement - group->to);
    unsigned count = access->reads + access->writes;
    for (unsigned at = 0, lanes; at < access->size; at += lanes) {
        unsigned left = access->size - at;
        struct asm_memory counters = asm_at32(group->other, place + 2 * (int32_t)at);
        lanes = left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
        if (lanes == 1)
            write_add_one(a, counters, group->at, count);
        else
            write_add_lanes(a, counters, lanes, lanes_of(count));
    }
}

// The register `at` is the shifted end of the group.
static void write_count_bytes(struct assembler *a, const struct heap_group *group) {
    bool keeps = false;
    asm_shr_reg_imm(a, 64, group->at, HEAP_PLACE_SHIFT - 1);
    asm_mov_reg_imm64(a, group->other, HEAP_COUNTERS);
    asm_add_reg_reg(a, 64, group->other, group->at);
    for (unsigned i = 0; i < group->count; i++)
        keeps |= group->accesses[i].size > 1;
    if (keeps)
        asm_vector_mem_reg(a, 128, asm_thread_local(kept_vector), XMM15);
    for (unsigned i = 0; i < group->count; i++)
        write_count_access(a, group, &group->accesses[i]);
    if (keeps)
        asm_vector_reg_mem(a, 128, XMM15, asm_thread_local(kept_vector));
}

static void write_add_note(struct assembler *a, const struct heap_group *group, size_t field,
                           uint32_t amount) {
    if (amount)
        asm_add_mem_imm32(a, 64, note_field(group, field), (int32_t)amount);
}

static void write_sums(struct assembler *a, const struct heap_group *group, unsigned lane) {
    uint32_t reads = 0, writes = 0;
    for (unsigned i = 0; i < group->count; i++) {
        reads += group->accesses[i].reads * group->accesses[i].size;
        writes += group->accesses[i].writes * group->accesses[i].size;
    }
    write_add_note(a, group, offsetof(struct dhat_note, reads[lane]), reads);
    write_add_note(a, group, offsetof(struct dhat_note, writes[lane]), writes);
}

static void write_return(struct assembler *a, const struct heap_group *group) {
    asm_unspill(a, group->other);
    if (group->by_base && group->spills_at)
        asm_unspill(a, group->at);
    asm_jmp(a, (uint64_t)group->back);
}

// Where the description of the group is written.
static uint64_t write_description(struct assembler *a, const struct heap_group *group) {
    enum { FILLER = 0xcc }; // int3
    asm_align(a, 2, FILLER);
    uint64_t place = asm_address(a);
    struct heap_touches head = {group->count, span_of(group)};
    asm_bytes(a, &head, sizeof head);
    for (unsigned i = 0; i < group->count; i++) {
        const struct heap_access *access = &group->accesses[i];
        struct heap_touch touch = {access->displacement - group->from, access->size, access->reads,
                                   access->writes};
        asm_bytes(a, &touch, sizeof touch);
    }
    return place;
}

// Counts a group that lies within one block, and goes on behind this; the jump leads away if it
// does not.
static struct asm_jump write_count(struct assembler *a, const struct heap_group *group,
                                   unsigned lane) {
    asm_add_reg_imm32(a, 64, group->at, (int32_t)(span_of(group) << HEAP_PLACE_SHIFT));
    asm_cmp_reg_mem(a, 64, group->at, note_field(group, offsetof(struct dhat_note, counted_end)));
    struct asm_jump not_counted = asm_jcc_forward(a, ASM_ABOVE);
    write_sums(a, group, lane);
    write_count_bytes(a, group);
    write_return(a, group);
    asm_land(a, not_counted);
    asm_cmp_reg_mem(a, 64, group->at, note_field(group, offsetof(struct dhat_note, end)));
    struct asm_jump beyond = asm_jcc_forward(a, ASM_ABOVE);
    write_sums(a, group, lane);
    return beyond;
}

// The function wants the address in rcx.
static void write_beyond(struct tool_block *block, const struct heap_group *group,
                         uint64_t description) {
    struct assembler *a = insert_assembler(block);
    bool spills = group->at != RCX && group->other != RCX;
    if (spills)
        asm_spill(a, RCX);
    if (group->at != RCX)
        asm_mov_reg_reg(a, 64, RCX, group->at);
    tool_insert_fast_call(block, TOOL_ALWAYS, (tool_fast_function *)(void *)group->beyond,
                          description);
    if (spills)
        asm_unspill(a, RCX);
}

static void write_base_address(struct assembler *a, const struct heap_group *group) {
    struct tool_access access = group->first;
    access.displacement = group->from;
    if (group->spills_at)
        asm_spill(a, group->at);
    insert_access_address(a, &access, group->at);
}

static void write_group(struct tool_block *block, const struct heap_group *group) {
    static unsigned written;
    struct assembler *a = insert_assembler(block);
    unsigned lane = written++ % DHAT_LANES;
    int32_t from = (int32_t)group->from;
    if (group->displacement)
        memcpy(group->displacement, &from, 4);
    asm_land(a, group->branch);
    if (group->by_base)
        write_base_address(a, group);
    asm_spill(a, group->other);
    struct asm_jump none = write_find(a, group);
    struct asm_jump beyond = span_of(group) ? write_count(a, group, lane) : asm_jmp_forward(a);
    asm_land(a, none);
    write_return(a, group);
    uint64_t description = write_description(a, group);
    asm_land(a, beyond);
    write_beyond(block, group, description);
    write_return(a, group);
}

void heap_end_block(struct tool_block *block) {
    for (unsigned i = 0; i < group_count; i++) {
        if (i == 0)
            insert_state(block, INSERT_WITHIN, 0);
        write_group(block, &groups[i]);
    }
    group_count = 0;
}
