#include "tools/shared/target_errno.h"

#include <stdbool.h>

#include "tools/shared/allocators.h"

// Where it lies relative to the thread pointer is read off the function that says so:
//   glibc   [endbr64]  mov rax, [rip+N] or mov rax, N  add rax, fs:0   ret
//   musl               mov rax, fs:0                   add rax, N      ret

static uint64_t place_of_function; // __errno_location; 0: nowhere

struct tool_symbol target_errno_symbol(void) {
    return (struct tool_symbol){allocators_modules(), "__errno_location", TOOL_LOCATE, NULL,
                                &place_of_function};
}

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
    struct reading code = {.from = place_of_function};
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

struct storing {
    uint64_t address;
    int value;
};

static void store(void *argument) {
    const struct storing *it = argument;
    *(volatile int *)it->address = it->value;
}

uint64_t target_errno_set(int value) {
    static _Atomic int64_t known;
    int64_t offset = known;
    if (!place_of_function || (!offset && !find_offset(&offset)))
        return 0;
    known = offset;
    struct storing it = {tool_thread_pointer() + offset, value};
    uint64_t fault;
    return tool_try(store, &it, &fault) ? it.address : 0;
}
