// mem*, str* and wcs* functions, as far as Valgrind replaces them. General registers only.
//
// The C library reads by vectors, and beyond the ends of strings; these read what the function is
// about, each byte once, in the way that Valgrind's replacements do. The work is done in bulk, and
// accesses are told in ranges. Copies are events of the mode `copy`.
#include "tools/dhat/dhat.h"
#include "tools/string_functions.h"
#include "tools/words.h"

#define ALWAYS static inline __attribute__((always_inline))

enum { WIDE = 4, SPANS = 3 };

struct span {
    uint64_t start;
    size_t size;
};

struct call {
    uint64_t a[4];
    uint64_t result;
    struct span reads[SPANS], writes;
    unsigned read_count;
    bool copies;
    size_t copied;
    unsigned step; // bytes that the function looks at in one go, a power of two
    uint64_t cost;
};

static void reads(struct call *call, uint64_t start, size_t size) {
    call->reads[call->read_count++] = (struct span){start, size};
}

// By bytes, a few instructions for each.
enum { COST_CALL = 8, COST_BYTE = 4, COST_COPIED = 6, COST_TOLOWER = 14 };

static void add_copy(size_t size) {
    uint32_t point = point_here();
    if (point)
        events_add(point, size);
}

// A body may be begun anew, so what it has done is told when it has ended.
static void run(tool_function *body) {
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

#define HOOK(name)                                                                                 \
    static void on_##name(void) {                                                                  \
        run(name##_body);                                                                          \
    }

static size_t length_of(uint64_t string) {
    return bytes_before(string, 0, 0, SIZE_MAX);
}

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

// ---- copies ------------------------------------------------------------------------------------

static void copy(struct call *call, uint64_t to, uint64_t from, size_t size) {
    bytes_move(to, from, size);
    reads(call, from, size);
    call->writes = (struct span){to, size};
    call->copies = true;
    call->copied = size;
}

static void memmove_body(void *argument) {
    struct call *call = argument;
    size_t size = call->a[2];
    copy(call, call->a[0], call->a[1], size);
    if (call->a[0] == call->a[1])
        call->read_count = call->writes.size = 0;
    bool by_words = !((call->a[0] ^ call->a[1]) & 7);
    call->cost += by_words ? size / 8 * 3 + 30 : COST_COPIED * size;
    call->result = call->a[0];
}

// By bytes, and nothing at all onto itself.
static void copy_bytes(struct call *call, uint64_t to, uint64_t from, size_t size) {
    copy(call, to, from, size);
    if (to == from)
        call->read_count = call->writes.size = 0;
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
    reads(call, from, size);
    call->writes = (struct span){to, size};
    call->copies = true;
    call->copied = size;
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
    call->copied = least(length + 1, size);
    reads(call, from, call->copied);
    call->writes = (struct span){to, size};
    call->copies = true;
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
    if (call->a[2])
        append(call, call->a[2]);
    else
        reads(call, call->a[0], length_of(call->a[0]) + 1);
    if (!call->a[2])
        call->writes = (struct span){call->a[0] + call->reads[0].size - 1, 1};
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
HOOK(memset)

static void on_memcpy(void) {
    on_memmove();
}

// The same with the size of the destination.
static void run_if_it_fits(tool_function *body, const char *name, size_t size, size_t room) {
    if (LIKELY(size <= room))
        run(body);
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
    if (!count && (!until_found || ended))
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

static uint32_t wide_at(uint64_t string, size_t i) {
    return *(const volatile uint32_t *)(string + WIDE * i);
}

static size_t wide_before(uint64_t string, uint32_t a, uint32_t b, size_t most) {
    size_t i = 0;
    while (i < most && wide_at(string, i) != a && wide_at(string, i) != b)
        i++;
    return i;
}

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

static void wcscpy_body(void *argument) {
    struct call *call = argument;
    size_t size = WIDE * (wide_before(call->a[1], 0, 0, SIZE_MAX) + 1);
    bytes_copy_up(call->a[0], call->a[1], size);
    reads(call, call->a[1], size);
    call->writes = (struct span){call->a[0], size};
    call->copies = true;
    call->copied = size;
    call->cost += COST_BYTE * size / WIDE;
    call->result = call->a[0];
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
HOOK(wcscpy)
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
    STRING_FUNCTION("__strcpy_chk", on_strcpy_chk),
    STRING_FUNCTION("__stpcpy_chk", on_stpcpy_chk),
    {0},
};
