// mem*, str* and wcs* functions that look at memory, as far as Valgrind replaces them; copies.c has
// those that write. General registers only.
//
// The C library reads by vectors, and beyond the ends of strings; these read what the function is
// about, each byte once, in the way that Valgrind's replacements do. The work is done in bulk, and
// accesses are told in ranges.
#include "tools/dhat/target/strings.h"

static void add_copy(size_t size) {
    uint32_t point = point_here();
    if (point)
        events_add(point, size);
}

// A body may be begun anew, so what it has done is told when it has ended.
void string_call(tool_function *body) {
    const uint64_t *registers = tool_registers();
    struct call call; // not cleared as a whole: that takes longer than most bodies
    uint64_t fault;
    for (unsigned i = 0; i < 4; i++)
        call.a[i] = registers[argument_register(i)];
    call.result = call.writes.size = call.copied = call.read_count = 0;
    call.copies = false;
    call.step = 1;
    call.cost = COST_CALL;
    if (UNLIKELY(!tool_try(body, &call, &fault))) {
        tool_raise();
        return;
    }
    for (unsigned i = 0; i < call.read_count; i++) {
        touch_read(call.reads[i].start, call.reads[i].size);
        call.cost += call.copies ? 0 : COST_BYTE * call.reads[i].size >> __builtin_ctz(call.step);
    }
    if (call.writes.size)
        touch_write(call.writes.start, call.writes.size);
    replaced_cost(call.cost);
    if (call.copies && dhat_mode == DHAT_COPY)
        add_copy(call.copied);
    replaced_return(call.result);
}

// ---- lengths and searches ----------------------------------------------------------------------

static void strlen_body(void *argument) {
    struct call *call = argument;
    call->result = length_of(call->a[0]);
    reads(call, call->a[0], call->result + 1);
}

static void strnlen_body(void *argument) {
    struct call *call = argument;
    call->result = bytes_before(call->a[0], 0, 0, call->a[1]);
    reads(call, call->a[0], least(call->result + 1, call->a[1]));
}

ALWAYS void search(struct call *call, bool to_end) {
    uint8_t wanted = call->a[1];
    size_t at = bytes_before(call->a[0], wanted, 0, SIZE_MAX);
    bool found = byte_load(call->a[0] + at) == wanted;
    reads(call, call->a[0], at + 1);
    call->result = found || to_end ? call->a[0] + at : 0;
}

static void strchr_body(void *argument) {
    search(argument, false);
}

static void strchrnul_body(void *argument) {
    search(argument, true);
}

static void strrchr_body(void *argument) {
    struct call *call = argument;
    size_t length = length_of(call->a[0]), at = length + 1;
    while (at && byte_load(call->a[0] + at - 1) != (uint8_t)call->a[1])
        at--;
    reads(call, call->a[0], length + 1);
    call->result = at ? call->a[0] + at - 1 : 0;
}

static void memchr_body(void *argument) {
    struct call *call = argument;
    uint8_t wanted = call->a[1];
    size_t size = call->a[2], at = bytes_before(call->a[0], wanted, wanted, size);
    reads(call, call->a[0], at < size ? at + 1 : size);
    call->result = at < size ? call->a[0] + at : 0;
}

static void rawmemchr_body(void *argument) {
    struct call *call = argument;
    uint8_t wanted = call->a[1];
    size_t at = bytes_before(call->a[0], wanted, wanted, SIZE_MAX);
    reads(call, call->a[0], at + 1);
    call->result = call->a[0] + at;
}

static void memrchr_body(void *argument) {
    struct call *call = argument;
    size_t at = call->a[2];
    while (at && byte_load(call->a[0] + at - 1) != (uint8_t)call->a[1])
        at--;
    size_t first = at ? at - 1 : 0;
    reads(call, call->a[0] + first, call->a[2] - first);
    call->result = at ? call->a[0] + at - 1 : 0;
}

HOOK(strlen)
HOOK(strnlen)
HOOK(strchr)
HOOK(strchrnul)
HOOK(strrchr)
HOOK(memchr)
HOOK(rawmemchr)
HOOK(memrchr)

// ---- comparing ---------------------------------------------------------------------------------

static int order(int a, int b) {
    return a < b ? -1 : a > b;
}

static unsigned folded(unsigned byte) {
    return byte - 'A' < 26 ? byte + 'a' - 'A' : byte;
}

ALWAYS void compare(struct call *call, size_t most, bool folds) {
    size_t at = 0;
    int result = 0;
    for (; at < most; at++) {
        unsigned a = byte_load(call->a[0] + at), b = byte_load(call->a[1] + at);
        result = folds ? order(folded(a), folded(b)) : order(a, b);
        if (result || !a)
            break;
    }
    size_t size = at < most ? at + 1 : most;
    reads(call, call->a[0], size);
    reads(call, call->a[1], size);
    call->result = (int64_t)result;
    if (folds)
        call->cost += 2 * COST_TOLOWER * size;
}

static void strcmp_body(void *argument) {
    compare(argument, SIZE_MAX, false);
}

static void strncmp_body(void *argument) {
    compare(argument, ((struct call *)argument)->a[2], false);
}

static void strcasecmp_body(void *argument) {
    compare(argument, SIZE_MAX, true);
}

// By words while both are aligned and alike; the word that differs is read again by bytes.
static void memcmp_body(void *argument) {
    struct call *call = argument;
    uint64_t a = call->a[0], b = call->a[1];
    size_t size = call->a[2], at = bytes_common(a, b, size), same = at & ~7ul;
    bool by_words = !((a | b) & 7);
    call->step = by_words ? 8 : 1;
    size_t read = at < size ? at + 1 : size;
    reads(call, a, read);
    reads(call, b, read);
    call->result = at < size ? (int64_t)(byte_load(a + at) - byte_load(b + at)) : 0;
    // The other reading of the word that differs.
    if (by_words && at < size && same + 8 <= size) {
        touch_read(a + same, 8);
        touch_read(b + same, 8);
    }
}

HOOK(strcmp)
HOOK(strncmp)
HOOK(strcasecmp)
HOOK(memcmp)

// ---- one in another ----------------------------------------------------------------------------
//
// Bytes are looked at many times over, and told one by one.

static uint8_t look(uint64_t address) {
    touch_read(address, 1);
    replaced_cost(COST_COPIED);
    return byte_load(address);
}

static size_t look_for_end(uint64_t string) {
    size_t length = length_of(string);
    touch_read(string, length + 1);
    replaced_cost(COST_BYTE * length);
    return length;
}

// A function that is called in between makes it read the same byte again.
static void strncasecmp_body(void *argument) {
    struct call *call = argument;
    for (size_t i = 0; i < call->a[2]; i++) {
        uint8_t a = look(call->a[0] + i), b = look(call->a[1] + i);
        int result = order(folded(a), folded(b));
        if (a && b) {
            touch_read(call->a[1] + i, 1);
            replaced_cost(2 * COST_TOLOWER);
        }
        if (a && b && result >= 0) {
            touch_read(call->a[0] + i, 1);
            touch_read(call->a[1] + i, 1);
            replaced_cost(2 * COST_TOLOWER);
        }
        call->result = (int64_t)result;
        if (result || !a)
            return;
    }
}

HOOK(strncasecmp)

ALWAYS void find_string(struct call *call, bool folds) {
    uint64_t at = call->a[0], wanted = call->a[1];
    size_t length = look_for_end(wanted);
    call->result = length ? 0 : at;
    uint8_t first = byte_load(wanted);
    for (; length; at++) {
        uint8_t byte = look(at);
        replaced_cost(folds ? COST_TOLOWER : 0);
        if (!byte)
            return;
        if (folds ? folded(byte) != folded(first) : byte != first)
            continue;
        size_t i = 0;
        for (; i < length; i++) {
            uint8_t a = look(wanted + i), b = look(at + i);
            replaced_cost(folds ? 2 * COST_TOLOWER : 0);
            if (folds ? folded(a) != folded(b) : a != b)
                break;
        }
        if (i == length) {
            call->result = at;
            return;
        }
    }
}

static void strstr_body(void *argument) {
    find_string(argument, false);
}

static void strcasestr_body(void *argument) {
    find_string(argument, true);
}

// How many bytes of the first string until one is (or is not) among those of the second.
static size_t span(struct call *call, bool until_found, bool *ended) {
    uint64_t set = call->a[1];
    size_t count = look_for_end(set), length = 0;
    *ended = !count;
    if (!count)
        return until_found ? look_for_end(call->a[0]) : 0;
    for (;; length++) {
        uint8_t byte = look(call->a[0] + length);
        *ended = !byte;
        if (!byte)
            return length;
        size_t i = 0;
        while (i < count && look(set + i) != byte)
            i++;
        if ((i < count) == until_found)
            return length;
    }
}

static void strspn_body(void *argument) {
    struct call *call = argument;
    bool ended;
    call->result = span(call, false, &ended);
}

static void strcspn_body(void *argument) {
    struct call *call = argument;
    bool ended;
    call->result = span(call, true, &ended);
}

static void strpbrk_body(void *argument) {
    struct call *call = argument;
    bool ended;
    if (!byte_load(call->a[1])) {
        touch_read(call->a[1], 1);
        return;
    }
    size_t at = span(call, true, &ended);
    call->result = ended ? 0 : call->a[0] + at;
}

HOOK(strstr)
HOOK(strcasestr)
HOOK(strspn)
HOOK(strcspn)
HOOK(strpbrk)

// ---- wide characters ---------------------------------------------------------------------------

static void wcslen_body(void *argument) {
    struct call *call = argument;
    call->step = WIDE;
    call->result = wide_before(call->a[0], 0, 0, SIZE_MAX);
    reads(call, call->a[0], WIDE * (call->result + 1));
}

static void wcsnlen_body(void *argument) {
    struct call *call = argument;
    call->step = WIDE;
    call->result = wide_before(call->a[0], 0, 0, call->a[1]);
    reads(call, call->a[0], WIDE * least(call->result + 1, call->a[1]));
}

ALWAYS void wide_compare(struct call *call, size_t most) {
    call->step = WIDE;
    size_t at = 0;
    int result = 0;
    for (; at < most; at++) {
        result = order((int)wide_at(call->a[0], at), (int)wide_at(call->a[1], at));
        if (result || !wide_at(call->a[0], at))
            break;
    }
    size_t size = WIDE * (at < most ? at + 1 : most);
    reads(call, call->a[0], size);
    reads(call, call->a[1], size);
    call->result = (int64_t)result;
}

static void wcscmp_body(void *argument) {
    wide_compare(argument, SIZE_MAX);
}

static void wcsncmp_body(void *argument) {
    wide_compare(argument, ((struct call *)argument)->a[2]);
}

static void wcschr_body(void *argument) {
    struct call *call = argument;
    call->step = WIDE;
    size_t at = wide_before(call->a[0], call->a[1], 0, SIZE_MAX);
    reads(call, call->a[0], WIDE * (at + 1));
    call->result = wide_at(call->a[0], at) == (uint32_t)call->a[1] ? call->a[0] + WIDE * at : 0;
}

static void wcsrchr_body(void *argument) {
    struct call *call = argument;
    call->step = WIDE;
    size_t length = wide_before(call->a[0], 0, 0, SIZE_MAX), at = length + 1;
    while (at && wide_at(call->a[0], at - 1) != (uint32_t)call->a[1])
        at--;
    reads(call, call->a[0], WIDE * (length + 1));
    call->result = at ? call->a[0] + WIDE * (at - 1) : 0;
}

static void wmemchr_body(void *argument) {
    struct call *call = argument;
    call->step = WIDE;
    size_t at = wide_before(call->a[0], call->a[1], call->a[1], call->a[2]);
    reads(call, call->a[0], WIDE * least(at + 1, call->a[2]));
    call->result = at < call->a[2] ? call->a[0] + WIDE * at : 0;
}

HOOK(wcslen)
HOOK(wcsnlen)
HOOK(wcscmp)
HOOK(wcsncmp)
HOOK(wcschr)
HOOK(wcsrchr)
HOOK(wmemchr)

// ---- where -------------------------------------------------------------------------------------

const struct tool_symbol replaced_strings[] = {
    STRING_FUNCTIONS,
    STRING_FUNCTION("strcasestr", on_strcasestr),
    STRING_FUNCTION("__strcasestr", on_strcasestr),
    {0},
};
