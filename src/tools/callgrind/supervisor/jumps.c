#include "tools/callgrind/supervisor/build.h"

#include <stdlib.h>

#include "base/vector.h"

static bool jumps(const struct counts_id *id) {
    return id->kind == COUNTS_BRANCH || id->kind == COUNTS_REPEAT;
}

void jumps_start(struct counts_build *build) {
    build->with_jumps = build->header->collects_jumps;
    for (uint32_t i = 1; build->with_jumps && i < build->id_count; i++) {
        if (!jumps(&build->ids[i]))
            continue;
        bool is_new;
        uint32_t number = map_integers_add(&build->branch_map, build->ids[i].pc, &is_new);
        if (is_new)
            vector_push(build->branches, build->branch_count);
        build->branches[number] = i;
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
    uint32_t number = build->with_jumps ? map_integers_find(&build->branch_map, pc) : MAP_NONE;
    if (number == MAP_NONE)
        return;
    const struct counts_id *branch = &build->ids[build->branches[number]];
    if (branch->kind == COUNTS_REPEAT || branch->count)
        add(build, function, pc, target_of(branch), true, 0, times);
    else
        add(build, function, pc, target_of(branch), false, times, 0);
}

void jumps_taken(struct counts_build *build, uint32_t function, const struct counts_id *branch,
                 uint64_t times) {
    if (build->with_jumps)
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
    if (!build->with_jumps)
        return;
    for (uint32_t i = 1; i <= count; i++) {
        const struct counts_edge *edge = &edges[i];
        if (edge->site < build->id_count && build->ids[edge->site].kind == COUNTS_JUMP &&
            !(edge->level & COUNTS_TO_ADDRESS) && edge->function < build->function_count)
            *vector_push(build->entries, build->entry_count) =
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
