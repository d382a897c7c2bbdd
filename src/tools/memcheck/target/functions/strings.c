// Strings, narrow and wide: the same bodies for elements of one byte and of four. General registers
// only. Where the usual functions find nothing wrong, they work by words.
#include "tools/memcheck/target/functions/strings.h"

#include "tools/memcheck/target/functions/access.h"
#include "tools/memcheck/target/heap/blocks.h"
#include "tools/shared/string_functions.h"
#include "tools/shared/words.h"

enum { WIDE = 4 };

ALWAYS uint32_t wide_load(uint64_t address) {
    return *(const volatile uint32_t *)address;
}

// bytes_before, from a body that can begin anew without it.
ALWAYS size_t scan(struct call *call, uint64_t start, uint8_t a, uint8_t b, size_t size) {
    call->scanning = true;
    size_t before = bytes_before(start, a, b, size);
    call->scanning = false;
    return before;
}

// ---- lengths -----------------------------------------------------------------------------------

// The number of elements before the end, at most `most`.
ALWAYS size_t length_of(struct call *call, uint64_t string, size_t most, unsigned step) {
    size_t length = 0;
    if (step == 1 && !call->careful) {
        length = scan(call, string, 0, 0, most);
        if (LIKELY(is_plain(string, length < most ? length + 1 : length)))
            return length;
        length = 0;
    }
    while (length < most && get(call, string + length * step, step))
        length++;
    return length;
}

static void strlen_body(void *argument) {
    struct call *call = argument;
    call->result = length_of(call, call->a[0], SIZE_MAX, 1);
}

static void wcslen_body(void *argument) {
    struct call *call = argument;
    call->result = length_of(call, call->a[0], SIZE_MAX, WIDE);
}

static void strnlen_body(void *argument) {
    struct call *call = argument;
    call->result = length_of(call, call->a[0], call->a[1], 1);
}

static void wcsnlen_body(void *argument) {
    struct call *call = argument;
    call->result = length_of(call, call->a[0], call->a[1], WIDE);
}

// ---- copies ------------------------------------------------------------------------------------

// Copies a string with its end; returns where the end went to.
ALWAYS uint64_t copy_string(struct call *call, uint64_t to, uint64_t from, unsigned step) {
    size_t i = 0;
    if (step == 1 && !call->careful) {
        size_t size = scan(call, from, 0, 0, SIZE_MAX) + 1;
        if (LIKELY(is_plain(from, size) && is_writable(to, size) &&
                   !overlap(to, size, from, size))) {
            call->written = to;
            call->written_size = size;
            for (; i + 8 <= size; i += 8)
                *(volatile uint64_t *)(to + i) = word_load(from + i);
            for (; i < size; i++)
                *(volatile uint8_t *)(to + i) = byte_load(from + i);
            shadow_make_defined(to, size);
            return to + size - 1;
        }
    }
    if (call->careful) {
        while (carry(call, to + i * step, from + i * step, step))
            i++;
        return to + i * step;
    }
    // Where it ends is known before anything is overwritten, so that the copy does end.
    size_t size = 1;
    while (step == 1 ? byte_load(from + size - 1) : wide_load(from + (size - 1) * step))
        size++;
    if (overlap(to, size * step, from, size * step) && to != from)
        findings_add_overlap(call->name, to, from, 0, false);
    for (i = 0; i < size; i++)
        carry(call, to + i * step, from + i * step, step);
    return to + (size - 1) * step;
}

static void strcpy_body(void *argument) {
    struct call *call = argument;
    copy_string(call, call->a[0], call->a[1], 1);
    call->result = call->a[0];
}

static void wcscpy_body(void *argument) {
    struct call *call = argument;
    copy_string(call, call->a[0], call->a[1], WIDE);
    call->result = call->a[0];
}

static void stpcpy_body(void *argument) {
    struct call *call = argument;
    call->result = copy_string(call, call->a[0], call->a[1], 1);
}

static void wcpcpy_body(void *argument) {
    struct call *call = argument;
    call->result = copy_string(call, call->a[0], call->a[1], WIDE);
}

// Exactly `size` elements, with zeros after the string's end; returns how long the string is.
ALWAYS size_t copy_padded(struct call *call, uint64_t to, uint64_t from, size_t size,
                          unsigned step) {
    size_t length = 0, copied = 0;
    while (copied < size) {
        uint64_t element = carry(call, to + copied * step, from + copied * step, step);
        copied++;
        if (!element)
            break;
        length++;
    }
    if (overlap(to, size * step, from, copied * step) && to != from)
        findings_add_overlap(call->name, to, from, size, true);
    for (; copied < size; copied++)
        put(call, to + copied * step, 0, step);
    return length;
}

static void strncpy_body(void *argument) {
    struct call *call = argument;
    copy_padded(call, call->a[0], call->a[1], call->a[2], 1);
    call->result = call->a[0];
}

static void wcsncpy_body(void *argument) {
    struct call *call = argument;
    copy_padded(call, call->a[0], call->a[1], call->a[2], WIDE);
    call->result = call->a[0];
}

static void stpncpy_body(void *argument) {
    struct call *call = argument;
    call->result = call->a[0] + copy_padded(call, call->a[0], call->a[1], call->a[2], 1);
}

static void wcpncpy_body(void *argument) {
    struct call *call = argument;
    call->result = call->a[0] + WIDE * copy_padded(call, call->a[0], call->a[1], call->a[2], WIDE);
}

static void strcat_body(void *argument) {
    struct call *call = argument;
    copy_string(call, call->a[0] + length_of(call, call->a[0], SIZE_MAX, 1), call->a[1], 1);
    call->result = call->a[0];
}

static void wcscat_body(void *argument) {
    struct call *call = argument;
    uint64_t end = call->a[0] + WIDE * length_of(call, call->a[0], SIZE_MAX, WIDE);
    copy_string(call, end, call->a[1], WIDE);
    call->result = call->a[0];
}

ALWAYS void append_part(struct call *call, unsigned step) {
    uint64_t to = call->a[0], from = call->a[1];
    size_t most = call->a[2], i;
    to += step * length_of(call, to, SIZE_MAX, step);
    for (i = 0; i < most; i++)
        if (!carry(call, to + i * step, from + i * step, step))
            break;
    if (i == most)
        put(call, to + i * step, 0, step);
    // As Valgrind has it, the text that was there counts, too.
    if (overlap(call->a[0], to + i * step - call->a[0], from, i * step))
        findings_add_overlap(call->name, call->a[0], from, most, true);
    call->result = call->a[0];
}

static void strncat_body(void *argument) {
    append_part(argument, 1);
}

static void wcsncat_body(void *argument) {
    append_part(argument, WIDE);
}

// Copies what fits into `room` elements at `to`, the end included; returns the whole length.
ALWAYS size_t copy_fitting(struct call *call, uint64_t to, uint64_t from, size_t room) {
    size_t length = length_of(call, from, SIZE_MAX, 1);
    size_t copied = !room ? 0 : length < room ? length : room - 1;
    if (room && overlap(to, copied + 1, from, copied + 1))
        findings_add_overlap(call->name, to, from, room, true);
    for (size_t i = 0; i < copied; i++)
        carry(call, to + i, from + i, 1);
    if (room)
        put(call, to + copied, 0, 1);
    return length;
}

static void strlcpy_body(void *argument) {
    struct call *call = argument;
    call->result = copy_fitting(call, call->a[0], call->a[1], call->a[2]);
}

static void strlcat_body(void *argument) {
    struct call *call = argument;
    size_t there = length_of(call, call->a[0], call->a[2], 1);
    call->result = there + copy_fitting(call, call->a[0] + there, call->a[1], call->a[2] - there);
}

static void memccpy_body(void *argument) {
    struct call *call = argument;
    uint64_t to = call->a[0], from = call->a[1];
    uint8_t last = call->a[2];
    size_t most = call->a[3], i = 0;
    bool found = false;
    while (i < most && !found) {
        found = carry(call, to + i, from + i, 1) == last;
        i++;
    }
    if (overlap(to, i, from, i) && to != from)
        findings_add_overlap("memccpy", to, from, i, true);
    call->result = found ? to + i : 0;
}

// ---- comparing ---------------------------------------------------------------------------------

ALWAYS uint8_t lower(uint64_t byte) {
    return byte - 'A' < 26 ? byte + ('a' - 'A') : byte;
}

// Wide elements compare as signed numbers, bytes as unsigned ones.
ALWAYS int64_t difference(uint64_t a, uint64_t b, unsigned step) {
    if (step == 1)
        return (int64_t)a - (int64_t)b;
    return (int32_t)a < (int32_t)b ? -1 : a != b;
}

ALWAYS int64_t compare(struct call *call, size_t most, unsigned step, bool folds) {
    uint64_t a = call->a[0], b = call->a[1];
    for (size_t i = 0; i < most; i++) {
        uint64_t x = get(call, a + i * step, step), y = get(call, b + i * step, step);
        if (folds) {
            x = lower(x);
            y = lower(y);
        }
        if (x != y)
            return difference(x, y, step);
        if (!x)
            break;
    }
    return 0;
}

// How many bytes, in whole words, two strings have in common before anything that needs a closer
// look: a difference, an end, a word of which not all is defined, the end of a page.
static size_t same_words(uint64_t a, uint64_t b, size_t most) {
    if (!tool_has_shadow(a, 4096) || !tool_has_shadow(b, 4096))
        return 0;
    size_t done = 0;
    while (done + 8 <= most) {
        if (((a + done) & 4095) > 4088 || ((b + done) & 4095) > 4088)
            break;
        uint64_t word = word_load(a + done);
        if (word != word_load(b + done) || word_zeros(word) ||
            word_load((uint64_t)shadow_of(a + done)) | word_load((uint64_t)shadow_of(b + done)))
            break;
        done += 8;
    }
    return done;
}

static void compare_narrow(struct call *call, size_t most) {
    for (;;) {
        size_t same = same_words(call->a[0], call->a[1], most);
        call->a[0] += same;
        call->a[1] += same;
        most -= same;
        // A word that needs a closer look; if all of it is the same, on with words.
        size_t part = most < 8 ? most : 8;
        call->result = compare(call, part, 1, false);
        if (call->result || part == most)
            return;
        for (size_t i = 0; i < part; i++)
            if (!byte_load(call->a[0] + i))
                return;
        call->a[0] += part;
        call->a[1] += part;
        most -= part;
    }
}

static void strcmp_body(void *argument) {
    compare_narrow(argument, SIZE_MAX);
}

static void strncmp_body(void *argument) {
    struct call *call = argument;
    compare_narrow(call, call->a[2]);
}

static void strcasecmp_body(void *argument) {
    struct call *call = argument;
    call->result = compare(call, SIZE_MAX, 1, true);
}

static void strncasecmp_body(void *argument) {
    struct call *call = argument;
    call->result = compare(call, call->a[2], 1, true);
}

static void wcscmp_body(void *argument) {
    struct call *call = argument;
    call->result = compare(call, SIZE_MAX, WIDE, false);
}

static void wcsncmp_body(void *argument) {
    struct call *call = argument;
    call->result = compare(call, call->a[2], WIDE, false);
}

static void wmemcmp_body(void *argument) {
    struct call *call = argument;
    call->result = 0;
    for (size_t i = 0; i < call->a[2] && !call->result; i++) {
        uint64_t x = get(call, call->a[0] + WIDE * i, WIDE);
        call->result = difference(x, get(call, call->a[1] + WIDE * i, WIDE), WIDE);
    }
}

// ---- looking for an element --------------------------------------------------------------------

static void memchr_body(void *argument) {
    struct call *call = argument;
    uint64_t start = call->a[0];
    uint8_t wanted = call->a[1];
    size_t size = call->a[2];
    size_t before = call->careful ? 0 : scan(call, start, wanted, wanted, size);
    if (UNLIKELY(call->careful || !is_plain(start, before < size ? before + 1 : size)))
        for (before = 0; before < size && get(call, start + before, 1) != wanted;)
            before++;
    call->result = before < size ? start + before : 0;
}

static void rawmemchr_body(void *argument) {
    struct call *call = argument;
    call->a[2] = SIZE_MAX;
    memchr_body(call);
}

static void memrchr_body(void *argument) {
    struct call *call = argument;
    call->result = 0;
    for (size_t i = call->a[2]; i-- > 0 && !call->result;)
        if (get(call, call->a[0] + i, 1) == (uint8_t)call->a[1])
            call->result = call->a[0] + i;
}

static void wmemchr_body(void *argument) {
    struct call *call = argument;
    call->result = 0;
    for (size_t i = 0; i < call->a[2] && !call->result; i++)
        if (get(call, call->a[0] + WIDE * i, WIDE) == (uint32_t)call->a[1])
            call->result = call->a[0] + WIDE * i;
}

// Where a string has the element, or ends.
ALWAYS uint64_t find_or_end(struct call *call, unsigned step) {
    uint64_t at = call->a[0], wanted = step == 1 ? (uint8_t)call->a[1] : (uint32_t)call->a[1];
    if (step == 1 && !call->careful) {
        size_t before = scan(call, at, wanted, 0, SIZE_MAX);
        if (LIKELY(is_plain(at, before + 1)))
            return at + before;
    }
    for (;; at += step) {
        uint64_t element = get(call, at, step);
        if (element == wanted || !element)
            return at;
    }
}

static void strchrnul_body(void *argument) {
    struct call *call = argument;
    call->result = find_or_end(call, 1);
}

static void strchr_body(void *argument) {
    struct call *call = argument;
    uint64_t at = find_or_end(call, 1);
    call->result = byte_load(at) == (uint8_t)call->a[1] ? at : 0;
}

static void wcschr_body(void *argument) {
    struct call *call = argument;
    uint64_t at = find_or_end(call, WIDE);
    call->result = wide_load(at) == (uint32_t)call->a[1] ? at : 0;
}

ALWAYS uint64_t find_last(struct call *call, unsigned step) {
    uint64_t wanted = step == 1 ? (uint8_t)call->a[1] : (uint32_t)call->a[1], found = 0;
    for (uint64_t at = call->a[0];; at += step) {
        uint64_t element = get(call, at, step);
        if (element == wanted)
            found = at;
        if (!element)
            return found;
    }
}

static void strrchr_body(void *argument) {
    struct call *call = argument;
    call->result = find_last(call, 1);
}

static void wcsrchr_body(void *argument) {
    struct call *call = argument;
    call->result = find_last(call, WIDE);
}

// ---- looking for strings and sets --------------------------------------------------------------

// -1: the haystack ends before the needle does.
static int begins_with(struct call *call, uint64_t at, uint64_t needle, size_t length) {
    for (size_t i = 0; i < length; i++) {
        uint64_t x = get(call, at + i, 1), y = get(call, needle + i, 1);
        if (!x)
            return -1;
        if (x != y)
            return 0;
    }
    return 1;
}

static void strstr_body(void *argument) {
    struct call *call = argument;
    uint64_t at = call->a[0], needle = call->a[1];
    size_t length = length_of(call, needle, SIZE_MAX, 1);
    int begins = 0;
    while (!begins) {
        begins = begins_with(call, at, needle, length);
        at += !begins;
    }
    call->result = begins > 0 ? at : 0;
}

struct set {
    uint64_t members[4];
};

static void read_set(struct call *call, uint64_t string, struct set *set) {
    *set = (struct set){{0}};
    uint64_t member;
    while ((member = get(call, string++, 1)))
        set->members[member / 64] |= 1ul << member % 64;
}

// The number of bytes before one whose membership in the set is `ends`, or the end.
static size_t span(struct call *call, bool ends) {
    struct set set;
    read_set(call, call->a[1], &set);
    for (size_t i = 0;; i++) {
        uint64_t byte = get(call, call->a[0] + i, 1);
        if (!byte || (set.members[byte / 64] >> byte % 64 & 1) == ends)
            return i;
    }
}

static void strspn_body(void *argument) {
    struct call *call = argument;
    call->result = span(call, false);
}

static void strcspn_body(void *argument) {
    struct call *call = argument;
    call->result = span(call, true);
}

static void strpbrk_body(void *argument) {
    struct call *call = argument;
    uint64_t at = call->a[0] + span(call, true);
    call->result = byte_load(at) ? at : 0;
}

// ---- hooks -------------------------------------------------------------------------------------

// A hook: how many arguments are looked at, which of them are pointers.
#define SHARED_HOOK(name, step, count, pointers)                                                   \
    void on_##name(void) {                                                                         \
        arguments_check(count, pointers);                                                          \
        access_run(name##_body, step, #name);                                                      \
    }
#define HOOK(name, step, count, pointers) static SHARED_HOOK(name, step, count, pointers)

SHARED_HOOK(strlen, 1, 1, 1)
HOOK(wcslen, WIDE, 1, 1)
HOOK(strnlen, 1, 2, 1)
HOOK(wcsnlen, WIDE, 2, 1)
HOOK(strcpy, 1, 2, 3)
HOOK(wcscpy, WIDE, 2, 3)
HOOK(stpcpy, 1, 2, 3)
HOOK(wcpcpy, WIDE, 2, 3)
HOOK(strncpy, 1, 3, 3)
HOOK(wcsncpy, WIDE, 3, 3)
HOOK(stpncpy, 1, 3, 3)
HOOK(wcpncpy, WIDE, 3, 3)
HOOK(strcat, 1, 2, 3)
HOOK(wcscat, WIDE, 2, 3)
HOOK(strncat, 1, 3, 3)
HOOK(wcsncat, WIDE, 3, 3)
HOOK(strlcpy, 1, 3, 3)
HOOK(strlcat, 1, 3, 3)
HOOK(memccpy, 1, 4, 3)
SHARED_HOOK(strcmp, 1, 2, 3)
HOOK(strncmp, 1, 3, 3)
SHARED_HOOK(strcasecmp, 1, 2, 3)
HOOK(strncasecmp, 1, 3, 3)
HOOK(wcscmp, WIDE, 2, 3)
HOOK(wcsncmp, WIDE, 3, 3)
HOOK(wmemcmp, WIDE, 3, 3)
HOOK(memchr, 1, 3, 1)
HOOK(rawmemchr, 1, 2, 1)
HOOK(memrchr, 1, 3, 1)
HOOK(wmemchr, WIDE, 3, 1)
SHARED_HOOK(strchr, 1, 2, 1)
HOOK(strchrnul, 1, 2, 1)
HOOK(wcschr, WIDE, 2, 1)
HOOK(strrchr, 1, 2, 1)
HOOK(wcsrchr, WIDE, 2, 1)
HOOK(strstr, 1, 2, 3)
HOOK(strspn, 1, 2, 3)
HOOK(strcspn, 1, 2, 3)
HOOK(strpbrk, 1, 2, 3)

// ---- where -------------------------------------------------------------------------------------
//
// Functions of the C library that are written in plain C, such as memmem and the __str*_chk family,
// are not replaced: what they do can be followed.

const struct tool_symbol string_symbols[] = {
    COPY_FUNCTIONS,
    STRING_FUNCTIONS,
    STRING_FUNCTION("wcpcpy", on_wcpcpy),
    STRING_FUNCTION("wcsncpy", on_wcsncpy),
    STRING_FUNCTION("wcpncpy", on_wcpncpy),
    STRING_FUNCTION("wcscat", on_wcscat),
    STRING_FUNCTION("wcsncat", on_wcsncat),
    STRING_FUNCTION("strlcpy", on_strlcpy),
    STRING_FUNCTION("strlcat", on_strlcat),
    STRING_FUNCTION("memccpy", on_memccpy),
    STRING_FUNCTION("wmemcmp", on_wmemcmp),
    STRING_FUNCTION("wmemcpy", on_wmemcpy),
    STRING_FUNCTION("wmemmove", on_wmemmove),
    STRING_FUNCTION("wmempcpy", on_wmempcpy),
    STRING_FUNCTION("__wmemcpy_chk", on_wmemcpy_chk),
    STRING_FUNCTION("__wmemmove_chk", on_wmemmove_chk),
    STRING_FUNCTION("__wmempcpy_chk", on_wmempcpy_chk),
    STRING_FUNCTION("wmemset", on_wmemset),
    STRING_FUNCTION("__wmemset_chk", on_wmemset_chk),
    STRING_FUNCTION("bzero", on_bzero),
    {0},
};
