#include "tools/callgrind/supervisor/build.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static uint32_t *slot_of(const struct counts_build *build, uint64_t pc) {
    uint32_t at = pc * 0x9e3779b97f4a7c15ull >> 32 & build->branch_mask;
    while (build->branches[at] && build->ids[build->branches[at]].pc != pc)
        at = (at + 1) & build->branch_mask;
    return &build->branches[at];
}

static bool jumps(const struct counts_id *id) {
    return id->kind == COUNTS_BRANCH || id->kind == COUNTS_REPEAT;
}

void jumps_start(struct counts_build *build) {
    uint32_t count = 0, room = 16;
    if (!build->header->collects_jumps)
        return;
    for (uint32_t i = 1; i < build->id_count; i++)
        count += jumps(&build->ids[i]);
    while (room < 2 * count)
        room *= 2;
    build->branches = base_allocate(room * sizeof *build->branches);
    memset(build->branches, 0, room * sizeof *build->branches);
    build->branch_mask = room - 1;
    for (uint32_t i = 1; i < build->id_count && count; i++) {
        if (jumps(&build->ids[i])) {
            *slot_of(build, build->ids[i].pc) = i;
            count--;
        }
    }
}

// A string instruction is repeated by a jump to itself.
static uint64_t target_of(const struct counts_id *id) {
    return id->kind == COUNTS_REPEAT ? id->pc : id->pc + (uint64_t)(int64_t)(int32_t)id->lengths;
}

static void add(struct counts_build *build, uint32_t function, uint64_t pc, uint64_t target,
                bool conditional, uint64_t taken, uint64_t met) {
    build_jump(build, &(struct graph_jump){.at = build_place(build, function, pc),
                                           .to = build_place(build, function, target),
                                           .conditional = conditional,
                                           .taken = taken,
                                           .met = met});
}

void jumps_met(struct counts_build *build, uint32_t function, uint64_t pc, uint64_t times) {
    uint32_t id = build->branches ? *slot_of(build, pc) : 0;
    if (!id)
        return;
    const struct counts_id *branch = &build->ids[id];
    if (branch->kind == COUNTS_REPEAT || branch->count)
        add(build, function, pc, target_of(branch), true, 0, times);
    else
        add(build, function, pc, target_of(branch), false, times, 0);
}

void jumps_taken(struct counts_build *build, uint32_t function, const struct counts_id *branch,
                 uint64_t times) {
    if (build->branches)
        add(build, function, branch->pc, target_of(branch), true, times,
            branch->kind == COUNTS_REPEAT ? times : 0);
}

// ---- indirect jumps ----------------------------------------------------------------------------

static int compare_entries(const void *a, const void *b) {
    const struct jump_entry *x = a, *y = b;
    if (x->site != y->site)
        return x->site < y->site ? -1 : 1;
    return x->target < y->target ? -1 : x->target > y->target;
}

void jumps_note_calls(struct counts_build *build, const struct counts_edge *edges, uint32_t count) {
    build->entry_count = 0;
    if (!build->branches)
        return;
    build->entries = base_reallocate(build->entries, (count + 1ul) * sizeof *build->entries);
    for (uint32_t i = 1; i <= count; i++) {
        const struct counts_edge *edge = &edges[i];
        if (edge->site < build->id_count && build->ids[edge->site].kind == COUNTS_JUMP &&
            !(edge->level & COUNTS_TO_ADDRESS) && edge->function < build->function_count)
            build->entries[build->entry_count++] =
                (struct jump_entry){edge->site, build->function_pcs[edge->function]};
    }
    if (build->entry_count)
        qsort(build->entries, build->entry_count, sizeof *build->entries, compare_entries);
}

void jumps_indirect(struct counts_build *build, uint32_t function, const struct counts_edge *edge) {
    struct jump_entry entry = {edge->site,
                               (uint64_t)(edge->level & ~COUNTS_TO_ADDRESS) << 32 | edge->function};
    bool enters = build->entry_count && bsearch(&entry, build->entries, build->entry_count,
                                                sizeof entry, compare_entries);
    if (edge->calls && !enters)
        add(build, function, build->ids[edge->site].pc, entry.target, false, edge->calls, 0);
}
