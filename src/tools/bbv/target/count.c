// Counting. Generated code calls it, so it leaves vector registers alone.
//
// The rules of Valgrind, found by experiment:
// - An interval ends with the instruction that makes it longer than the interval size. What it is
//   longer by belongs to the next one as far as its length is concerned.
// - A repeated string instruction is one instruction. It is added when another instruction runs,
// and
//   to the block of that one. If that is a repeated instruction too, no block gets it.
#include "engine/tool.h"
#include "tools/bbv/target/target.h"

static void number_block(void *index) {
    bbv_blocks_number((uint32_t)(uintptr_t)index);
}

static void write_interval(void *counts) {
    bbv_records_interval(counts);
}

static void enter(struct thread *thread, uint32_t index) {
    thread->block = index;
    thread->done = 0;
    if (!bbv_blocks[index].number)
        tool_with_vectors(number_block, (void *)(uintptr_t)index);
}

static void add(struct counts *counts, uint32_t index, uint64_t instructions) {
    if (!counts->by_block[index])
        counts->touched[counts->touched_count++] = index;
    counts->by_block[index] += instructions;
    counts->in_interval += instructions;
    counts->totals->instructions += instructions;
}

static void add_to_intervals(struct counts *counts, uint32_t index, uint64_t instructions) {
    while (instructions) {
        uint64_t room = counts->in_interval < bbv_interval_size
                            ? bbv_interval_size + 1 - counts->in_interval
                            : 1;
        uint64_t part = instructions < room ? instructions : room;
        add(counts, index, part);
        instructions -= part;
        if (counts->in_interval > bbv_interval_size) {
            counts->in_interval -= bbv_interval_size;
            tool_with_vectors(write_interval, counts);
        }
    }
}

struct search {
    uint64_t pc;
    uint32_t index, instruction;
};

static void find_next(void *of) {
    struct search *search = of;
    search->index = bbv_blocks_find(search->pc);
}

static void find_address(void *of) {
    struct search *search = of;
    search->pc = bbv_blocks_address(search->index, search->instruction);
}

void bbv_count_position(struct thread *thread) {
    uint64_t left = *thread->position;
    *thread->position = 0;
    if (left && thread->repeating) {
        add(thread->counts, thread->block, 1);
        thread->repeating = 0;
    }
    while (left) {
        const struct block *block = &bbv_blocks[thread->block];
        if (thread->done >= block->length && block->length) { // the longest there is: the next one
            struct search next = {.pc = block->end};
            tool_with_vectors(find_next, &next);
            enter(thread, next.index);
            continue;
        }
        uint64_t room = block->length ? block->length - thread->done : left;
        uint64_t part = left < room ? left : room;
        add_to_intervals(thread->counts, thread->block, part);
        thread->done += (uint32_t)part;
        left -= part;
    }
}

// Whether the block that has run is not over and goes on at this address.
static bool goes_on(const struct thread *thread, uint64_t pc) {
    const struct block *block = &bbv_blocks[thread->block];
    if (thread->is_cut || !thread->done || thread->done >= block->length || pc <= block->pc ||
        pc >= block->end)
        return false;
    struct search search = {.index = thread->block, .instruction = thread->done};
    tool_with_vectors(find_address, &search);
    return search.pc == pc;
}

void bbv_count_arrival(uint32_t index, uint64_t rsp, void *state) {
    struct thread *thread = state;
    bbv_count_position(thread);
    if (!goes_on(thread, bbv_blocks[index].pc))
        enter(thread, index);
    thread->is_cut = false;
}

// The usual case: all of a block has run, which has run before in this interval, and the interval
// goes on.
TOOL_QUICK bool bbv_count_quickly(uint32_t index) {
    struct thread *thread = tool_quick_state();
    struct counts *counts = thread->counts;
    uint64_t *position = &tool_quick_words()[POSITION_WORD];
    uint64_t *count = &counts->by_block[thread->block];
    uint64_t in_interval = counts->in_interval + *position;
    if (*position != bbv_blocks[thread->block].length || thread->done || thread->repeating ||
        thread->is_cut || !*count || in_interval > bbv_interval_size || !bbv_blocks[index].number)
        return false;
    *count += *position;
    counts->in_interval = in_interval;
    counts->totals->instructions += *position;
    thread->block = index;
    *position = 0;
    return true;
}

void bbv_count_repeated(struct thread *thread, uint64_t pc) {
    struct counts *counts = thread->counts;
    bbv_count_position(thread);
    thread->done++;
    counts->totals->reps++;
    if (thread->repeating == pc)
        return;
    if (thread->repeating) {
        counts->in_interval++;
        counts->totals->instructions++;
    }
    counts->totals->unique_reps++;
    thread->repeating = pc;
}
