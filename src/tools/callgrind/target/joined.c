#include "tools/callgrind/target/joined.h"

#include "tools/callgrind/target/runs.h"
#include "tools/shared/instructions.h"

enum { LOOKED_AT = 3 }; // instructions

// Where the first instructions at some place lead.
struct way {
    enum { UNKNOWN, GOES_ON, BRANCHES } end;
    uint64_t last; // instruction
    uint64_t target, next;
    bool may_be_in_vain; // nothing before the last instruction touches memory
};

static struct way way_from(uint64_t pc) {
    struct way way = {.end = GOES_ON, .may_be_in_vain = true};
    for (unsigned i = 0; i < LOOKED_AT; i++) {
        struct tool_insn insn;
        uint8_t bytes[TOOL_INSN_BYTES];
        if (!tool_look(pc, &insn, bytes) || insn_is_repeated(&insn))
            return (struct way){.end = UNKNOWN};
        way.last = pc;
        way.next = way.target = pc += insn.size;
        if (insn.flow == TOOL_NEXT) {
            bool changes;
            way.may_be_in_vain &= !insn.access_count && !insn_is_bit_of_register(&insn, &changes);
            continue;
        }
        way.target = insn.target;
        way.end = !insn.target ? UNKNOWN : insn.flow == TOOL_BRANCH ? BRANCHES : GOES_ON;
        way.may_be_in_vain &= insn.flow == TOOL_BRANCH && !branch_uses_count(&insn);
        break;
    }
    return way;
}

static bool may_lead_to(const struct way *way, uint64_t pc) {
    return way->end == UNKNOWN || way->target == pc || (way->end == BRANCHES && way->next == pc);
}

static bool is_second(const struct way *way, uint64_t common) {
    return way->end == BRANCHES && may_lead_to(way, common);
}

bool joined_look(const struct tool_insn *first, struct joined *joined) {
    uint64_t target = first->target, next = first->pc + first->size;
    if (branch_uses_count(first) || target == next)
        return false;
    struct way taken = way_from(target), behind = way_from(next);
    if (may_lead_to(&taken, next) && may_lead_to(&behind, target))
        return false;
    joined->is_behind = is_second(&behind, target);
    if (!joined->is_behind && !is_second(&taken, next))
        return false;
    const struct way *second = joined->is_behind ? &behind : &taken;
    joined->second = second->last;
    joined->common_taken = second->target == (joined->is_behind ? target : next);
    return second->may_be_in_vain && second->target != second->next;
}
