#include "tools/memcheck/target/functions/arguments.h"

#include "tools/memcheck/target/shadow/shadow.h"

struct check {
    unsigned first, count, pointers;
};

static void report(void *argument) {
    const struct check *check = argument;
    const struct shadow_registers *registers = &memcheck_thread()->registers;
    for (unsigned i = check->first; i < check->count; i++) {
        unsigned number = argument_register(i);
        if (!registers->undefined[number] || !registers->general[number])
            continue;
        if (check->pointers >> i & 1)
            error_value(8, registers->origin[number]);
        else
            error_condition(registers->origin[number]);
    }
}

void arguments_report(unsigned count, unsigned pointers) {
    struct check check = {0, count, pointers};
    tool_with_vectors(report, &check);
}

void arguments_report_one(unsigned i) {
    struct check check = {i, i + 1, 0};
    tool_with_vectors(report, &check);
}

// ---- the target's memory -----------------------------------------------------------------------

struct storing {
    uint64_t address, word;
};

static void store(void *argument) {
    const struct storing *it = argument;
    *(volatile uint64_t *)it->address = it->word;
}

static void report_store(void *argument) {
    const struct storing *it = argument;
    error_access(it->address, sizeof it->word, true);
}

bool target_store(uint64_t address, uint64_t word) {
    struct storing it = {address, word};
    uint64_t bad;
    if (shadow_check_addressable(address, 8, &bad) != SHADOW_FINE)
        tool_with_vectors(report_store, &it);
    if (!tool_try(store, &it, &bad)) {
        tool_raise();
        return false;
    }
    shadow_make_defined(address, 8);
    return true;
}
