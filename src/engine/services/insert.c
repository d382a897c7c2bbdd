// The inserter (tool/insert.h).
#include "engine/cache/version.h"
#include "engine/hooks/hooks.h"
#include "engine/memory/memory.h"
#include "engine/task.h"
#include "engine/translate/builder.h"

static struct builder *builder_of(struct tool_block *block) {
    return (struct builder *)block;
}

// ---- the block at hand -------------------------------------------------------------------------

struct assembler *insert_assembler(struct tool_block *block) {
    return &builder_of(block)->code;
}

uint64_t insert_block_pc(const struct tool_block *block) {
    return ((const struct builder *)block)->start;
}

bool insert_is_generated(const struct tool_block *block) {
    struct space_range range;
    uint64_t pc = insert_block_pc(block);
    return !space_find(&target_space, pc, &range) || range.start > pc ||
           range.attributes.flags & SPACE_SHARED ||
           (!(range.attributes.flags & SPACE_FILE) && range.attributes.tag != SPACE_MODULE &&
            range.attributes.tag != SPACE_VDSO);
}

struct insn *insert_all(const struct tool_block *block, unsigned *count) {
    const struct builder *b = (const struct builder *)block;
    *count = b->all_count;
    return (struct insn *)b->all;
}

struct insn *insert_rest(const struct tool_block *block, unsigned *count) {
    const struct builder *b = (const struct builder *)block;
    *count = b->rest_count;
    return (struct insn *)b->rest;
}

bool insert_flags_are_dead(struct tool_block *block) {
    return builder_flags_are_dead(builder_of(block));
}

bool insert_flags_are_dead_behind(struct tool_block *block) {
    return builder_flags_are_dead_behind(builder_of(block));
}

void insert_state(struct tool_block *block, enum insert_state state, uint16_t spilled) {
    static const enum state_kind kinds[] = {
        [INSERT_CLEAN] = STATE_CLEAN, [INSERT_WITHIN] = STATE_WITHIN, [INSERT_CHECK] = STATE_CHECK};
    builder_state(builder_of(block), kinds[state], spilled);
}

void insert_for_pc(struct tool_block *block, uint64_t pc) {
    builder_of(block)->pc = pc;
}

// ---- addresses and calls -----------------------------------------------------------------------

static unsigned scale_bits(unsigned scale) {
    return scale == 8 ? 3 : scale == 4 ? 2 : scale == 2;
}

void insert_access_address(struct assembler *a, const struct tool_access *access, unsigned to) {
    if (access->base < 0 && access->index < 0) {
        asm_mov_reg_imm(a, to, access->displacement);
    } else {
        // The displacement has 32 bits and an index byte, whatever it is: tools patch it.
        struct asm_memory memory = asm_indexed(access->base, access->index,
                                               scale_bits(access->scale), access->displacement);
        memory.form = ASM_LONG;
        asm_lea(a, access->narrow ? 32 : 64, to, memory);
    }
    if (access->segment) {
        asm_load_field(a, RDX, access->segment == SEGMENT_FS ? TASK_FS_BASE : TASK_GS_BASE);
        asm_lea_sum(a, to, to, RDX);
    }
}

uint64_t insert_fast_gate(tool_fast_function *function) {
    return cache_gate_to(function);
}

struct saved_call {
    uint64_t pc;
    tool_function *function;
    void *argument;
};

__attribute__((target("general-regs-only"))) static void run_saved(void *argument) {
    const struct saved_call *call = argument;
    self->pc = call->pc;
    call->function(call->argument);
}

void insert_saved_call(struct tool_block *block, tool_function *fn, void *argument) {
    struct builder *b = builder_of(block);
    struct saved_call *call = block_memory(sizeof *call);
    *call = (struct saved_call){b->pc, fn, argument};
    asm_begin_gate_call(&b->code);
    asm_mov_reg_imm(&b->code, RDI, (uint64_t)call);
    asm_gate_call(&b->code, cache_gate_saved(run_saved));
}

struct assembler insert_gate_begin(void) {
    return cache_gate_begin();
}

void insert_gate_end(const struct assembler *a) {
    cache_gate_end(a);
}

// ---- exits and versions ------------------------------------------------------------------------

struct tool_version insert_version(const struct tool_block *block) {
    return version_get(((const struct builder *)block)->version);
}

void insert_exits_to(struct tool_block *block, uint64_t set) {
    builder_of(block)->exit_set = set;
}

void insert_exit_by(struct tool_block *block, struct asm_jump jump, uint64_t target) {
    builder_exit_by(builder_of(block), jump, target);
}

void insert_failed_by(struct tool_block *block, struct asm_jump jump, uint64_t set) {
    builder_force_by(builder_of(block), jump, set);
}

void insert_exit(struct tool_block *block, uint64_t target) {
    builder_jump_exit(builder_of(block), target);
}

struct switch_site {
    uint64_t pc;
    unsigned version;
    insert_chooser *choose;
    void *argument;
    struct block *last; // where it went on last
    uint64_t exit;      // code that leaves the block for a version that is not there yet
};

__attribute__((target("general-regs-only"))) static void run_switch(void *argument) {
    struct switch_site *site = argument;
    uint64_t set;
    self->entry = 0;
    if (!site->choose(site->argument, &set))
        return;
    bool forced = version_get(site->version).forced;
    struct block *block = __atomic_load_n(&site->last, __ATOMIC_ACQUIRE);
    if (!block || block->dead || version_get(block->version).set != set) {
        unsigned version = version_find(set, forced);
        block = version == NO_VERSION ? NULL : block_find(site->pc, version);
        __atomic_store_n(&site->last, block, __ATOMIC_RELEASE);
    }
    self->entry = block ? cache_start + block->code + block->direct_entry : site->exit;
    if (!block) {
        self->wanted_set = set;
        self->forced = forced;
    }
}

void insert_switch(struct tool_block *block, insert_chooser *choose, void *argument,
                   const uint8_t *back) {
    struct builder *b = builder_of(block);
    struct assembler *a = &b->code;
    struct switch_site *site = block_memory(sizeof *site);
    builder_saved_call(b, run_switch, site);
    struct asm_jump stays = builder_jump_if_zero(b, 64, TASK_ENTRY);
    asm_unspill(a, RCX);
    asm_jmp_mem(a, asm_task(TASK_ENTRY));
    *site = (struct switch_site){.pc = b->start,
                                 .version = b->version,
                                 .choose = choose,
                                 .argument = argument,
                                 .exit = asm_address(a)};
    builder_exit_inline(b, EXIT_SWITCH, b->start);
    asm_land(a, stays);
    asm_unspill(a, RCX);
    asm_jmp(a, (uint64_t)back);
}
