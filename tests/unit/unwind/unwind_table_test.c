// The compiler of unwind tables, with data made for the purpose and with damaged real data.

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "unit.h"
#include "unwind/expression.h"
#include "unwind/table.h"

static uint64_t random_state;

// The same numbers in every run (xorshift).
static uint64_t random_number(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

struct file {
    uint8_t *bytes;
    size_t size;
};

static struct file map_file(const char *path) {
    struct stat status;
    int file = open(path, O_RDONLY);
    CHECK(file >= 0);
    CHECK_EQ(fstat(file, &status), 0);
    // Private and writable: damage stays here.
    uint8_t *bytes =
        mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    CHECK(bytes != MAP_FAILED);
    close(file);
    return (struct file){bytes, (size_t)status.st_size};
}

#define LOADER "/lib64/ld-linux-x86-64.so.2"
#define LIBGCC "/lib/x86_64-linux-gnu/libgcc_s.so.1"

// ---- expressions ----

static uint64_t evaluate(const uint8_t *bytes, size_t size, enum expression_status expected) {
    static uint64_t words[4] = {11, 22, 33, 44};
    struct unwind_memory memory = {.low = (uint64_t)words, .high = (uint64_t)(words + 4)};
    struct unwind_registers registers = {
        .value = {[UNWIND_RSP] = (uint64_t)words, [UNWIND_PC] = 0x100b}};
    uint64_t result = 0;
    CHECK_EQ(unwind_expression_evaluate(bytes, size, &registers, &memory, NULL, &result), expected);
    return result;
}

#define EVALUATE(...)                                                                              \
    evaluate((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}), EXPRESSION_OK)
#define REFUSED(status, ...)                                                                       \
    evaluate((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}), status)

TEST(expressions_yield_what_they_say) {
    CHECK_EQ(EVALUATE(0x77, 8, 0x06), 22);                  // breg7 8, deref
    CHECK_EQ(EVALUATE(0x35, 0x33, 0x1c), 2);                // lit5 - lit3
    CHECK_EQ(EVALUATE(0x35, 0x33, 0x16, 0x1c), -2);         // swapped
    CHECK_EQ(EVALUATE(0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a), 1); // linkage stubs: (pc & 15) >= 11
    CHECK_EQ(EVALUATE(0x09, 0xff, 0x31, 0x26), -1);         // const1s -1 >> 1, arithmetic
    CHECK_EQ(EVALUATE(0x09, 0xff, 0x31, 0x25), INT64_MAX);  // logical
    CHECK_EQ(EVALUATE(0x31, 0x32, 0x33, 0x17), 2);          // rot: 3 1 2
    CHECK_EQ(EVALUATE(0x31, 0x32, 0x33, 0x17, 0x13), 1);    // rot, drop
    CHECK_EQ(EVALUATE(0x31, 0x28, 1, 0, 0x35, 0x33), 3);    // bra over one operation
    CHECK_EQ(EVALUATE(0x30, 0x23, 0x80, 0x02), 256);        // plus_uconst 256
    CHECK_EQ(EVALUATE(0x77, 0, 0x94, 4), 11);               // deref_size 4
    CHECK_EQ(EVALUATE(0x31, 0x32, 0x15, 1), 1);             // pick 1
}

TEST(bad_expressions_are_refused) {
    REFUSED(EXPRESSION_BAD, 0x22);                         // plus on an empty stack
    REFUSED(EXPRESSION_BAD, 0x31, 0x30, 0x1b);             // division by 0
    REFUSED(EXPRESSION_BAD, 0x2f, 0xfd, 0xff);             // a loop without end
    REFUSED(EXPRESSION_BAD, 0x2f, 0x00, 0x80);             // a jump before the start
    REFUSED(EXPRESSION_BAD, 0x0e, 1, 2);                   // cut short
    REFUSED(EXPRESSION_BAD, 0x31, 0x12, 0x2f, 0xfc, 0xff); // grows without end
    REFUSED(EXPRESSION_BAD, 0x31, 0xff);                   // no such operation
    REFUSED(EXPRESSION_UNREADABLE, 0x31, 0x06);            // a load from address 1
}

// ---- images ----

TEST(image_of_a_file) {
    struct file file = map_file(LIBGCC);
    struct unwind_image image;
    CHECK(unwind_image_from_file(&image, file.bytes, file.size, 0x10000));
    CHECK_EQ(image.start, 0x10000);
    CHECK_EQ(image.build_id_size, 20);
    CHECK(image.eh_frame > image.start && image.eh_frame < image.end);
    CHECK(image.text_start < image.text_end && image.text_end < image.end);
    char command[128], expected[64] = "", actual[64] = "";
    snprintf(command, sizeof command, "readelf -n %s | sed -n 's/.*Build ID: //p'", LIBGCC);
    FILE *stream = popen(command, "r");
    CHECK(stream && fscanf(stream, "%63s", expected) == 1);
    pclose(stream);
    for (size_t i = 0; i < image.build_id_size; i++)
        sprintf(actual + 2 * i, "%02x", image.build_id[i]);
    CHECK_STR(actual, expected);
    munmap(file.bytes, file.size);
}

TEST(damaged_elf_headers) {
    struct file file = map_file(LOADER);
    uint8_t head[1024];
    long described = 0, refused = 0;
    memcpy(head, file.bytes, sizeof head);
    random_state = 7;
    for (int round = 0; round < 20000; round++) {
        memcpy(file.bytes, head, sizeof head);
        for (int i = 0; i < 4; i++)
            file.bytes[random_number() % sizeof head] = (uint8_t)random_number();
        size_t size = round % 3 ? file.size : random_number() % file.size;
        struct unwind_image image;
        if (!unwind_image_from_file(&image, file.bytes, size, 0)) {
            refused++;
            continue;
        }
        described++;
        CHECK(image.start < image.end);
        CHECK(image.frames.size == 0 ||
              (image.frames.bytes >= file.bytes &&
               image.frames.bytes + image.frames.size <= file.bytes + size));
    }
    NOTE("%ld described, %ld refused", described, refused);
    CHECK(described > 1000 && refused > 1000);
    munmap(file.bytes, file.size);
}

// ---- damaged unwind data ----

// The unwind data at the very end of a page that is followed by nothing: reading past it is seen.
static struct unwind_image guarded_image(const struct unwind_image *image) {
    struct unwind_image copy = *image;
    uint64_t frames_size = image->frames.size;
    uint64_t size = image->frames.address - image->header.address + frames_size;
    size_t pages = (size + 4095) / 4096 * 4096;
    uint8_t *area =
        mmap(NULL, pages + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(area != MAP_FAILED);
    CHECK_EQ(mprotect(area + pages, 4096, PROT_NONE), 0);
    uint8_t *start = area + pages - size;
    memcpy(start, image->header.bytes, size);
    copy.header.bytes = start;
    copy.header.size = size;
    copy.frames.bytes = start + size - frames_size;
    copy.frames.size = frames_size;
    return copy;
}

static void damage(uint8_t *bytes, size_t size) {
    size_t count = 1 + random_number() % 32;
    for (size_t i = 0; i < count; i++) {
        uint8_t *at = &bytes[random_number() % size];
        switch (random_number() % 4) {
        case 0:
            *at = (uint8_t)random_number();
            break;
        case 1:
            *at ^= (uint8_t)(1u << random_number() % 8);
            break;
        case 2:
            *at = random_number() & 1 ? 0xff : 0;
            break;
        default:
            if (at + 64 <= bytes + size)
                memmove(at, &bytes[random_number() % (size - 63)], random_number() % 64);
        }
    }
}

static bool source_in_range(const uint8_t *bytes, size_t size, const uint8_t *at, size_t length) {
    return at >= bytes && length <= (size_t)(bytes + size - at);
}

// Processor time, so that a busy machine does not count.
static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

// Compiles damaged data and looks up every rule that comes out of it.
static void fuzz(const char *path, bool with_header, int rounds) {
    struct file file = map_file(path);
    struct unwind_image image, copy;
    CHECK(unwind_image_from_file(&image, file.bytes, file.size, 0));
    CHECK(image.frames.address > image.header.address);
    copy = guarded_image(&image);
    size_t size = copy.header.size;
    uint8_t *original = malloc(size), *bytes = (uint8_t *)copy.header.bytes;
    memcpy(original, bytes, size);
    if (!with_header)
        copy.header.size = 0;
    random_state = 42;
    unsigned long functions = 0, bad = 0;
    double slowest = 0;
    for (int round = 0; round < rounds; round++) {
        memcpy(bytes, original, size);
        damage(bytes, size);
        if (round % 4 == 0)
            damage(bytes, 64);
        double start = now();
        struct unwind_table *table = unwind_table_compile(&copy);
        double time = now() - start;
        slowest = time > slowest ? time : slowest;
        CHECK(table);
        CHECK(unwind_table_check(table));
        for (int i = 0; i < 100; i++) {
            const struct unwind_rule *rule =
                unwind_table_find(table, random_number() % (table->span + 10));
            CHECK(source_in_range((const uint8_t *)table, table->bytes, (const uint8_t *)rule,
                                  sizeof *rule));
        }
        functions += table->functions;
        bad += table->bad;
        unwind_table_free(table);
    }
    NOTE("%d rounds: %lu functions compiled, %lu refused, slowest %.1f ms", rounds, functions, bad,
         slowest);
    CHECK(functions > 0 && bad > 0);
    CHECK(slowest < 1000);
    free(original);
    munmap(file.bytes, file.size);
}

TEST(damaged_data_with_search_table) {
    fuzz(LOADER, true, 1500);
}

TEST(damaged_data_by_scanning) {
    fuzz(LOADER, false, 1500);
}

TEST(damaged_data_of_libgcc) {
    fuzz(LIBGCC, true, 500);
}

TEST(scanning_equals_search_table) {
    struct file file = map_file(LOADER);
    struct unwind_image image;
    CHECK(unwind_image_from_file(&image, file.bytes, file.size, 0));
    struct unwind_table *searched = unwind_table_compile(&image);
    image.header.size = 0;
    struct unwind_table *scanned = unwind_table_compile(&image);
    CHECK(searched && scanned);
    CHECK(searched->functions > 200);
    CHECK_EQ(scanned->functions, searched->functions);
    CHECK_EQ(scanned->bytes, searched->bytes);
    CHECK(memcmp(scanned, searched, searched->bytes) == 0);
    unwind_table_free(searched);
    unwind_table_free(scanned);
    munmap(file.bytes, file.size);
}

// ---- data made by hand ----

// One CIE, one FDE for the code at CODE_START, and a search table that names it as often as wanted.
#define CODE_START 0x10000

struct made {
    uint8_t *bytes;
    uint8_t *program;
    struct unwind_image image;
};

static struct made make_data(uint32_t entries, uint32_t program_size) {
    size_t header_size = 12 + entries * 8, frames_size = 24 + 20 + program_size + 4;
    uint64_t base = 0x100000;
    struct made made = {.bytes = calloc(1, header_size + frames_size)};
    uint32_t *words = (uint32_t *)made.bytes;
    uint8_t *frames = made.bytes + header_size;
    memcpy(made.bytes, (uint8_t[]){1, 0x1b, 0x03, 0x3b}, 4);
    words[1] = (uint32_t)header_size - 4;
    words[2] = entries;
    for (uint32_t i = 0; i < entries; i++) {
        words[3 + 2 * i] = (uint32_t)(CODE_START + i - base);
        words[4 + 2 * i] = (uint32_t)header_size + 24;
    }
    // Alignments 1 and -8, return address 16, pc-relative pointers; CFA is rsp + 8.
    memcpy(frames, (uint8_t[]){20, 0,    0,  0, 0,    0,    0, 0, 1,    'z', 'R', 0,
                               1,  0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1,   0,   0},
           24);
    uint32_t *entry = (uint32_t *)(frames + 24);
    entry[0] = 16 + program_size;
    entry[1] = 28;
    entry[2] = (uint32_t)(CODE_START - (base + header_size + 24 + 8));
    entry[3] = 0x80000;
    made.program = frames + 24 + 17; // after an empty augmentation
    made.image = (struct unwind_image){.start = 0, .end = 0x1000000};
    made.image.header = (struct unwind_view){made.bytes, base, header_size + frames_size};
    made.image.frames = (struct unwind_view){frames, base + header_size, frames_size};
    made.image.eh_frame = made.image.frames.address;
    return made;
}

// Compiles a program alone and gives the rule at an offset into its function.
static struct unwind_rule rule_of(const uint8_t *program, size_t size, uint64_t offset,
                                  uint32_t *bad) {
    struct made made = make_data(1, (uint32_t)size + 8);
    memcpy(made.program, program, size);
    struct unwind_table *table = unwind_table_compile(&made.image);
    CHECK(table && unwind_table_check(table));
    struct unwind_rule rule = *unwind_table_find(table, CODE_START + offset);
    CHECK_EQ(unwind_table_find(table, CODE_START - 1)->kind, RULE_NONE);
    *bad = table->bad;
    unwind_table_free(table);
    free(made.bytes);
    return rule;
}

#define RULE(offset, ...)                                                                          \
    rule_of((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}), offset, &bad)

TEST(programs_become_rules) {
    uint32_t bad;
    // After a byte of code: CFA is rsp + 16, rbp at CFA - 16.
    struct unwind_rule rule = RULE(1, 0x41, 0x0e, 16, 0x86, 2);
    CHECK(rule.kind == RULE_FAST && rule.base == UNWIND_RSP && rule.offset == 16);
    CHECK(rule.slots[1] == 2 && rule.deepest == 2 && rule.slots[0] == 0);
    rule = RULE(0, 0x41, 0x0e, 16, 0x86, 2);
    CHECK(rule.kind == RULE_FAST && rule.offset == 8 && rule.slots[1] == 0);
    // remember, CFA is rbp + 16, advance, restore
    rule = RULE(0, 0x0a, 0x0c, 6, 16, 0x44, 0x0b);
    CHECK(rule.kind == RULE_FAST && rule.base == UNWIND_RBP && rule.offset == 16);
    rule = RULE(4, 0x0a, 0x0c, 6, 16, 0x44, 0x0b);
    CHECK(rule.kind == RULE_FAST && rule.base == UNWIND_RSP && rule.offset == 8);
    CHECK_EQ(RULE(0, 0x07, 16).kind, RULE_END);                // return address undefined
    CHECK_EQ(RULE(0, 0x83, 0x80, 0x04).kind, RULE_WIDE);       // rbx at CFA - 4096: no slot for it
    CHECK_EQ(RULE(0, 0x09, 16, 1).kind, RULE_WIDE);            // return address in rdx
    CHECK_EQ(RULE(0, 0x16, 3, 2, 0x77, 0).kind, RULE_WIDE);    // rbx is an expression
    CHECK_EQ(RULE(0, 0x0f, 3, 0x77, 8, 0x06).kind, RULE_WIDE); // CFA is loaded from rsp + 8
    CHECK_EQ(bad, 0);
}

TEST(malformed_programs_are_refused) {
    uint32_t bad = 0;
    uint8_t remember[64];
    memset(remember, 0x0a, sizeof remember);
    CHECK_EQ(rule_of(remember, sizeof remember, 0, &bad).kind, RULE_NONE);
    CHECK_EQ(bad, 1);
    CHECK_EQ(RULE(0, 0x0b).kind, RULE_NONE); // restores what was not remembered
    CHECK_EQ(bad, 1);
    CHECK_EQ(RULE(0, 0x3f).kind, RULE_NONE); // no such instruction
    CHECK_EQ(bad, 1);
    CHECK_EQ(RULE(0, 0x04, 0, 0, 0, 0x7f).kind, RULE_NONE); // advances past the function
    CHECK_EQ(bad, 1);
    CHECK_EQ(RULE(0, 0x0c, 40, 8).kind, RULE_NONE); // CFA hangs on a register that is none
    CHECK_EQ(bad, 1);
    CHECK_EQ(RULE(0, 0x0e, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f).kind, RULE_NONE); // offset too far
    CHECK_EQ(bad, 1);
    // What comes before the mistake stays good.
    CHECK_EQ(RULE(0, 0x44, 0x3f).kind, RULE_FAST);
    CHECK_EQ(RULE(4, 0x44, 0x3f).kind, RULE_NONE);
}

// A search table whose entries all name the same long function would take for ever.
TEST(data_that_refers_to_itself) {
    enum { ENTRIES = 20000, PROGRAM = 200000 };
    struct made made = make_data(ENTRIES, PROGRAM);
    for (size_t i = 0; i < PROGRAM - 8; i++)
        made.program[i] = i % 2 ? 0x41 : 0x0a + (i / 2) % 2; // advance, remember, restore
    double start = now();
    struct unwind_table *table = unwind_table_compile(&made.image);
    double time = now() - start;
    CHECK(table && unwind_table_check(table));
    NOTE("%u functions, %u refused, %.1f ms", table->functions, table->bad, time);
    CHECK(table->functions > 0 && table->functions < 20);
    CHECK(table->bad > ENTRIES - 20);
    CHECK(time < 1000);
    unwind_table_free(table);
    free(made.bytes);
}

UNIT_MAIN()
