#include "tools/memcheck/target/syscalls/syscalls.h"
#include "base/x86.h"
#include "tools/memcheck/target/track/track.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/memcheck/target/findings/findings.h"
#include "tools/memcheck/target/heap/heap.h"
#include "tools/memcheck/target/shadow/origins.h"
#include "tools/memcheck/target/shadow/registers.h"
#include "tools/memcheck/target/shadow/shadow.h"
#include "tools/memcheck/target/syscalls/pass.h"

static const uint8_t argument_registers[6] = {RDI, RSI, RDX, R10, R8, R9};

enum { NAME_SIZE = 128, WHOLE_SIZE = NAME_SIZE + 64 };

// As the name of a piece: the argument with the number that follows.
static const char of_argument[] = "%u";

// ---- names -------------------------------------------------------------------------------------

// The argument's name and how much of it counts.
static unsigned argument_named(const struct syscall_entry *entry, unsigned argument, bool *mine,
                               char *name) {
    const char *at = entry->arguments;
    for (unsigned i = 0; i < argument && *at; i++) {
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    size_t length = strcspn(at, " :?");
    snprintf(name, NAME_SIZE, "%.*s", (int)length, at);
    at += length;
    *mine = *at != '?';
    at += *at == '?';
    return *at == ':' ? 4 : 8;
}

static void whole_name(const struct pass *pass, const char *name, char *whole) {
    if (strchr(name, '('))
        snprintf(whole, WHOLE_SIZE, "%s", name);
    else
        snprintf(whole, WHOLE_SIZE, "%.60s(%s)", pass->entry->name, name);
}

static void report(const struct pass *pass, enum shadow_verdict verdict, uint64_t address,
                   const char *format, va_list words) {
    char name[NAME_SIZE], whole[WHOLE_SIZE];
    bool mine;
    if (format == of_argument)
        argument_named(pass->entry, va_arg(words, unsigned), &mine, name);
    else
        vsnprintf(name, sizeof name, format, words);
    whole_name(pass, name, whole);
    findings_add_parameter(
        whole, verdict == SHADOW_BAD_ADDRESS ? FAULT_UNADDRESSABLE : FAULT_UNDEFINED, address,
        track_origins && verdict == SHADOW_BAD_VALUE ? shadow_origin(address) : 0);
}

// ---- memory ------------------------------------------------------------------------------------

enum { LARGE_BUFFER = 1024 };

// How much of a range is mapped, from its start on. What has no shadow is not known, and so not
// doubted.
static uint64_t mapped_part(uint64_t address, uint64_t size) {
    struct tool_mapping mapping;
    uint64_t at = address;
    if (address >> 47)
        return 0;
    if (!tool_has_shadow(address, 1))
        return size;
    while (at - address < size) {
        if (!tool_mapping_at(at, &mapping) || mapping.start > at || !mapping.prot)
            return at - address;
        at = mapping.end;
    }
    return size;
}

// Servers read into large buffers what is mostly short: looking through their shadow takes longer
// than reading. A live block is addressable as a whole unless the target has said otherwise.
static bool is_inside_block(uint64_t address, uint64_t size) {
    struct heap_block block;
    return size >= LARGE_BUFFER && !shadow_has_holes && heap_find(address, &block) &&
           block.state == HEAP_LIVE && address >= block.start && size <= block.size &&
           address - block.start <= block.size - size;
}

static enum shadow_verdict check_range(uint64_t address, uint64_t size, bool values,
                                       uint64_t *bad) {
    uint64_t mapped = mapped_part(address, size);
    enum shadow_verdict verdict = SHADOW_FINE;
    if (mapped == size && !values && is_inside_block(address, size))
        return SHADOW_FINE;
    if (mapped)
        verdict = values ? shadow_check_defined(address, mapped, bad)
                         : shadow_check_addressable(address, mapped, bad);
    if (verdict != SHADOW_FINE || mapped == size)
        return verdict;
    *bad = address + mapped;
    return SHADOW_BAD_ADDRESS;
}

static void mark_defined(uint64_t address, uint64_t size) {
    uint64_t bad;
    if (shadow_check_defined(address, size, &bad) == SHADOW_FINE)
        return;
    if (shadow_check_addressable(address, size, &bad) == SHADOW_FINE)
        shadow_make_defined(address, size);
    else
        shadow_make_defined_if_addressable(address, size);
}

void pass_in(const struct pass *pass, uint64_t address, uint64_t size, const char *name, ...) {
    uint64_t bad;
    if (pass->after)
        return;
    if (pass->watcher) {
        pass->watcher->read(address, size);
        return;
    }
    enum shadow_verdict verdict = check_range(address, size, true, &bad);
    if (verdict == SHADOW_FINE)
        return;
    va_list words;
    va_start(words, name);
    report(pass, verdict, bad, name, words);
    va_end(words);
}

void pass_mark(const struct pass *pass, uint64_t address, uint64_t size) {
    if (!pass->after || !size || !address)
        return;
    if (pass->watcher)
        pass->watcher->write(address, size);
    else
        mark_defined(address, size);
}

void pass_out(const struct pass *pass, uint64_t address, uint64_t size, uint64_t written,
              const char *name, ...) {
    uint64_t bad;
    if (pass->after) {
        pass_mark(pass, address, written < size ? written : size);
        return;
    }
    if (pass->watcher)
        return;
    if (check_range(address, size, false, &bad) == SHADOW_FINE)
        return;
    va_list words;
    va_start(words, name);
    report(pass, SHADOW_BAD_ADDRESS, bad, name, words);
    va_end(words);
}

// Page by page, because the page after the string's end may not be there.
static enum shadow_verdict check_string(uint64_t address, uint64_t *bad) {
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
            check_range(address, length < step ? length + 1 : step, true, bad);
        if (verdict != SHADOW_FINE || length < step)
            return verdict;
        address += step;
    }
}

// As Valgrind tells its tools: without the first character and the end.
static void tell_string(const struct pass *pass, uint64_t address) {
    uint64_t at = address + 1;
    char byte;
    while (tool_read(&byte, at, 1) == 0 && byte)
        at++;
    pass->watcher->read(address, at - address - 1);
}

void pass_string(const struct pass *pass, uint64_t address, const char *name, ...) {
    uint64_t bad;
    if (pass->after)
        return;
    if (pass->watcher) {
        tell_string(pass, address);
        return;
    }
    enum shadow_verdict verdict = check_string(address, &bad);
    if (verdict == SHADOW_FINE)
        return;
    va_list words;
    va_start(words, name);
    report(pass, verdict, bad, name, words);
    va_end(words);
}

bool pass_read(void *to, uint64_t from, size_t size) {
    return tool_read(to, from, size) == 0;
}

// ---- registers ---------------------------------------------------------------------------------

static void check_register(const struct pass *pass, unsigned number, unsigned size,
                           const char *name) {
    const struct shadow_registers *registers = pass->registers;
    uint64_t counts = size == 8 ? ~0ul : (1ul << size * 8) - 1;
    if (registers->undefined[number] && registers->general[number] & counts)
        findings_add_parameter(name, FAULT_REGISTER, 0, registers->origin[number]);
}

void pass_register(const struct pass *pass, unsigned argument, unsigned size, const char *name) {
    char own[NAME_SIZE], whole[WHOLE_SIZE];
    bool mine;
    if (!pass->registers)
        return;
    argument_named(pass->entry, argument, &mine, own);
    whole_name(pass, name ? name : own, whole);
    check_register(pass, argument_registers[argument], size, whole);
}

static void check_registers(const struct pass *pass) {
    check_register(pass, RAX, 8, "(syscallno)");
    for (unsigned i = 0; i < 6; i++) {
        char name[NAME_SIZE], whole[WHOLE_SIZE];
        bool mine;
        unsigned size = argument_named(pass->entry, i, &mine, name);
        if (!*name)
            return;
        whole_name(pass, name, whole);
        if (mine)
            check_register(pass, argument_registers[i], size, whole);
    }
}

static bool has_undefined_argument(const struct shadow_registers *registers) {
    const uint8_t *u = registers->undefined;
    return u[RAX] | u[RDI] | u[RSI] | u[RDX] | u[R10] | u[R8] | u[R9];
}

// ---- the two passes ----------------------------------------------------------------------------

static uint64_t piece_size(const struct pass *pass, const struct piece *piece) {
    if (!piece->count)
        return piece->unit;
    uint64_t count = pass->arguments[piece->count - 1], size;
    if (piece->narrow)
        count = (uint32_t)count;
    if (!piece->unit)
        return node_mask_bytes(count);
    return __builtin_mul_overflow(count, piece->unit, &size) ? UINT64_MAX : size;
}

static void visit_piece(const struct pass *pass, const struct piece *piece) {
    uint64_t address = pass->arguments[piece->argument];
    if (!address && piece->optional)
        return;
    uint64_t size = piece_size(pass, piece);
    uint64_t written =
        piece->written == WRITTEN_RESULT ? (uint64_t)pass->result * piece->unit : size;
    const char *name = piece->name ? piece->name : of_argument;
    unsigned number = piece->argument;
    address += piece->offset;
    switch (piece->kind) {
    case PIECE_STRING:
        pass_string(pass, address, name, number);
        break;
    case PIECE_IN:
        pass_in(pass, address, size, name, number);
        break;
    case PIECE_IN_OUT:
        pass_in(pass, address, size, name, number);
        pass_mark(pass, address, written);
        break;
    case PIECE_OUT:
        pass_out(pass, address, size, written, name, number);
        break;
    }
}

static void walk(const struct pass *pass, bool pieces) {
    for (unsigned i = 0; pieces && i < PIECES && pass->entry->pieces[i].kind; i++)
        visit_piece(pass, &pass->entry->pieces[i]);
    if (pass->entry->visit)
        pass->entry->visit(pass);
}

void syscalls_before(long number, const uint64_t arguments[6]) {
    const struct shadow_registers *registers = tool_thread_state();
    struct pass pass = {.entry = syscalls_entry(number), .arguments = arguments};
    if (!pass.entry) {
        pass_unknown("system call", number);
        return;
    }
    if (has_undefined_argument(registers)) {
        pass.registers = registers;
        check_registers(&pass);
    }
    walk(&pass, true);
}

void syscalls_after(long number, const uint64_t arguments[6], long result) {
    struct shadow_registers *registers = tool_thread_state();
    registers->undefined[RAX] = registers->undefined[RCX] = registers->undefined[R11] = 0;
    struct pass pass = {
        .entry = syscalls_entry(number), .arguments = arguments, .after = true, .result = result};
    bool failed = result < 0 && result >= -4095;
    if (pass.entry && (!failed || pass.entry->on_failure))
        walk(&pass, !failed);
}

void syscalls_watch(const struct syscalls_watcher *watcher, long number,
                    const uint64_t arguments[6], bool after, long result) {
    struct pass pass = {.entry = syscalls_entry(number),
                        .arguments = arguments,
                        .after = after,
                        .result = result,
                        .watcher = watcher};
    bool failed = after && result < 0 && result >= -4095;
    if (pass.entry && (!failed || pass.entry->on_failure))
        walk(&pass, !failed);
}

// ---- what is not known -------------------------------------------------------------------------

enum { UNKNOWNS = 64 };

void pass_unknown(const char *what, unsigned long number) {
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
