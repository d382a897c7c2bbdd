#include "tools/memcheck/target/functions/access.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "tools/memcheck/target/findings/findings.h"
#include "tools/memcheck/target/shadow/origins.h"
#include "tools/memcheck/target/heap/heap.h"
#include "tools/memcheck/target/track/track.h"

// ---- findings ----------------------------------------------------------------------------------

void access_report(uint64_t address, unsigned size, bool writes, bool decides) {
    uint64_t bad;
    if (shadow_is_forbidden(address))
        tool_fault(address, writes);
    if (shadow_check_addressable(address, size, &bad) != SHADOW_FINE)
        findings_add_access(address, size, writes);
    else if (decides && shadow_check_defined(address, size, &bad) != SHADOW_FINE)
        findings_add_condition(track_origins ? shadow_origin(bad) : 0);
}

void access_copy_state(uint64_t to, uint64_t from, size_t size) {
    for (size_t i = 0; i < size; i++) {
        uint8_t bits, unused;
        if (!shadow_state(to + i, &unused))
            continue;
        if (!shadow_state(from + i, &bits))
            bits = SHADOW_UNDEFINED;
        shadow_set_bits(to + i, bits);
    }
}

void access_set_state(uint64_t address, size_t size, uint8_t bits) {
    uint8_t unused;
    for (size_t i = 0; i < size; i++)
        if (shadow_state(address + i, &unused))
            shadow_set_bits(address + i, bits);
}

// ---- running -----------------------------------------------------------------------------------

struct fault {
    const struct call *call;
    uint64_t address;
};

// Memory that is mapped but must not be touched in this way is no invalid access; the signal says
// enough.
static void report_fault(void *argument) {
    const struct fault *fault = argument;
    struct tool_mapping mapping;
    if (!tool_mapping_at(fault->address, &mapping) || fault->address < mapping.start)
        findings_add_access(fault->address, fault->call->step,
                            fault->call->writing ||
                                fault->address - fault->call->written < fault->call->written_size);
    tool_raise();
}

void access_run(tool_function *body, unsigned step, const char *name) {
    struct call call = {.step = step, .name = name};
    for (unsigned i = 0; i < ARGUMENTS; i++)
        call.a[i] = argument(i);
    uint64_t address;
    bool is_done = tool_try(body, &call, &address);
    if (UNLIKELY(!is_done && call.scanning)) {
        call.scanning = false;
        call.careful = true;
        is_done = tool_try(body, &call, &address);
    }
    if (LIKELY(is_done)) {
        set_result(call.result);
        return;
    }
    struct fault fault = {&call, address};
    tool_with_vectors(report_fault, &fault);
}
