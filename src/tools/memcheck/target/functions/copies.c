// memcpy, memmove, memset, memcmp and their kin. General registers only.
//
// The errors of a copy are those of a loop that takes the largest units which the alignment of both
// ends permits; Valgrind's users know its sizes from reports.
#include "tools/memcheck/target/functions/access.h"
#include "tools/memcheck/target/functions/strings.h"
#include "tools/shared/string_functions.h"
#include "tools/shared/words.h"

// ---- errors ------------------------------------------------------------------------------------

// The rest of a copy; going down, the addresses are those of its end.
struct rest {
    uint64_t to, from;
    size_t size;
    bool is_down, reads;
};

static void take_unit(struct rest *rest, unsigned unit) {
    if (rest->is_down) {
        rest->to -= unit;
        rest->from -= unit;
    }
    if (rest->reads)
        access_report(rest->from, unit, false, false);
    access_report(rest->to, unit, true, false);
    if (rest->reads) {
        bytes_copy_up(rest->to, rest->from, unit);
        access_copy_state(rest->to, rest->from, unit);
    }
    if (!rest->is_down) {
        rest->to += unit;
        rest->from += unit;
    }
    rest->size -= unit;
}

// By bytes to a boundary of both, by words from there; what is left by twos if possible. Filling
// memory (no reads) is only reported.
static void copy_rest(struct rest rest, bool by_bytes) {
    if (!by_bytes && !((rest.to ^ rest.from) & 7)) {
        while (rest.to & 7 && rest.size)
            take_unit(&rest, 1);
        while (rest.size >= 8)
            take_unit(&rest, 8);
    }
    if (!by_bytes && !((rest.to | rest.from) & 1) && rest.reads)
        while (rest.size >= 2)
            take_unit(&rest, 2);
    while (rest.size)
        take_unit(&rest, 1);
}

// The size of the first access, for a fault.
static unsigned first_unit(uint64_t to, uint64_t from, size_t size) {
    if (!((to | from) & 7) && size >= 8)
        return 8;
    return !((to | from) & 1) && size >= 2 ? 2 : 1;
}

// ---- copies ------------------------------------------------------------------------------------

static void __attribute__((noinline))
copy_carefully(struct call *call, size_t size, bool by_bytes) {
    uint64_t to = call->a[0], from = call->a[1];
    bool is_down = by_bytes ? to > from : to - from < size;
    struct rest rest = {is_down ? to + size : to, is_down ? from + size : from, size, is_down,
                        true};
    copy_rest(rest, by_bytes);
}

ALWAYS void copy_body(struct call *call, size_t size, bool by_bytes) {
    uint64_t to = call->a[0], from = call->a[1];
    call->step = by_bytes ? 1 : first_unit(to, from, size);
    call->written = to;
    call->written_size = size;
    bool is_fine = is_writable(to, size);
    if (LIKELY(is_fine && is_plain(from, size))) {
        bytes_move(to, from, size);
        shadow_make_defined(to, size);
    } else if (is_fine && is_writable(from, size)) { // some of it is undefined
        bytes_move(to, from, size);
        shadow_copy(to, from, size);
    } else {
        copy_carefully(call, size, by_bytes);
    }
}

static void memmove_body(void *argument) {
    struct call *call = argument;
    copy_body(call, call->a[2], false);
    call->result = call->a[0];
}

static void memcpy_body(void *argument) {
    struct call *call = argument;
    uint64_t to = call->a[0], from = call->a[1];
    size_t size = call->a[2];
    // A copy onto itself does no harm, and compilers make such copies of structures.
    if (UNLIKELY(overlap(to, size, from, size)) && to != from)
        findings_add_overlap(call->name, to, from, size, true);
    copy_body(call, size, false);
    call->result = to;
}

static void mempcpy_body(void *argument) {
    struct call *call = argument;
    uint64_t to = call->a[0], from = call->a[1];
    size_t size = call->a[2];
    if (UNLIKELY(overlap(to, size, from, size)) && to != from)
        findings_add_overlap(call->name, to, from, size, true);
    copy_body(call, size, true);
    call->result = to + size;
}

static void bcopy_body(void *argument) {
    struct call *call = argument;
    uint64_t from = call->a[0];
    call->a[0] = call->a[1];
    call->a[1] = from;
    copy_body(call, call->a[2], true);
}

void on_memmove(void) {
    arguments_check(3, 3);
    access_run(memmove_body, 1, "memmove");
}

ALWAYS void run_memcpy(const char *name) {
    arguments_check(3, 3);
    access_run(memcpy_body, 1, name);
}

void on_memcpy(void) {
    run_memcpy("memcpy");
}

ALWAYS void run_mempcpy(const char *name) {
    arguments_check(3, 3);
    access_run(mempcpy_body, 1, name);
}

void on_mempcpy(void) {
    run_mempcpy("mempcpy");
}

void on_bcopy(void) {
    arguments_check(3, 3);
    access_run(bcopy_body, 1, "bcopy");
}

// ---- the same with the size of the destination ------------------------------------------------

ALWAYS bool fits(const char *name, size_t size, size_t room) {
    if (LIKELY(size <= room))
        return true;
    string_functions_overflow(name);
    return false;
}

void on_memmove_chk(void) {
    if (fits("memmove_chk", argument(2), argument(3)))
        on_memmove();
}

void on_memcpy_chk(void) {
    if (fits("memcpy_chk", argument(2), argument(3)))
        run_memcpy("memcpy_chk");
}

void on_mempcpy_chk(void) {
    if (fits("mempcpy_chk", argument(2), argument(3)))
        run_mempcpy("mempcpy_chk");
}

// ---- elements of four bytes --------------------------------------------------------------------

static void count_in_bytes(void) {
    tool_registers()[argument_register(2)] *= sizeof(int);
}

void on_wmemmove(void) {
    count_in_bytes();
    on_memmove();
}

void on_wmemcpy(void) {
    count_in_bytes();
    on_memcpy();
}

void on_wmempcpy(void) {
    count_in_bytes();
    on_mempcpy();
}

void on_wmemmove_chk(void) {
    if (fits("wmemmove_chk", argument(2), argument(3)))
        on_wmemmove();
}

void on_wmemcpy_chk(void) {
    if (fits("wmemcpy_chk", argument(2), argument(3)))
        on_wmemcpy();
}

void on_wmempcpy_chk(void) {
    if (fits("wmempcpy_chk", argument(2), argument(3)))
        on_wmempcpy();
}

// ---- filling -----------------------------------------------------------------------------------

static void __attribute__((noinline)) report_set(uint64_t to, size_t size) {
    copy_rest((struct rest){to, to, size, false, false}, false);
}

// Undefined bits of what memory is filled with.
static uint32_t fill_bits(void) {
    const struct shadow_registers *registers = &memcheck_thread()->registers;
    unsigned number = argument_register(1);
    return registers->undefined[number] ? registers->general[number] : 0;
}

static void mark_filled(uint64_t to, size_t size, unsigned step, bool is_fine) {
    uint32_t bits = fill_bits();
    if (LIKELY(is_fine && !bits)) {
        shadow_make_defined(to, size);
        return;
    }
    for (size_t i = 0; i < size; i++)
        access_set_state(to + i, 1, bits >> i % step * 8);
}

static void memset_body(void *argument) {
    struct call *call = argument;
    uint64_t to = call->a[0];
    size_t size = call->a[2];
    call->step = !(to & 7) && size >= 8 ? 8 : 1;
    call->writing = true;
    bool is_fine = is_writable(to, size);
    if (UNLIKELY(!is_fine))
        report_set(to, size);
    bytes_fill(to, call->a[1], size);
    mark_filled(to, size, 1, is_fine);
    call->result = to;
}

static void wmemset_body(void *argument) {
    struct call *call = argument;
    uint64_t to = call->a[0];
    size_t count = call->a[2];
    bool is_fine = is_writable(to, 4 * count);
    call->writing = true;
    for (size_t i = 0; i < count; i++) {
        if (UNLIKELY(!is_fine))
            access_report(to + 4 * i, 4, true, false);
        *(volatile uint32_t *)(to + 4 * i) = call->a[1];
    }
    mark_filled(to, 4 * count, 4, is_fine);
    call->result = to;
}

// What memory is filled with may be undefined; where and how much must not.
static void check_set(void) {
    if (UNLIKELY(!arguments_are_defined(3))) {
        arguments_report(1, 1);
        arguments_report_one(2);
    }
}

void on_memset(void) {
    check_set();
    access_run(memset_body, 1, "memset");
}

void on_memset_chk(void) {
    if (fits("memset_chk", argument(2), argument(3)))
        on_memset();
}

void on_wmemset(void) {
    check_set();
    access_run(wmemset_body, 4, "wmemset");
}

void on_wmemset_chk(void) {
    if (fits("wmemset_chk", argument(2), argument(3)))
        on_wmemset();
}

void on_bzero(void) {
    uint64_t *registers = tool_registers();
    arguments_check(2, 1);
    registers[argument_register(2)] = argument(1);
    registers[argument_register(1)] = 0;
    access_run(memset_body, 1, "bzero");
}

// ---- comparing ---------------------------------------------------------------------------------

// Up to the first difference by words, if both are aligned, and by bytes from there.
static int compare_carefully(struct call *call, uint64_t a, uint64_t b, size_t size) {
    if (!((a | b) & 7)) {
        for (; size >= 8; a += 8, b += 8, size -= 8) {
            access_report(a, 8, false, true);
            access_report(b, 8, false, true);
            if (word_load(a) != word_load(b))
                break;
        }
    }
    call->step = 1;
    for (; size; a++, b++, size--) {
        int difference = (int)get(call, a, 1) - (int)get(call, b, 1);
        if (difference)
            return difference;
    }
    return 0;
}

static void memcmp_body(void *argument) {
    struct call *call = argument;
    uint64_t a = call->a[0], b = call->a[1];
    size_t size = call->a[2];
    call->step = first_unit(a, b, size) == 8 ? 8 : 1;
    if (UNLIKELY(!is_plain(a, size) || !is_plain(b, size))) {
        call->result = (int64_t)compare_carefully(call, a, b, size);
        return;
    }
    size_t at = bytes_common(a, b, size);
    call->result = 0;
    if (at < size)
        call->result = (int64_t)(byte_load(a + at) - byte_load(b + at));
}

void on_memcmp(void) {
    arguments_check(3, 3);
    access_run(memcmp_body, 1, "memcmp");
}
