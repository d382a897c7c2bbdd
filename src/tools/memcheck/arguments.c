#include "tools/memcheck/arguments.h"

#include "tools/memcheck/shadow.h"

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
    unsigned size;
};

static void store(void *argument) {
    const struct storing *it = argument;
    if (it->size == 8)
        *(volatile uint64_t *)it->address = it->word;
    else
        *(volatile uint32_t *)it->address = it->word;
}

static void report_store(void *argument) {
    const struct storing *it = argument;
    error_access(it->address, it->size, true);
}

bool target_store(uint64_t address, uint64_t word) {
    struct storing it = {address, word, 8};
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

// ---- errno -------------------------------------------------------------------------------------
//
// Where it lies relative to the thread pointer is read off the function that says so:
//   glibc   [endbr64]  mov rax, [rip+N] or mov rax, N  add rax, fs:0   ret
//   musl               mov rax, fs:0                   add rax, N      ret

uint64_t target_errno_function;
bool target_has_shadow = true;

enum { CODE = 32 };

static bool is_code(const uint8_t *code, uint64_t bytes, unsigned count) {
    for (unsigned i = 0; i < count; i++)
        if (code[i] != (uint8_t)(bytes >> 8 * i))
            return false;
    return true;
}

static int32_t number_at(const uint8_t *code) {
    return (int32_t)(code[0] | code[1] << 8 | code[2] << 16 | (uint32_t)code[3] << 24);
}

struct reading {
    uint64_t from;
    uint8_t bytes[CODE];
};

static bool read_bytes(struct reading *reading) {
    return tool_read(reading->bytes, reading->from, CODE) == 0;
}

// False: code of another kind.
static bool find_offset(int64_t *offset) {
    struct reading code = {.from = target_errno_function};
    if (!read_bytes(&code))
        return false;
    if (is_code(code.bytes, 0xfa1e0ff3, 4)) {
        code.from += 4;
        if (!read_bytes(&code))
            return false;
    }
    const uint8_t *at = code.bytes;
    if (is_code(at, 0x04034864, 4) || is_code(at, 0x048b4864, 4)) { // mov rax, fs:0
        *offset = at[9] == 0x48 && at[10] == 0x83 ? (int8_t)at[12] : number_at(at + 11);
        return at[9] == 0x48;
    }
    if (!is_code(at + 7, 0x04034864, 4))
        return false;
    if (is_code(at, 0xc0c748, 3)) {
        *offset = number_at(at + 3);
        return true;
    }
    if (!is_code(at, 0x058b48, 3))
        return false;
    return tool_read(offset, code.from + 7 + number_at(at + 3), sizeof *offset) == 0;
}

static void set_errno(void *value) {
    static _Atomic int64_t known;
    int64_t offset = known;
    if (!offset && !find_offset(&offset))
        return;
    known = offset;
    struct storing it = {tool_thread_pointer() + offset, *(int *)value, 4};
    uint64_t fault;
    if (tool_try(store, &it, &fault) && target_has_shadow)
        shadow_make_defined(it.address, 4);
}

void target_set_errno(int value) {
    if (target_errno_function)
        tool_with_vectors(set_errno, &value);
}
