// Memory at addresses of the program's own choice: hints, MAP_32BIT, fixed addresses, code that is
// called there, while other threads run. Argument: `whole`, or `half` of the address space, which
// is what a tool with shadow memory has to give.
//
// Hints where the program has memory itself are left out, and so are the places where the kernel
// puts programs, libraries and stacks, at random.
#include "stress.h"

#define HINTS 600

static uint64_t hints[HINTS];
static unsigned hint_count;
static volatile int stop;
static const int ANONYMOUS = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

static int is_taken(uint64_t start, uint64_t end) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    int taken = 0;
    CHECK(maps);
    while (fgets(line, sizeof line, maps)) {
        unsigned long from, to;
        CHECK(sscanf(line, "%lx-%lx", &from, &to) == 2);
        // The kernel keeps a distance to a stack above.
        taken |= from < end + (1 << 20) && to > start;
    }
    fclose(maps);
    return taken;
}

static void add_hint(uint64_t hint, uint64_t end) {
    if (hint < end && hint_count < HINTS)
        hints[hint_count++] = hint;
}

static void make_hints(int whole) {
    uint64_t end = whole ? 1ul << 47 : 0x2a0000000000;
    for (uint64_t at = 0x1000000; at < 1ul << 32; at += 0x1000000)
        add_hint(at, end);
    for (uint64_t at = 1ul << 32; at < 32ul << 30; at += 0x30000000)
        add_hint(at, end);
    for (uint64_t at = 0x800000000; at < 1ul << 40; at += 0x700000000)
        add_hint(at, end);
    for (uint64_t at = 1ul << 40; at < 0x7e0000000000; at += 0xd000000000)
        if (at < 0x540000000000 || at > 0x680000000000)
            add_hint(at, end);
    add_hint(0x1000, end);
    add_hint(0x7fff8000, end);
    add_hint(0xc000000000, end); // Go
}

static unsigned try_hints(uint64_t size, int flags) {
    unsigned honoured = 0;
    for (unsigned i = 0; i < hint_count; i++) {
        uint64_t hint = hints[i], wanted = hint < 0x10000 ? 0x10000 : hint;
        if (is_taken(wanted, wanted + size)) {
            honoured++;
            continue;
        }
        char *got = mmap((void *)hint, size, PROT_READ | PROT_WRITE, ANONYMOUS | flags, -1, 0);
        if (flags & MAP_32BIT && hint + size > 1ul << 31) {
            honoured += got == MAP_FAILED || (uint64_t)got + size <= 1ul << 31;
        } else if (got == (char *)wanted) {
            honoured++;
        } else {
            printf("%#lx: %s\n", hint, got == MAP_FAILED ? strerror(errno) : "elsewhere");
        }
        if (got == MAP_FAILED)
            continue;
        got[0] = got[size - 1] = 7;
        CHECK(munmap(got, size) == 0);
    }
    return honoured;
}

// Where SBCL has its memory. Natively nothing is ever there at the start.
static void try_fixed_programs(void) {
    static const struct {
        uint64_t at, size;
    } places[] = {{0x50000000, 0x100000}, {0x50100000, 0xab00000}, {0x1000000000, 1 << 30}};
    for (unsigned i = 0; i < LENGTH(places); i++) {
        void *got = mmap((void *)places[i].at, places[i].size, PROT_READ | PROT_WRITE | PROT_EXEC,
                         ANONYMOUS, -1, 0);
        printf("%#lx %s\n", places[i].at, (uint64_t)got == places[i].at ? "there" : "elsewhere");
        CHECK(got != MAP_FAILED && munmap(got, places[i].size) == 0);
    }
}

// mov eax, value; ret
static void write_code(char *at, int value) {
    at[0] = (char)0xb8;
    memcpy(at + 1, &value, 4);
    at[5] = (char)0xc3;
}

static int NOINLINE call(const char *code) {
    return ((int (*)(void))(uintptr_t)code)();
}

static void *run_code(void *argument) {
    unsigned long calls = 0;
    while (!stop) {
        SAME(call(argument), 4711);
        calls++;
    }
    return (void *)calls;
}

// Code at each fourth hint at once, called again and again while more comes.
static unsigned try_code(void) {
    static char *kept[HINTS];
    unsigned count = 0;
    for (unsigned i = 0; i < hint_count; i += 4) {
        if (hints[i] < 0x10000 || is_taken(hints[i], hints[i] + PAGE))
            continue;
        char *got = mmap((void *)hints[i], PAGE, PROT_READ | PROT_WRITE,
                         ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        CHECK(got == (char *)hints[i]);
        write_code(got + i % 1000, (int)i);
        CHECK(mprotect(got, PAGE, PROT_READ | PROT_EXEC) == 0);
        kept[count++] = got + i % 1000;
        for (unsigned j = 0; j < count; j++)
            SAME((uint64_t)call(kept[j]) % 1000, (uint64_t)kept[j] % PAGE);
    }
    for (unsigned j = 0; j < count; j++)
        CHECK(munmap((void *)((uint64_t)kept[j] & ~(PAGE - 1)), PAGE) == 0);
    return count > 100;
}

static void fixed(uint64_t start, uint64_t size) {
    if (is_taken(start, start + size))
        return;
    char *want = (char *)start;
    char *got = mmap(want, size, PROT_NONE, ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(got == want);
    CHECK(mmap(want, PAGE, PROT_READ, ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED);
    SAME(errno, EEXIST);
    got = mmap(want, size, PROT_READ | PROT_WRITE, ANONYMOUS | MAP_FIXED, -1, 0);
    CHECK(got == want);
    for (uint64_t at = 0; at < size; at += size / 64)
        got[at] = (char)at;
    CHECK(is_taken(start, start + size));
    // Larger, where nothing is behind it; then somewhere else, and back.
    got = mremap(want, size, size + PAGE, 0);
    CHECK(got == want);
    got = mremap(want, size + PAGE, size + 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
                 (void *)0x610000000);
    CHECK(got == (char *)0x610000000);
    got = mremap(got, size + 2 * PAGE, size, MREMAP_MAYMOVE | MREMAP_FIXED, want);
    CHECK(got == want && got[size / 64] == (char)(size / 64));
    CHECK(munmap(want, size) == 0);
}

static unsigned low_mappings(void) {
    // As much below 2 GiB as the kernel gives.
    static void *got[64];
    unsigned count = 0;
    while (count < 56) {
        got[count] = mmap(NULL, 16 << 20, PROT_READ, ANONYMOUS | MAP_32BIT, -1, 0);
        if (got[count] == MAP_FAILED)
            break;
        CHECK((uint64_t)got[count] + (16 << 20) <= 1ul << 31);
        count++;
    }
    for (unsigned i = 0; i < count; i++)
        CHECK(munmap(got[i], 16 << 20) == 0);
    return count;
}

int main(int argc, char **argv) {
    int whole = argc > 1 && strcmp(argv[1], "whole") == 0;
    pthread_t thread;
    char *code = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, ANONYMOUS, -1, 0);
    CHECK(code != MAP_FAILED);
    write_code(code, 4711);
    try_fixed_programs();
    make_hints(whole);
    printf("%u of %u hints\n", try_hints(PAGE, 0), hint_count);
    CHECK(pthread_create(&thread, NULL, run_code, code) == 0);
    printf("%u of %u hints, 10 MiB\n", try_hints(10 << 20, 0), hint_count);
    printf("%u of %u hints, 32 bits\n", try_hints(PAGE, MAP_32BIT), hint_count);
    static const uint64_t places[] = {0x70000000,  0x78000000,  0x7bc00000,   0x7d000000,
                                      0x7ffe0000,  0x7fff8000,  0x80000000,   0xf0000000,
                                      0x100000000, 0x23ff00000, 0x1000000000, 0x100000000000};
    for (unsigned i = 0; i < LENGTH(places); i++) {
        fixed(places[i], 16 * PAGE);
        fixed(places[i], 64ul << 20);
    }
    printf("%u low mappings\n", low_mappings());
    printf("code: %u\n", try_code());
    stop = 1;
    void *calls;
    CHECK(pthread_join(thread, &calls) == 0);
    printf("called: %d\n", calls != NULL);
    return 0;
}
