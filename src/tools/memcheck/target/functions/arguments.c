#include "tools/memcheck/target/functions/arguments.h"

#include "tools/memcheck/target/shadow/shadow.h"

static void report(unsigned first, unsigned count, unsigned pointers) {
    const struct shadow_registers *registers = &memcheck_thread()->registers;
    for (unsigned i = first; i < count; i++) {
        unsigned number = argument_register(i);
        if (!registers->undefined[number] || !registers->general[number])
            continue;
        if (pointers >> i & 1)
            findings_add_value(8, registers->origin[number]);
        else
            findings_add_condition(registers->origin[number]);
    }
}

void arguments_report(unsigned count, unsigned pointers) {
    report(0, count, pointers);
}

void arguments_report_one(unsigned i) {
    report(i, i + 1, 0);
}

// ---- the target's memory -----------------------------------------------------------------------

struct storing {
    uint64_t address, word;
};

static void store(void *argument) {
    const struct storing *it = argument;
    *(volatile uint64_t *)it->address = it->word;
}

bool target_store(uint64_t address, uint64_t word) {
    struct storing it = {address, word};
    uint64_t bad;
    if (shadow_check_addressable(address, 8, &bad) != SHADOW_FINE)
        findings_add_access(address, sizeof word, true);
    if (!tool_try(store, &it, &bad)) {
        tool_raise();
        return false;
    }
    shadow_make_defined(address, 8);
    return true;
}
