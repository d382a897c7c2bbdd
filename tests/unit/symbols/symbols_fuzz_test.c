/*
 * Damaged files: thousands of mutations of real programs, always the same ones, none of which may
 * end the process, hang it or leave it in disorder. What reading them costs is bounded too.
 *
 * QUERN_FUZZ_ROUNDS asks for more rounds, QUERN_FUZZ_SEED for others.
 */
#include "unit.h"

#include "symbols/symbols.h"
#include "symbols_help.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* What a fault interrupts stays allocated, on purpose (guard.h). */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "detect_leaks=0";
}

static uint64_t state;

static uint64_t random_number(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static uint64_t below(uint64_t bound) {
    return bound ? random_number() % bound : 0;
}

struct program {
    uint8_t *bytes;
    size_t size;
    uint64_t text;
};

static struct program read_program(const char *name) {
    struct program program = {.text = help_symbol(help_path(name), "outermost")};
    if (!program.text)
        program.text = help_symbol(help_path(name), "main");
    FILE *file = fopen(help_path(name), "rb");
    CHECK(file && program.text);
    fseek(file, 0, SEEK_END);
    program.size = (size_t)ftell(file);
    rewind(file);
    program.bytes = malloc(program.size);
    CHECK(fread(program.bytes, 1, program.size, file) == program.size);
    fclose(file);
    return program;
}

static void write_file(const char *path, const uint8_t *bytes, size_t size) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    close(fd);
}

/* Where damage does most: the ELF header, the section headers at the end, or anywhere. */
static size_t place(size_t size) {
    switch (below(8)) {
    case 0:
        return below(64);
    case 1:
        return size - 1 - below(size < 2560 ? size : 2560);
    case 2:
        return below(size < 1024 ? size : 1024);
    default:
        return below(size);
    }
}

static size_t mutate(uint8_t *bytes, size_t size) {
    static const uint8_t extremes[] = {0, 1, 0x7f, 0x80, 0xff};
    if (below(10) == 0)
        size = 1 + below(size);
    for (uint64_t count = 1 + below(20); count; count--) {
        size_t at = place(size);
        switch (below(4)) {
        case 0:
            bytes[at] ^= (uint8_t)(1u << below(8));
            break;
        case 1:
            bytes[at] = extremes[below(sizeof extremes)];
            break;
        case 2: /* a whole word: sizes, offsets, counts */
            for (size_t i = 0; i < 8 && at + i < size; i++)
                bytes[at + i] = extremes[below(sizeof extremes)];
            break;
        default: /* one part of the file copied over another */
            for (size_t i = 0, from = place(size); i < 64 && at + i < size && from + i < size; i++)
                bytes[at + i] = bytes[from + i];
        }
    }
    return size;
}

struct outcome {
    size_t named, lines, variables;
    uint64_t faults;
    double slowest;
};

static void ask(const char *path, const struct program *program, struct outcome *outcome) {
    double start = help_seconds();
    struct symbols *symbols = symbols_new(NULL);
    struct symbol_frame frames[64];
    struct symbol_data data;
    /* What was mapped is the program before the damage: ours to say. */
    symbols_map(symbols, 1, 0, 1 << 20, 0, path, NULL);
    if (!help_map(symbols, 2, path, 0))
        symbols_map(symbols, 2, 0, 1 << 20, 0, path, NULL);
    for (uint64_t i = 0; i < 200; i++) {
        uint64_t address = program->text - 500 + i * 5;
        size_t count = symbols_resolve(symbols, 1 + (pid_t)(i & 1), address, true, frames, 64);
        CHECK(count <= 64);
        for (size_t j = 0; j < count; j++) {
            outcome->named += frames[j].name && strlen(frames[j].name);
            outcome->lines += frames[j].file && strlen(frames[j].file) && frames[j].line;
        }
        outcome->variables += symbols_resolve_data(symbols, 2, i * 512, &data);
    }
    symbols_check(symbols);
    outcome->faults += symbols_statistics(symbols).faults;
    symbols_free(symbols);
    double seconds = help_seconds() - start;
    if (seconds > outcome->slowest)
        outcome->slowest = seconds;
}

/* Paths in the program would make it, and with it the damage, another one in each run. */
#define SAME_PATHS "-ffile-prefix-map=$PWD=/build -ffile-prefix-map=$T=/targets -o program"

static void fuzz(const char *label, const char *command) {
    if (!help_run("%s " SAME_PATHS, command))
        unit_fail(label, 0, "does not compile: %s", command);
    struct program program = read_program("program");
    uint8_t *bytes = malloc(program.size);
    const char *rounds_text = getenv("QUERN_FUZZ_ROUNDS"), *seed = getenv("QUERN_FUZZ_SEED");
    unsigned long rounds = rounds_text ? strtoul(rounds_text, NULL, 10) : 500;
    struct outcome whole = {0}, outcome = {0};
    write_file(help_path("victim"), program.bytes, program.size);
    ask(help_path("victim"), &program, &whole);
    CHECK(whole.named > 100 && whole.lines > 50 && whole.faults == 0);
    for (unsigned long round = 0; round < rounds; round++) {
        state = 0x9e3779b97f4a7c15u * (round + 1) + (seed ? strtoul(seed, NULL, 10) : 0);
        memcpy(bytes, program.bytes, program.size);
        size_t size = mutate(bytes, program.size);
        write_file(help_path("victim"), bytes, size);
        ask(help_path("victim"), &program, &outcome);
    }
    NOTE("%-22s %lu files of %zu bytes: %zu names, %zu lines, %zu variables; %llu faults "
         "survived; slowest %.3f s",
         label, rounds, program.size, outcome.named, outcome.lines, outcome.variables,
         (unsigned long long)outcome.faults, outcome.slowest);
    CHECK(outcome.named > 0 && outcome.lines > 0);
    CHECK(outcome.slowest < 5);
    free(bytes);
    free(program.bytes);
}

TEST(damaged_dwarf_5) {
    fuzz("gcc DWARF 5", "gcc -g -O2 -pthread $T/symbols_c.c");
}

TEST(damaged_dwarf_4) {
    fuzz("gcc DWARF 4", "gcc -gdwarf-4 -O2 -pthread $T/symbols_c.c");
}

TEST(damaged_compressed) {
    fuzz("gcc compressed", "gcc -g -gz -O2 -pthread $T/symbols_c.c");
}

TEST(damaged_clang) {
    if (!help_has("clang"))
        SKIP("no clang");
    fuzz("clang", "clang -g -O2 -pthread $T/symbols_c.c");
}

/* A file that shrinks while it is open: libelf has it mapped. */
TEST(truncated_while_open) {
    CHECK(help_run("g++ -std=c++17 -g -O2 $T/symbols_cxx.cc -o program"));
    struct program program = read_program("program");
    uint64_t faults = 0;
    for (size_t keep = 0; keep <= 100; keep += 10) {
        struct symbols *symbols = symbols_new(NULL);
        struct symbol_frame frames[64];
        write_file(help_path("victim"), program.bytes, program.size);
        CHECK(help_map(symbols, 1, help_path("victim"), 0));
        CHECK(symbols_resolve(symbols, 1, program.text, false, frames, 64) >= 1);
        CHECK_STR(frames[0].file, "symbols_cxx.cc");
        CHECK(truncate(help_path("victim"), (off_t)(program.size * keep / 100)) == 0);
        for (uint64_t at = 0; at < 4096; at += 16)
            symbols_resolve(symbols, 1, program.text + at, false, frames, 64);
        symbols_check(symbols);
        faults += symbols_statistics(symbols).faults;
        symbols_free(symbols);
    }
    NOTE("%llu of 11 shrinking files raised a signal", (unsigned long long)faults);
    free(program.bytes);
}

UNIT_MAIN()
