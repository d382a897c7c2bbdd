// Functions that copy, append and fill, as far as Valgrind replaces them. Copies are events of the
// mode `copy`. General registers only.
#include "tools/dhat/target/strings.h"

static void note_copy(struct call *call, uint64_t to, uint64_t from, size_t size) {
    reads(call, from, size);
    call->writes = (struct span){to, size};
    call->copies = true;
    call->copied = size;
}

static void copy(struct call *call, uint64_t to, uint64_t from, size_t size) {
    bytes_move(to, from, size);
    note_copy(call, to, from, size);
    if (to == from) // nothing at all
        call->read_count = call->writes.size = 0;
}

static void memmove_body(void *argument) {
    struct call *call = argument;
    size_t size = call->a[2];
    copy(call, call->a[0], call->a[1], size);
    bool by_words = !((call->a[0] ^ call->a[1]) & 7);
    call->cost += by_words ? size / 8 * 3 + 30 : COST_COPIED * size;
    call->result = call->a[0];
}

static void copy_bytes(struct call *call, uint64_t to, uint64_t from, size_t size) {
    copy(call, to, from, size);
    call->cost += COST_COPIED * size;
}

static void mempcpy_body(void *argument) {
    struct call *call = argument;
    copy_bytes(call, call->a[0], call->a[1], call->a[2]);
    call->result = call->a[0] + call->a[2];
}

static void copied_body(void *argument) {
    struct call *call = argument;
    copy_bytes(call, call->a[0], call->a[1], call->a[2]);
    call->result = call->a[0];
}

static void bcopy_body(void *argument) {
    struct call *call = argument;
    copy_bytes(call, call->a[1], call->a[0], call->a[2]);
}

static void copy_string(struct call *call, uint64_t to, uint64_t from) {
    size_t size = length_of(from) + 1;
    bytes_copy_up(to, from, size);
    note_copy(call, to, from, size);
    call->cost += COST_COPIED * size;
}

static void strcpy_body(void *argument) {
    struct call *call = argument;
    copy_string(call, call->a[0], call->a[1]);
    call->result = call->a[0];
}

static void stpcpy_body(void *argument) {
    struct call *call = argument;
    copy_string(call, call->a[0], call->a[1]);
    call->result = call->a[0] + call->copied - 1;
}

// Exactly `size` bytes, with zeros after the string's end.
static size_t copy_padded(struct call *call) {
    uint64_t to = call->a[0], from = call->a[1];
    size_t size = call->a[2], length = bytes_before(from, 0, 0, size);
    bytes_copy_up(to, from, length);
    bytes_fill(to + length, 0, size - length);
    note_copy(call, to, from, least(length + 1, size));
    call->writes.size = size;
    call->cost += COST_COPIED * size;
    return length;
}

static void strncpy_body(void *argument) {
    struct call *call = argument;
    copy_padded(call);
    call->result = call->a[0];
}

static void stpncpy_body(void *argument) {
    struct call *call = argument;
    call->result = call->a[0] + copy_padded(call);
}

static void append(struct call *call, size_t most) {
    size_t before = length_of(call->a[0]), length = bytes_before(call->a[1], 0, 0, most);
    uint64_t end = call->a[0] + before;
    bytes_copy_up(end, call->a[1], length);
    byte_store(end + length, 0);
    reads(call, call->a[0], before + 1);
    reads(call, call->a[1], length < most ? length + 1 : most);
    call->writes = (struct span){end, length + 1};
    call->result = call->a[0];
}

static void strcat_body(void *argument) {
    append(argument, SIZE_MAX);
}

static void strncat_body(void *argument) {
    struct call *call = argument;
    if (call->a[2]) {
        append(call, call->a[2]);
        return;
    }
    size_t before = length_of(call->a[0]);
    reads(call, call->a[0], before + 1);
    call->writes = (struct span){call->a[0] + before, 1};
    call->result = call->a[0];
}

static void wcscpy_body(void *argument) {
    struct call *call = argument;
    size_t size = WIDE * (wide_before(call->a[1], 0, 0, SIZE_MAX) + 1);
    bytes_copy_up(call->a[0], call->a[1], size);
    note_copy(call, call->a[0], call->a[1], size);
    call->cost += COST_BYTE * size / WIDE;
    call->result = call->a[0];
}

static void memset_body(void *argument) {
    struct call *call = argument;
    uint64_t to = call->a[0], size = call->a[2];
    bytes_fill(to, call->a[1], size);
    call->writes = (struct span){to, size};
    call->cost += size / 8 * 2 + 20;
    call->result = to;
}

HOOK(memmove)
HOOK(mempcpy)
HOOK(bcopy)
HOOK(strcpy)
HOOK(stpcpy)
HOOK(strncpy)
HOOK(stpncpy)
HOOK(strcat)
HOOK(strncat)
HOOK(wcscpy)
HOOK(memset)

static void on_memcpy(void) {
    on_memmove();
}

// ---- the same with the size of the destination -------------------------------------------------

static void run_if_it_fits(tool_function *body, const char *name, size_t size, size_t room) {
    if (LIKELY(size <= room))
        string_call(body);
    else
        string_functions_overflow(name);
}

static void on_memcpy_chk(void) {
    run_if_it_fits(copied_body, "memcpy_chk", argument(2), argument(3));
}

static void on_memmove_chk(void) {
    run_if_it_fits(copied_body, "memmove_chk", argument(2), argument(3));
}

static void on_mempcpy_chk(void) {
    run_if_it_fits(mempcpy_body, "mempcpy_chk", argument(2), argument(3));
}

static void on_memset_chk(void) {
    run_if_it_fits(memset_body, "memset_chk", argument(2), argument(3));
}

static void on_strcpy_chk(void) {
    run_if_it_fits(strcpy_body, "strcpy_chk", length_of(argument(1)) + 1, argument(2));
}

static void on_stpcpy_chk(void) {
    run_if_it_fits(stpcpy_body, "stpcpy_chk", length_of(argument(1)) + 1, argument(2));
}

// ---- where -------------------------------------------------------------------------------------

const struct tool_symbol replaced_copies[] = {
    COPY_FUNCTIONS,
    STRING_FUNCTION("__strcpy_chk", on_strcpy_chk),
    STRING_FUNCTION("__stpcpy_chk", on_stpcpy_chk),
    {0},
};
