#include "tools/memcheck/target/syscalls.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/x86.h"
#include "tools/memcheck/target/findings/findings.h"
#include "tools/memcheck/target/ranges.h"
#include "tools/memcheck/target/shadow/origins.h"
#include "tools/memcheck/target/shadow/registers.h"
#include "tools/memcheck/target/shadow/shadow.h"
#include "tools/memcheck/target/track/track.h"
#include "tools/shared/syscalls/pass.h"

static void report(const struct pass *pass, enum shadow_verdict verdict, uint64_t address,
                   const char *format, va_list words) {
    char name[PASS_WHOLE_SIZE];
    pass_format_name(pass, name, format, words);
    findings_add_parameter(
        name, verdict == SHADOW_BAD_ADDRESS ? FAULT_UNADDRESSABLE : FAULT_UNDEFINED, address,
        track_origins && verdict == SHADOW_BAD_VALUE ? shadow_origin(address) : 0);
}

// ---- memory ------------------------------------------------------------------------------------

static void mark_defined(uint64_t address, uint64_t size) {
    uint64_t bad;
    if (shadow_check_defined(address, size, &bad) == SHADOW_FINE)
        return;
    if (shadow_check_addressable(address, size, &bad) == SHADOW_FINE)
        shadow_make_defined(address, size);
    else
        shadow_make_defined_if_addressable(address, size);
}

static void check_read(const struct pass *pass, uint64_t address, uint64_t size, const char *name,
                       va_list words) {
    uint64_t bad;
    enum shadow_verdict verdict = range_check(address, size, true, &bad);
    if (verdict != SHADOW_FINE)
        report(pass, verdict, bad, name, words);
}

static void check_write(const struct pass *pass, uint64_t address, uint64_t size, const char *name,
                        va_list words) {
    uint64_t bad;
    if (range_check(address, size, false, &bad) != SHADOW_FINE)
        report(pass, SHADOW_BAD_ADDRESS, bad, name, words);
}

// Page by page, because the page after the string's end may not be there.
static enum shadow_verdict string_verdict(uint64_t address, uint64_t *bad) {
    char text[256];
    for (;;) {
        size_t step = 4096 - (address & 4095);
        if (step > sizeof text)
            step = sizeof text;
        if (tool_read(text, address, step)) {
            *bad = address;
            return SHADOW_BAD_ADDRESS;
        }
        size_t length = strnlen(text, step);
        enum shadow_verdict verdict =
            range_check(address, length < step ? length + 1 : step, true, bad);
        if (verdict != SHADOW_FINE || length < step)
            return verdict;
        address += step;
    }
}

static void check_string(const struct pass *pass, uint64_t address, const char *name,
                         va_list words) {
    uint64_t bad;
    enum shadow_verdict verdict = string_verdict(address, &bad);
    if (verdict != SHADOW_FINE)
        report(pass, verdict, bad, name, words);
}

// ---- registers ---------------------------------------------------------------------------------

static void check_register(unsigned number, unsigned size, const char *name) {
    const struct shadow_registers *registers = tool_thread_state();
    uint64_t counts = size == 8 ? ~0ul : (1ul << size * 8) - 1;
    if (registers->undefined[number] && registers->general[number] & counts)
        findings_add_parameter(name, FAULT_REGISTER, 0, registers->origin[number]);
}

static void check_argument(unsigned argument, unsigned size, const char *name) {
    static const uint8_t registers[6] = {RDI, RSI, RDX, R10, R8, R9};
    check_register(registers[argument], size, name);
}

static bool has_undefined_argument(const struct shadow_registers *registers) {
    const uint8_t *u = registers->undefined;
    return u[RAX] | u[RDI] | u[RSI] | u[RDX] | u[R10] | u[R8] | u[R9];
}

// ---- what is not known -------------------------------------------------------------------------

enum { UNKNOWNS = 64 };

static void note_unknown(const char *what, unsigned long number) {
    static _Atomic unsigned long told[UNKNOWNS]; // 0: free
    const char *verbosity = tool_option("verbosity");
    if (!verbosity || atoi(verbosity) <= 0)
        return;
    unsigned long key = number + 1 + ((unsigned long)*what << 56);
    for (unsigned i = 0; i < UNKNOWNS; i++) {
        unsigned long seen = 0;
        if (atomic_compare_exchange_strong(&told[i], &seen, key)) {
            tool_say("memcheck does not know %s 0x%lx; its memory is neither checked nor marked",
                     what, number);
            return;
        }
        if (seen == key)
            return;
    }
}

// ---- the two passes ----------------------------------------------------------------------------

static const struct syscalls_user user = {.reads = check_read,
                                          .reads_string = check_string,
                                          .writes = check_write,
                                          .wrote = mark_defined,
                                          .argument = check_argument,
                                          .unknown = note_unknown};

void memcheck_before_system_call(long number, const uint64_t arguments[6]) {
    bool is_undefined = has_undefined_argument(tool_thread_state());
    if (is_undefined && syscalls_entry(number))
        check_register(RAX, 8, "(syscallno)");
    syscalls_before(&user, number, arguments, is_undefined);
}

void memcheck_after_system_call(long number, const uint64_t arguments[6], long result) {
    struct shadow_registers *registers = tool_thread_state();
    registers->undefined[RAX] = registers->undefined[RCX] = registers->undefined[R11] = 0;
    syscalls_after(&user, number, arguments, result);
}
