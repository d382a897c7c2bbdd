// Replaced functions of the C library: their results against the library's own, and their errors.
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <wchar.h>

#include "base/x86.h"
#include "engine/tool.h"
#include "memcheck_engine.h"
#include "tools/memcheck/target/heap/heap.h"
#include "tools/memcheck/target/memcheck.h"
#include "tools/memcheck/target/functions/quick.h"
#include "tools/memcheck/target/shadow/shadow.h"
#include "unit.h"

static void start(void) {
    static bool is_started;
    if (!is_started) {
        engine_start();
        heap_start();
    }
    is_started = true;
    engine_forget_errors();
    engine_raised = false;
}

static uint64_t call4(const char *name, uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
    engine_registers[RDI] = a;
    engine_registers[RSI] = b;
    engine_registers[RDX] = c;
    engine_registers[RCX] = d;
    for (const struct tool_symbol *symbol = heap_symbols; symbol->name; symbol++) {
        if (strcmp(symbol->name, name) == 0 && symbol->kind == TOOL_REPLACE) {
            symbol->hook();
            return engine_registers[RAX];
        }
    }
    printf("# no replacement of %s\n", name);
    exit(2);
}

static uint64_t call(const char *name, uint64_t a, uint64_t b, uint64_t c) {
    return call4(name, a, b, c, 0);
}

// ---- against the C library ---------------------------------------------------------------------

// Two pages of target memory, the page after them missing.
static uint64_t end_of_pages(void) {
    static uint64_t pages;
    if (!pages) {
        pages = tool_map(3 * 4096, 4096);
        munmap((void *)(pages + 2 * 4096), 4096);
    }
    shadow_make_defined(pages, 2 * 4096);
    return pages + 2 * 4096;
}

static uint64_t state = 1;

static unsigned random_below(unsigned most) {
    state = state * 6364136223846793005 + 1442695040888963407;
    return (unsigned)(state >> 33) % most;
}

enum { ROUNDS = 4000 };

// A string of few different letters that ends where memory does, or a little before.
static char *random_string(uint64_t end) {
    unsigned length = random_below(random_below(8) ? 24 : 300);
    char *string = (char *)end - length - 1 - random_below(12);
    for (unsigned i = 0; i < length; i++)
        string[i] = "abAB\xc3"[random_below(random_below(3) ? 2 : 5)];
    string[length] = 0;
    return string;
}

static int sign(long long value) {
    return (value > 0) - (value < 0);
}

#define SAME(name, result, ...)                                                                    \
    do {                                                                                           \
        uint64_t same_result = (uint64_t)(result);                                                 \
        if (call4(name, __VA_ARGS__) != same_result)                                               \
            unit_fail(__FILE__, __LINE__, "%s: %#lx, not %#lx (a=\"%s\" b=\"%s\" n=%zu)", name,    \
                      engine_registers[RAX], same_result, a, b, n);                                \
    } while (0)
#define SAME_SIGN(name, result, ...)                                                               \
    do {                                                                                           \
        if (sign((int)call4(name, __VA_ARGS__)) != sign(result))                                   \
            unit_fail(__FILE__, __LINE__, "%s of \"%s\" and \"%s\", n=%zu", name, a, b, n);        \
    } while (0)
#define A ((uint64_t)a)
#define B ((uint64_t)b)

TEST(reading_functions_return_what_the_library_returns) {
    start();
    uint64_t other = tool_map(8192, 4096) + 8192;
    for (unsigned i = 0; i < ROUNDS; i++) {
        char *a = random_string(end_of_pages()), *b = random_string(other);
        size_t n = random_below(40), room = strlen(a) + 1;
        int c = "abAB\xc3xy"[random_below(7)];
        if (i % 3 == 0 && room <= 200)
            strcpy(b = (char *)other - 1000, a); // equal as a rule, or a prefix
        if (i % 9 == 0)
            strcat(b, "a");
        size_t least = room < n ? room : n;
        SAME("strlen", strlen(a), A, 0, 0, 0);
        SAME("strnlen", strnlen(a, n), A, n, 0, 0);
        SAME_SIGN("strcmp", strcmp(a, b), A, B, 0, 0);
        SAME_SIGN("strncmp", strncmp(a, b, n), A, B, n, 0);
        SAME_SIGN("strcasecmp", strcasecmp(a, b), A, B, 0, 0);
        SAME_SIGN("strncasecmp", strncasecmp(a, b, n), A, B, n, 0);
        SAME("strchr", strchr(a, c), A, c, 0, 0);
        SAME("strchr", strchr(a, 0), A, 0, 0, 0);
        SAME("strchrnul", strchrnul(a, c), A, c, 0, 0);
        SAME("strrchr", strrchr(a, c), A, c, 0, 0);
        SAME("strrchr", strrchr(a, 0), A, 0, 0, 0);
        SAME("strstr", strstr(a, b), A, B, 0, 0);
        SAME("strspn", strspn(a, b), A, B, 0, 0);
        SAME("strcspn", strcspn(a, b), A, B, 0, 0);
        SAME("strpbrk", strpbrk(a, b), A, B, 0, 0);
        SAME("memchr", memchr(a, c, least), A, c, least, 0);
        SAME("memrchr", memrchr(a, c, least), A, c, least, 0);
        SAME("rawmemchr", rawmemchr(a, 0), A, 0, 0, 0);
        size_t common = strlen(b) + 1 < room ? strlen(b) + 1 : room;
        SAME_SIGN("memcmp", memcmp(a, b, common), A, B, common, 0);
    }
    CHECK_EQ(engine_error_count, 0);
    CHECK(!engine_raised);
}

// Runs a function on a copy of some memory natively, on another with the replacement; both must
// come out the same.
enum { AREA = 1000 };
static uint8_t before[AREA], native[AREA];

static void fill_randomly(uint8_t *area, uint64_t *ours) {
    for (unsigned i = 0; i < AREA; i++)
        area[i] = random_below(30) ? 'a' + random_below(26) : 0;
    area[AREA - 1] = 0;
    memcpy(native, area, AREA);
    memcpy((void *)*ours, area, AREA);
    shadow_make_undefined(*ours, AREA);
    shadow_make_defined(*ours, AREA);
}

#define COPIES(name, expression, result, c, d)                                                     \
    do {                                                                                           \
        uint8_t *to = native + to_at;                                                              \
        const uint8_t *from = native + from_at;                                                    \
        uint64_t wanted = (uint64_t)(expression);                                                  \
        uint64_t got = call4(name, ours + to_at, ours + from_at, c, d);                            \
        if (wanted != got && wanted - (uint64_t)native != got - ours)                              \
            unit_fail(__FILE__, __LINE__, "%s returned %#lx", name, got);                          \
        if (memcmp(native, (void *)ours, AREA) != 0)                                               \
            unit_fail(__FILE__, __LINE__, "%s(+%u, +%u, %zu)", name, to_at, from_at, n);           \
        (void)to, (void)from;                                                                      \
    } while (0)

TEST(copying_functions_copy_as_the_library_does) {
    start();
    uint64_t ours = tool_map(4096, 4096) + 7;
    for (unsigned i = 0; i < ROUNDS; i++) {
        unsigned to_at = random_below(300), from_at = 650 + random_below(40);
        size_t n = random_below(random_below(5) ? 20 : 290);
        char *volatile to_c = (char *)native + to_at, *volatile from_c = (char *)native + from_at;
        fill_randomly(before, &ours);
        switch (i % 14) {
        case 0:
            COPIES("memcpy", memcpy(to, from, n), 0, n, 0);
            break;
        case 1:
            COPIES("mempcpy", mempcpy(to, from, n), 0, n, 0);
            break;
        case 2:
            COPIES("strcpy", strcpy(to_c, from_c), 0, 0, 0);
            break;
        case 3:
            COPIES("strncpy", strncpy(to_c, from_c, n), 0, n, 0);
            break;
        case 4:
            COPIES("stpcpy", stpcpy(to_c, from_c), 0, 0, 0);
            break;
        case 5:
            COPIES("stpncpy", stpncpy(to_c, from_c, n), 0, n, 0);
            break;
        case 6:
            COPIES("strcat", strcat(to_c, from_c), 0, 0, 0);
            break;
        case 7:
            COPIES("strncat", strncat(to_c, from_c, n), 0, n, 0);
            break;
        case 8:
            COPIES("memccpy", memccpy(to, from, 'q', n), 0, 'q', n);
            break;
        case 9:
            COPIES("__memcpy_chk", memcpy(to, from, n), 0, n, n);
            break;
        case 10:
            from_at = to_at + random_below(40); // overlapping
            COPIES("memmove", memmove(to, native + from_at, n), 0, n, 0);
            break;
        case 11:
            from_at = to_at;
            to_at += random_below(40);
            COPIES("memmove", memmove(native + to_at, native + from_at, n), 0, n, 0);
            break;
        case 12:
            call("memset", ours + to_at, 'z', n);
            memset(native + to_at, 'z', n);
            CHECK(memcmp(native, (void *)ours, AREA) == 0);
            break;
        case 13:
            call("bzero", ours + to_at, n, 0);
            memset(native + to_at, 0, n);
            CHECK(memcmp(native, (void *)ours, AREA) == 0);
            break;
        }
        if (engine_error_count)
            NOTE("%s in round %u", engine_errors[0].what, i);
        CHECK_EQ(engine_error_count, 0);
    }
}

TEST(wide_functions_do_what_the_library_does) {
    start();
    wchar_t *ours = (wchar_t *)tool_map(4096, 4096), *other = ours + 200, *third = ours + 400;
    for (unsigned i = 0; i < 500; i++) {
        unsigned length = random_below(30);
        for (unsigned j = 0; j < length; j++)
            ours[j] = other[j] = L"ab\x10000"[random_below(3)];
        ours[length] = other[length] = 0;
        if (length && i % 2)
            other[random_below(length)] = i % 4 == 1 ? -5 : 'c';
        uint64_t a = (uint64_t)ours, b = (uint64_t)other, c = (uint64_t)third;
        size_t n = random_below(35);
        CHECK_EQ(call("wcslen", a, 0, 0), wcslen(ours));
        CHECK_EQ(call("wcsnlen", a, n, 0), wcsnlen(ours, n));
        CHECK_EQ(sign((int)call("wcscmp", a, b, 0)), sign(wcscmp(ours, other)));
        CHECK_EQ(sign((int)call("wcsncmp", a, b, n)), sign(wcsncmp(ours, other, n)));
        CHECK_EQ(sign((int)call("wmemcmp", a, b, length)), sign(wmemcmp(ours, other, length)));
        CHECK_EQ(call("wcschr", a, 'b', 0), (uint64_t)wcschr(ours, 'b'));
        CHECK_EQ(call("wcsrchr", a, 'b', 0), (uint64_t)wcsrchr(ours, 'b'));
        CHECK_EQ(call("wmemchr", a, 'b', length), (uint64_t)wmemchr(ours, 'b', length));
        CHECK_EQ(call("wcscpy", c, a, 0), c);
        CHECK_EQ(wcscmp(third, ours), 0);
        CHECK_EQ(call("wcscat", c, b, 0), c);
        CHECK_EQ(wcslen(third), 2 * length);
        CHECK_EQ(call("wmemset", c, 'x', n), c);
        CHECK(n == 0 || third[n - 1] == 'x');
        CHECK_EQ(call("wmemcpy", c, b, length + 1), c);
        CHECK_EQ(wcscmp(third, other), 0);
    }
    CHECK_EQ(engine_error_count, 0);
}

// ---- what is known of copies -------------------------------------------------------------------

static uint64_t make(size_t size) {
    return heap_allocate(size, 0, HEAP_MALLOC, false);
}

TEST(undefined_bytes_are_copied_without_a_word) {
    start();
    uint64_t from = make(100), to = make(100);
    shadow_make_defined(from, 50);
    shadow_set_bits(from + 20, 0x80);
    call("memcpy", to, from, 100);
    CHECK_EQ(*shadow_of(to + 19), 0);
    CHECK_EQ(*shadow_of(to + 20), 0x80);
    CHECK_EQ(*shadow_of(to + 49), 0);
    CHECK_EQ(*shadow_of(to + 50), 0xff);
    call("memmove", to + 1, to, 99);
    CHECK_EQ(*shadow_of(to + 21), 0x80);
    CHECK_EQ(*shadow_of(to + 99), 0xff);
    call("memset", to, 3, 100);
    CHECK_EQ(*shadow_of(to + 21), 0);
    CHECK_EQ(*shadow_of(to + 99), 0);
    CHECK_EQ(engine_error_count, 0);
}

TEST(memory_filled_with_an_undefined_value_is_undefined) {
    start();
    uint64_t to = make(40);
    struct shadow_registers *registers =
        &((struct memcheck_thread *)tool_thread_state())->registers;
    registers->undefined[RSI] = 1;
    registers->general[RSI] = 0x0102f0;
    call("memset", to, 3, 8);
    CHECK_EQ(*shadow_of(to + 7), 0xf0);
    call("wmemset", to, 3, 4);
    CHECK_EQ(*shadow_of(to + 12), 0xf0);
    CHECK_EQ(*shadow_of(to + 13), 0x02);
    CHECK_EQ(*shadow_of(to + 15), 0);
    CHECK_EQ(engine_error_count, 0);
    registers->undefined[RSI] = 0;
}

TEST(undefined_arguments_are_reported) {
    start();
    uint64_t block = make(40);
    shadow_make_defined(block, 40);
    struct shadow_registers *registers =
        &((struct memcheck_thread *)tool_thread_state())->registers;
    registers->undefined[RDX] = 1;
    registers->general[RDX] = 0xff;
    registers->undefined[RAX] = 1;
    call("memcpy", block, block + 20, 8);
    CHECK_EQ(engine_error_count, 1);
    CHECK_STR(engine_errors[0].what, "condition");
    CHECK_EQ(registers->undefined[RAX], 0); // the result is defined
    registers->undefined[RDX] = 0;
    registers->undefined[RDI] = 1;
    registers->general[RDI] = 1;
    call("strlen", block + 39, 0, 0);
    CHECK_STR(engine_errors[1].what, "value");
    registers->undefined[RDI] = 0;
}

// ---- errors ------------------------------------------------------------------------------------

static void expect(unsigned at, const char *what, uint64_t address, size_t size, bool writes) {
    CHECK(at < engine_error_count);
    CHECK_STR(engine_errors[at].what, what);
    CHECK_EQ(engine_errors[at].address, address);
    CHECK_EQ(engine_errors[at].size, size);
    CHECK_EQ(engine_errors[at].writes, writes);
}

TEST(copies_beyond_the_end_are_reported_by_the_units_of_their_alignment) {
    start();
    uint64_t from = make(10), to = make(100), tight = make(37);
    memset((void *)from, 1, 10);
    shadow_make_defined(from, 10);
    call("memcpy", to, from, 14); // 8 2 2 2
    CHECK_EQ(engine_error_count, 2);
    expect(0, "access", from + 10, 2, false);
    expect(1, "access", from + 12, 2, false);
    CHECK_EQ(((uint8_t *)to)[9], 1);
    start();
    call("memcpy", tight, to, 40);
    CHECK_EQ(engine_error_count, 1);
    expect(0, "access", tight + 32, 8, true);
    start();
    call("memcpy", tight + 1, to, 38);
    CHECK_EQ(engine_error_count, 2);
    expect(0, "access", tight + 37, 1, true);
    start();
    call("mempcpy", to, from, 12);
    CHECK_EQ(engine_error_count, 2);
    CHECK(engine_errors[0].size == 1);
    start();
    call("memset", from - 3, 0, 20);
    CHECK_EQ(engine_error_count, 5);
    expect(0, "access", from - 3, 1, true);
    expect(3, "access", from + 8, 8, true);
    expect(4, "access", from + 16, 1, true);
    // What is not addressable has not become so.
    CHECK_EQ(*shadow_of(from - 1), SHADOW_NOACCESS);
    CHECK_EQ(*shadow_of(from + 10), SHADOW_NOACCESS);
    CHECK_EQ(*shadow_of(tight + 37), SHADOW_NOACCESS);
}

TEST(strings_without_an_end_are_read_beyond_their_block) {
    start();
    static const char *const functions[] = {"strlen", "strchr", "strrchr", "strcmp", "strcpy"};
    for (unsigned i = 0; i < 5; i++) {
        uint64_t string = make(10), other = make(100);
        memset((void *)string, 'a', 10);
        memset((void *)(string + 10), 0, 6);
        memset((void *)other, 'a', 100);
        shadow_make_defined(string, 10);
        shadow_make_defined(other, 100);
        engine_forget_errors();
        if (i == 4)
            call(functions[i], other, string, 0);
        else
            call(functions[i], string, i == 3 ? other : 'z', 0);
        CHECK_EQ(engine_error_count, 1);
        expect(0, "access", string + 10, 1, false);
    }
}

TEST(decisions_on_undefined_bytes_are_reported) {
    start();
    static const char *const functions[] = {"strlen", "strcmp", "memcmp", "memchr",
                                            "strstr", "strspn", "strncpy"};
    for (unsigned i = 0; i < 7; i++) {
        uint64_t string = make(20), other = make(100);
        strcpy((char *)string, "abcdefg");
        strcpy((char *)other, "abcdefg");
        shadow_make_defined(other, 100);
        shadow_make_defined(string, 20);
        shadow_set_bits(string + 3, 0x40);
        engine_forget_errors();
        if (i == 6)
            call(functions[i], other, string, 7);
        else
            call(functions[i], string, i == 3 ? 'e' : other, 7);
        if (engine_error_count != 1)
            NOTE("%s: %u errors", functions[i], engine_error_count);
        CHECK_EQ(engine_error_count, 1);
        CHECK_STR(engine_errors[0].what, "condition");
    }
}

TEST(overlaps_are_reported_except_of_memmove) {
    start();
    uint64_t block = make(100);
    strcpy((char *)block, "a string of some length");
    shadow_make_defined(block, 100);
    call("memmove", block + 5, block, 20);
    call("memcpy", block, block, 20);
    call("memcpy", block, block + 20, 20);
    CHECK_EQ(engine_error_count, 0);
    call("memcpy", block, block + 19, 20);
    CHECK_EQ(engine_error_count, 1);
    expect(0, "overlap", block, 20, false);
    strcpy((char *)block, "a string of some length");
    call("strcpy", block + 3, block, 0);
    CHECK_EQ(engine_error_count, 2);
    strcpy((char *)block, "a string");
    call("strncpy", block + 4, block, 10);
    CHECK_EQ(engine_error_count, 3);
}

TEST(memory_that_is_not_there_is_a_signal) {
    start();
    uint64_t end = end_of_pages(), block = make(100);
    memset((void *)(end - 10), 'a', 10);
    engine_registers[RAX] = 77;
    call("strlen", end - 10, 0, 0);
    CHECK(engine_raised);
    CHECK_EQ(engine_error_count, 1);
    expect(0, "access", end, 1, false);
    CHECK_EQ(engine_registers[RAX], 77);
    start();
    call("memcpy", 8, block, 40);
    CHECK(engine_raised);
    CHECK_EQ(engine_error_count, 1);
    expect(0, "access", 8, 8, true);
    start();
    call("memset", 8, 0, 40);
    CHECK(engine_raised);
    expect(0, "access", 8, 8, true);
}

// ---- malloc and its kin ------------------------------------------------------------------------

TEST(allocating_functions_do_as_they_are_told) {
    start();
    uint64_t block = call("malloc", 10, 0, 0);
    CHECK_EQ(call("malloc_usable_size", block, 0, 0), 10);
    block = call("realloc", block, 20, 0);
    CHECK_EQ(heap_size_of(block), 20);
    CHECK_EQ(call("realloc", block, 0, 0), 0);
    CHECK_EQ(heap_size_of(block), 0);
    block = call("realloc", 0, 5, 0);
    CHECK_EQ(heap_size_of(block), 5);
    block = call("reallocarray", block, 7, 3);
    CHECK_EQ(heap_size_of(block), 21);
    CHECK_EQ(call("reallocarray", block, SIZE_MAX / 2, 3), 0);
    CHECK_EQ(heap_size_of(block), 21);
    call("free", block, 0, 0);
    call("free", 0, 0, 0);
    CHECK_EQ(call("memalign", 100, 10, 0) % 128, 0);
    CHECK_EQ(call("valloc", 10, 0, 0) % 4096, 0);
    block = call("pvalloc", 10, 0, 0);
    CHECK_EQ(heap_size_of(block), 4096);
    uint64_t place = make(8);
    CHECK_EQ(call("posix_memalign", place, 64, 30), 0);
    CHECK_EQ(*shadow_of(place + 7), 0);
    CHECK_EQ(*(uint64_t *)place % 64, 0);
    CHECK_EQ(heap_size_of(*(uint64_t *)place), 30);
    CHECK_EQ(call("posix_memalign", place, 24, 30), EINVAL);
    CHECK_EQ(call("posix_memalign", place, 4, 30), EINVAL);
    CHECK_EQ(call("posix_memalign", place, 16, (uint64_t)1 << 50), ENOMEM);
    block = call("calloc", 10, 10, 0);
    CHECK_EQ(*shadow_of(block + 99), 0);
    CHECK_EQ(call("calloc", SIZE_MAX / 2, 4, 0), 0);
    block = call("_Znam", 10, 0, 0);
    call("_ZdaPvm", block, 10, 0);
    block = call("_ZnwmSt11align_val_t", 10, 256, 0);
    CHECK_EQ(block % 256, 0);
    call("_ZdlPvSt11align_val_t", block, 256, 0);
    // realloc to 0 bytes, and three alignments: 100 for memalign, 24 and 4 for posix_memalign
    CHECK_EQ(engine_error_count, 4);
}

TEST(fishy_sizes_are_reported_and_refused) {
    start();
    uint64_t block = make(10), negative = (uint64_t)-5;
    CHECK_EQ(call("malloc", negative, 0, 0), 0);
    CHECK_EQ(call("calloc", negative, 1, 0), 0);
    CHECK_EQ(call("calloc", 1, negative, 0), 0);
    CHECK_EQ(call("realloc", block, negative, 0), 0);
    CHECK_EQ(call("memalign", 32, negative, 0), 0);
    CHECK_EQ(call("_ZnwmRKSt9nothrow_t", negative, 0, 0), 0);
    CHECK_EQ(engine_error_count, 6);
    for (unsigned i = 0; i < 6; i++)
        expect(i, "fishy", negative, 0, false);
    CHECK_EQ(heap_size_of(block), 10);
}
// ---- quick ones --------------------------------------------------------------------------------

enum { ROOM = 600 };

// Memory that is mostly defined, else undefined in pieces, in single bits, or not there at all.
static void make_random(uint64_t start) {
    static const uint8_t shadows[] = {
        0, 0, 0, SHADOW_UNDEFINED, SHADOW_UNDEFINED, 3, SHADOW_NOACCESS};
    unsigned most = random_below(4) ? 5 : 1 + random_below(4);
    shadow_make_defined(start, ROOM);
    for (unsigned i = 0; i < ROOM; i++)
        ((uint8_t *)start)[i] = "\0aAbB"[random_below(most)];
    for (unsigned i = random_below(4); i > 0; i--) {
        unsigned at = random_below(ROOM), size = random_below(300);
        uint8_t shadow = shadows[random_below(sizeof shadows)];
        for (unsigned k = at; k < ROOM && k < at + size; k++)
            *shadow_of(start + k) = shadow;
    }
}

static void save(uint8_t *to, uint64_t start) {
    memcpy(to, (void *)start, ROOM);
    memcpy(to + ROOM, shadow_of(start), ROOM);
}

static void restore(const uint8_t *from, uint64_t start) {
    memcpy((void *)start, from, ROOM);
    memcpy(shadow_of(start), from + ROOM, ROOM);
}

static bool is_same(const uint8_t *kept, uint64_t start) {
    uint8_t now[2 * ROOM];
    save(now, start);
    return memcmp(kept, now, sizeof now) == 0;
}

static void (*hook_of(const char *name))(void) {
    const struct tool_symbol *symbol = heap_symbols;
    while (strcmp(symbol->name, name) != 0)
        symbol++;
    return symbol->hook;
}

TEST(quick_functions_do_what_their_hooks_do) {
    static const char *const names[] = {"memcpy", "memmove", "memset", "memcmp",
                                        "strlen", "strchr",  "strcmp", "strcasecmp"};
    start();
    uint64_t memory = tool_map(ROOM, 4096);
    uint8_t before[2 * ROOM], after[2 * ROOM];
    unsigned done = 0, refused = 0;
    for (unsigned i = 0; i < 100000; i++) {
        const char *name = names[i % 8];
        uint64_t a = memory + random_below(ROOM / 2), b = memory + random_below(ROOM / 2);
        uint64_t size = random_below(random_below(2) ? 20 : ROOM / 2);
        uint8_t *undefined = memcheck_thread()->registers.undefined;
        if (i % 8 == 2 || i % 8 == 5)
            b = i % 8 == 2 ? random_below(256) : (uint8_t) "\0aAbBx"[random_below(6)];
        make_random(memory);
        unsigned unit = i % 8 < 4 ? RDX : RDI;
        undefined[unit] = random_below(20) == 0;
        save(before, memory);
        engine_forget_errors();
        uint64_t result = call(name, a, b, size);
        bool is_clean = engine_error_count == 0;
        save(after, memory);
        restore(before, memory);
        struct tool_quick_result quick = quick_hook(hook_of(name))(a, b, size, memcheck_thread());
        done += quick.is_done;
        refused += !quick.is_done;
        CHECK(is_same(quick.is_done ? after : before, memory));
        CHECK(!quick.is_done || (is_clean && !undefined[unit] && quick.result == result));
        undefined[unit] = 0;
    }
    CHECK(done > 10000 && refused > 10000);
}

UNIT_MAIN()
