// Step 3: who of the lost blocks leads to whom.
#include "tools/memcheck/leaks_search.h"

// ---- cliques -----------------------------------------------------------------------------------

struct clique {
    struct search *search;
    uint32_t leader;
    uint32_t scanned; // the block whose pointers are being looked at
    uint32_t waiting; // blocks in the queue, used as a stack
    bool comes_back;  // another block of it points to the leader
};

static void visit_lost(void *context, uint64_t holder, uint64_t value, uint32_t number) {
    struct clique *clique = context;
    struct leak_block *blocks = clique->search->blocks.blocks;
    if (number == clique->leader) {
        clique->comes_back |= clique->scanned != number;
        return;
    }
    struct leak_block *block = &blocks[number];
    if (block->state != STATE_UNREACHED)
        return;
    blocks[clique->leader].indirect += block->size;
    block->state = LEAK_INDIRECT;
    if (number < clique->leader) {
        // It was a leader so far. All it leads to has been found then.
        blocks[clique->leader].indirect += block->indirect;
        block->clique = block->ordinal = 0;
        return;
    }
    block->clique = clique->leader;
    block->ordinal = 0;
    clique->search->queue[clique->waiting++] = number;
}

// ---- cycles ------------------------------------------------------------------------------------
//
// Blocks that lead to the leader of their clique, itself included: the strongly connected component
// that the leader is in, after Pearce. A block's ordinal is, while it is open, the smallest of
// those that it leads back to.

enum { DONE = UINT32_MAX }; // of a block that does not lead to the leader

struct frame {
    uint64_t at; // the word to look at next
    uint32_t block, ordinal;
};

// NULL for a block that is not of the clique.
static uint32_t *ordinal_of(struct clique *clique, uint32_t number, uint32_t *leaders) {
    struct leak_block *block = &clique->search->blocks.blocks[number];
    if (number == clique->leader)
        return leaders;
    return block->state == LEAK_INDIRECT && block->clique == clique->leader ? &block->ordinal
                                                                            : NULL;
}

static uint32_t count_cycle(struct clique *clique, struct frame *frames) {
    struct search *search = clique->search;
    uint32_t *open = search->queue; // finished blocks that lead to one still in `frames`
    uint32_t open_count = 0, last = 1, leaders = 1, depth = 0;
    frames[depth++] = (struct frame){
        .at = search->blocks.starts[clique->leader], .block = clique->leader, .ordinal = 1};
    while (depth) {
        struct frame *frame = &frames[depth - 1];
        uint32_t *own = ordinal_of(clique, frame->block, &leaders);
        uint32_t next = scan_next(search, frame->block, &frame->at);
        if (next != NO_BLOCK) {
            uint32_t *other = ordinal_of(clique, next, &leaders);
            if (other && !*other) {
                // This word is looked at again when the block has been followed.
                *other = ++last;
                frames[depth++] = (struct frame){
                    .at = search->blocks.starts[next], .block = next, .ordinal = last};
                continue;
            }
            if (other && *other < *own)
                *own = *other;
            frame->at += 8;
            continue;
        }
        uint32_t block = frame->block, ordinal = frame->ordinal;
        depth--;
        if (*own != ordinal) {
            open[open_count++] = block;
        } else if (depth) {
            while (open_count && *ordinal_of(clique, open[open_count - 1], &leaders) >= ordinal)
                *ordinal_of(clique, open[--open_count], &leaders) = DONE;
            *own = DONE;
        }
    }
    return open_count + 1;
}

void lost_cliques(struct search *search) {
    struct leak_blocks *blocks = &search->blocks;
    size_t frame_size = ((size_t)blocks->count + 1) * sizeof(struct frame);
    size_t cycle_size = ((size_t)blocks->count / 2 + 1) * sizeof *search->cycles;
    struct frame *frames = search_map(frame_size);
    search->cycles = search_map(cycle_size);
    for (uint32_t i = 0; i < blocks->count; i++) {
        if (blocks->blocks[i].state != STATE_UNREACHED)
            continue;
        blocks->blocks[i].indirect = 0;
        struct clique clique = {.search = search, .leader = i, .scanned = i};
        scan_block(search, i, visit_lost, &clique);
        while (clique.waiting) {
            clique.scanned = search->queue[--clique.waiting];
            scan_block(search, clique.scanned, visit_lost, &clique);
        }
        if (clique.comes_back && frames && search->cycles)
            search->cycles[search->cycle_count++] =
                (struct leak_cycle){.leader = i, .blocks = count_cycle(&clique, frames)};
    }
    search_unmap(frames, frame_size);
}
