/*
 * Stacks as text: line by line against what Valgrind prints for the same program under the same
 * options, and the forms that such a program does not show.
 */
#include "unit.h"

#include "report/shared/stack_text.h"
#include "symbols_help.h"

#include <inttypes.h>
#include <string.h>

/* ------------------------------------------------------------------ forms */

static char *text_of(const struct symbol_frame *frame, const struct stack_text_options *options) {
    static char *text;
    static size_t size;
    free(text);
    FILE *out = open_memstream(&text, &size);
    stack_text_frame(out, frame, options);
    fclose(out);
    return text;
}

TEST(forms_of_a_frame) {
    static const char *const nothing[] = {""}, *const cut[] = {"absent", "/src/"};
    const struct stack_text_options plain = {0}, below = {.show_below_main = true},
                                    offsets = {.symbol_offsets = true},
                                    full = {.fullpath_after = nothing, .fullpath_after_count = 1},
                                    after = {.fullpath_after = cut, .fullpath_after_count = 2};
    struct symbol_frame frame = {.name = "f(int)",
                                 .file = "f.cc",
                                 .directory = "/home/src/lib",
                                 .line = 7,
                                 .object = "/bin/f",
                                 .offset = 18};
    CHECK_STR(text_of(&frame, &plain), "f(int) (f.cc:7)");
    CHECK_STR(text_of(&frame, &offsets), "f(int)+18 (f.cc:7)");
    CHECK_STR(text_of(&frame, &full), "f(int) (/home/src/lib/f.cc:7)");
    CHECK_STR(text_of(&frame, &after), "f(int) (lib/f.cc:7)");
    frame.line = 0;
    CHECK_STR(text_of(&frame, &plain), "f(int) (in /bin/f)");
    frame.object = NULL;
    CHECK_STR(text_of(&frame, &plain), "f(int) (in ?\?\?)");
    frame = (struct symbol_frame){.object = "/bin/f"};
    CHECK_STR(text_of(&frame, &plain), "?\?\? (in /bin/f)");
    CHECK_STR(text_of(NULL, &plain), "?\?\?");
    frame = (struct symbol_frame){.name = "_start", .object = "/bin/f"};
    CHECK_STR(text_of(&frame, &plain), "(below main) (in /bin/f)");
    CHECK_STR(text_of(&frame, &below), "_start (in /bin/f)");
    frame = (struct symbol_frame){
        .name = "f", .file = "x.c", .directory = "./stdlib/./stdlib", .line = 1};
    CHECK_STR(text_of(&frame, &full), "f (stdlib/./stdlib/x.c:1)");
}

TEST(names_cannot_steer_a_terminal) {
    const struct stack_text_options plain = {0};
    struct symbol_frame frame = {.name = "a\x1b[2Jb\nc\x7f\xff\xc2\x9b"
                                         "d\xc3\xa9\xe2\x82\xac\xe0\x80\x80",
                                 .object = "/tmp/\r\x01"};
    CHECK_STR(text_of(&frame, &plain), "a\\x1B[2Jb\\x0Ac\\x7F\\xFF\\xC2\\x9Bd\xc3\xa9\xe2\x82\xac"
                                       "\\xE0\\x80\\x80 (in /tmp/\\x0D\\x01)");
    /* A character cut off by the end of the name. */
    frame = (struct symbol_frame){.name = "x\xe2\x82"};
    CHECK_STR(text_of(&frame, &plain), "x\\xE2\\x82 (in ?\?\?)");
}

struct lines {
    char *text[4096];
    size_t count;
};

static void add_line(void *context, const char *text) {
    struct lines *lines = context;
    if (lines->count < 4096)
        lines->text[lines->count++] = strdup(text);
}

static void free_lines(struct lines *lines) {
    while (lines->count)
        free(lines->text[--lines->count]);
}

TEST(addresses_without_an_object) {
    struct symbols *symbols = symbols_new(NULL);
    struct lines lines = {0};
    uint64_t addresses[] = {0x48c1f3b, 0x1fff0006d8, 0x38, 0};
    stack_text(symbols, &(struct stack){.pid = 1, .addresses = addresses, .count = 4},
               &(struct stack_text_options){.callers = 3}, add_line, &lines);
    CHECK_EQ(lines.count, 3);
    CHECK_STR(lines.text[0], "   at 0x48C1F3B: ?\?\?");
    CHECK_STR(lines.text[1], "   by 0x1FFF0006D7: ?\?\?");
    CHECK_STR(lines.text[2], "   by 0x37: ?\?\?");
    free_lines(&lines);
    symbols_free(symbols);
}

/* ------------------------------------------------------------------ against Valgrind */

enum { MOST_STACKS = 256, MOST_ADDRESSES = 64 };

struct stacks {
    struct lines lines[MOST_STACKS];
    size_t count;
};

static void free_stacks(struct stacks *stacks) {
    while (stacks->count)
        free_lines(&stacks->lines[--stacks->count]);
}

/* The backtraces in the log, without their "==PID== ". */
static void read_stacks(struct stacks *stacks) {
    static char line[16384];
    FILE *log = fopen(help_path("log"), "r");
    CHECK(log);
    while (fgets(line, sizeof line, log)) {
        line[strcspn(line, "\n")] = 0;
        const char *rest = strchr(line, ' ');
        if (!strncmp(line, "**", 2) && strstr(line, "backtrace ")) {
            CHECK(stacks->count < MOST_STACKS);
            stacks->count++;
        } else if (stacks->count && rest &&
                   (!strncmp(rest, "    at 0x", 9) || !strncmp(rest, "    by 0x", 9))) {
            add_line(&stacks->lines[stacks->count - 1], rest + 1);
        }
    }
    fclose(log);
}

/* What the program says of its own mappings. */
static void read_mappings(struct symbols *symbols) {
    static char line[8192], path[4096];
    FILE *maps = fopen(help_path("maps"), "r");
    CHECK(maps);
    size_t count = 0;
    while (fgets(line, sizeof line, maps)) {
        uint64_t start, end, offset;
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %*s %4095[^\n]", &start, &end,
                   &offset, path) != 4 ||
            path[0] != '/')
            continue;
        symbols_map(symbols, 1, start, end, offset, path, NULL);
        count++;
    }
    fclose(maps);
    CHECK(count > 5);
}

static bool run_valgrind(const char *options) {
    return help_run("rm -f log maps; valgrind --tool=none --log-file=log %s ./program x > maps",
                    options);
}

struct options {
    const char *valgrind;
    struct symbols_options symbols;
    struct stack_text_options text;
};

/*
 * The addresses of a stack, from its lines. The same address on several lines is recursion or
 * inlining: how many frames it has tells which.
 */
static size_t addresses_of(struct symbols *symbols, const struct lines *lines,
                           uint64_t *addresses) {
    struct symbol_frame frames[64];
    size_t count = 0;
    for (size_t i = 0; i < lines->count && count < MOST_ADDRESSES;) {
        uint64_t address = strtoull(strstr(lines->text[i], "0x"), NULL, 16);
        size_t here = symbols_resolve(symbols, 1, address, false, frames, 64);
        i += here ? here : 1;
        addresses[count] = address + (count > 0);
        count++;
    }
    return count;
}

static void compare(const char *label, const struct stacks *whole, bool whole_has_inlined,
                    const struct options *options) {
    CHECK(run_valgrind(options->valgrind));
    static struct stacks expected;
    free_stacks(&expected); /* of a comparison that failed */
    read_stacks(&expected);
    CHECK_EQ(expected.count, whole->count);
    struct symbols *all = symbols_new(&(struct symbols_options){.no_inlined = !whole_has_inlined});
    struct symbols *symbols = symbols_new(&options->symbols);
    read_mappings(all);
    read_mappings(symbols);
    size_t compared = 0;
    for (size_t i = 0; i < expected.count; i++) {
        uint64_t addresses[MOST_ADDRESSES];
        size_t count = addresses_of(all, &whole->lines[i], addresses);
        struct lines lines = {0};
        stack_text(symbols, &(struct stack){.pid = 1, .addresses = addresses, .count = count},
                   &options->text, add_line, &lines);
        for (size_t j = 0; j < lines.count && j < expected.lines[i].count; j++) {
            CHECK_STR(lines.text[j], expected.lines[i].text[j]);
            compared++;
        }
        CHECK_EQ(lines.count, expected.lines[i].count);
        free_lines(&lines);
    }
    NOTE("%-12s %-60s %3zu stacks %4zu lines", label, options->valgrind, expected.count, compared);
    free_stacks(&expected);
    symbols_free(all);
    symbols_free(symbols);
}

enum extent {
    ALL_OPTIONS,
    FEW_OPTIONS, /* Valgrind takes its time to start */
    NO_INLINED,  /* Valgrind 3.19 does not find what clang inlines in DWARF 5 */
};

static void compare_program(const char *label, const char *command, enum extent extent) {
    static const char *const nothing[] = {""}, *const cut[] = {"nowhere", "/tests/"};
    const struct options options[] = {
        {"--read-inline-info=yes", {0}, {0}},
        {"--read-inline-info=no", {.no_inlined = true}, {0}},
        {"--read-inline-info=yes --show-below-main=yes", {0}, {.show_below_main = true}},
        {"--read-inline-info=yes --num-callers=4", {0}, {.callers = 4}},
        {"--read-inline-info=yes --num-callers=40", {0}, {.callers = 40}},
        {"--read-inline-info=yes --demangle=no", {.no_demangle = true}, {0}},
        {"--read-inline-info=yes --sym-offsets=yes", {0}, {.symbol_offsets = true}},
        {"--read-inline-info=yes --fullpath-after=",
         {0},
         {.fullpath_after = nothing, .fullpath_after_count = 1}},
        {"--read-inline-info=yes --fullpath-after=nowhere --fullpath-after=/tests/",
         {0},
         {.fullpath_after = cut, .fullpath_after_count = 2}},
    };
    if (!help_run("command -v valgrind && test -e /usr/include/valgrind/valgrind.h"))
        SKIP("no valgrind");
    if (!help_run("%s -o program", command))
        unit_fail(label, 0, "does not compile: %s", command);
    static struct stacks whole;
    free_stacks(&whole);
    CHECK(run_valgrind(extent == NO_INLINED
                           ? "--read-inline-info=no --show-below-main=yes --num-callers=50"
                           : "--read-inline-info=yes --show-below-main=yes --num-callers=50"));
    read_stacks(&whole);
    CHECK(whole.count >= 5);
    size_t first = extent == NO_INLINED ? 1 : 0;
    size_t end = extent == ALL_OPTIONS ? sizeof options / sizeof *options : first ? 2 : 3;
    for (size_t i = first; i < end; i++)
        compare(label, &whole, extent != NO_INLINED, &options[i]);
    free_stacks(&whole);
}

#define C_TARGET   "-DWITH_VALGRIND -g -pthread $T/symbols_c.c"
#define CXX_TARGET "-DWITH_VALGRIND -std=c++17 -g $T/symbols_cxx.cc"

TEST(c_as_in_valgrind) {
    compare_program("gcc -O0", "gcc -O0 " C_TARGET, FEW_OPTIONS);
    compare_program("gcc -O2", "gcc -O2 " C_TARGET, ALL_OPTIONS);
    compare_program("gcc static", "gcc -O1 -static " C_TARGET, FEW_OPTIONS);
    compare_program("gcc stripped", "gcc -O1 -no-pie -s " C_TARGET, FEW_OPTIONS);
}

TEST(cxx_as_in_valgrind) {
    compare_program("g++ -O0", "g++ -O0 " CXX_TARGET, FEW_OPTIONS);
    compare_program("g++ -O2", "g++ -O2 " CXX_TARGET, ALL_OPTIONS);
}

TEST(clang_as_in_valgrind) {
    if (!help_has("clang"))
        SKIP("no clang");
    compare_program("clang -O2", "clang -gdwarf-4 -O2 " C_TARGET, FEW_OPTIONS);
    /* DWARF 5, and a path that clang leaves whole in its table of files. */
    compare_program("clang -O0",
                    "mkdir -p deep && cp $T/symbols_c.c deep && "
                    "clang -DWITH_VALGRIND -gdwarf-5 -O0 -pthread deep/symbols_c.c",
                    NO_INLINED);
    compare_program("clang++ -O2", "clang++ -gdwarf-4 -O2 " CXX_TARGET, FEW_OPTIONS);
}

UNIT_MAIN()
