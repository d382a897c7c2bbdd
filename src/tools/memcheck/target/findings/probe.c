#include "tools/memcheck/target/findings/probe.h"

#include "base/x86.h"
#include "engine/tool.h"

enum { NEAREST = 4096 };

static bool is_probe(const struct tool_access *access) {
    return access->base == RSP && access->index < 0 && !access->scattered &&
           access->displacement <= -NEAREST;
}

bool probe_is_at(uint64_t address) {
    uint64_t start, end;
    if (address >= tool_register(RSP) || !tool_own_stack(&start, &end) || address < start ||
        address >= end)
        return false;
    struct tool_insn insn;
    uint8_t bytes[TOOL_INSN_BYTES];
    if (!tool_look(tool_pc(), &insn, bytes))
        return false;
    for (unsigned i = 0; i < insn.access_count; i++)
        if (is_probe(&insn.accesses[i]) && tool_access_address(&insn.accesses[i]) == address)
            return true;
    return false;
}
