// The parser of suppression files under damage: whatever a file holds, reading it gives entries or
// a message, and matching goes on working. QUERN_FUZZ_ROUNDS asks for more rounds, QUERN_FUZZ_SEED
// for others.
#include "unit.h"

#include <stdint.h>
#include <string.h>

#include "report/findings/suppressions.h"

static const char sound[] = "# comment\n"
                            "{\n   one\n   Memcheck:Cond\n   fun:in*\n   ...\n   obj:*/lib?.so\n}\n"
                            "{\n   two\n   Memcheck,Helgrind:Param\n   write(buf)\n   ...\n"
                            "   src:file.c:12\n   fun:main\n}\n"
                            "{\n   three\n   Memcheck:Leak\n"
                            "   match-leak-kinds: definite,possible\n   fun:malloc\n}\n"
                            "{\n   four\n   Helgrind:Race\n   whatever\n}\n";

static uint64_t state;

static uint64_t below(uint64_t bound) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % bound;
}

// A copy without a byte of room behind it, so that sanitizers see every step too far.
static char *read_copy(struct suppressions *suppressions, const char *text, size_t size) {
    char *copy = malloc(size ? size : 1);
    memcpy(copy, text, size);
    char *error = suppressions_parse(suppressions, copy, size, "f.supp");
    free(copy);
    return error;
}

static struct suppression *match(struct suppressions *suppressions, const char *kind,
                                 const char *parameter, unsigned leak_kind) {
    struct named_frame frames[] = {
        {.symbol = {.name = "inner", .linkage = "inner", .object = "/lib/libx.so"}},
        {.symbol = {.name = "main", .file = "file.c", .line = 12, .object = "/bin/liby.so"}},
        {.symbol = {.name = "main"}},
        {.symbol = {0}},
    };
    struct named_stack stack = {.frames = frames, .count = 4, .shown = 3};
    struct suppression_subject subject = {
        .kind = kind, .parameter = parameter, .leak_kind = leak_kind, .stack = &stack};
    return suppressions_match(suppressions, &subject);
}

TEST(sound_text_is_read) {
    struct suppressions *suppressions = suppressions_new();
    CHECK(!read_copy(suppressions, sound, sizeof sound - 1));
    CHECK_EQ(suppressions_count(suppressions), 3);
    struct suppression *one = match(suppressions, "Cond", NULL, 0);
    CHECK(one);
    CHECK_STR(one->name, "one");
    CHECK_EQ(one->line, 3);
    struct suppression *two = match(suppressions, "Param", "write(buf)", 0);
    CHECK(two);
    CHECK_STR(two->name, "two");
    CHECK(!match(suppressions, "Param", "read(buf)", 0));
    CHECK(!match(suppressions, "Leak", NULL, 1));
    suppressions_free(suppressions);
}

TEST(threads_that_begin_in_clone) {
    static const char text[] =
        "{\n a\n Memcheck:Cond\n fun:work\n fun:start_thread\n fun:clone\n}\n";
    struct suppressions *suppressions = suppressions_new();
    CHECK(!read_copy(suppressions, text, sizeof text - 1));
    struct named_frame frames[] = {
        {.symbol = {.name = "work", .linkage = "work"}},
        {.symbol = {.name = "start_thread", .linkage = "start_thread"}},
        {.symbol = {.name = "clone3", .linkage = "clone3"}},
    };
    struct named_stack stack = {.frames = frames, .count = 3, .shown = 3};
    struct suppression_subject subject = {.kind = "Cond", .stack = &stack};
    CHECK(suppressions_match(suppressions, &subject));
    frames[2].symbol = (struct symbol_frame){.name = "clone4", .linkage = "clone4"};
    CHECK(!suppressions_match(suppressions, &subject));
    suppressions_free(suppressions);
}

TEST(every_beginning_of_it_is_survived) {
    size_t refused = 0;
    for (size_t size = 0; size < sizeof sound; size++) {
        struct suppressions *suppressions = suppressions_new();
        char *error = read_copy(suppressions, sound, size);
        refused += error != NULL;
        CHECK(!error || strstr(error, "near line"));
        free(error);
        suppressions_free(suppressions);
    }
    CHECK(refused > 200);
}

TEST(a_bad_file_leaves_what_was_read_before) {
    struct suppressions *suppressions = suppressions_new();
    CHECK(!read_copy(suppressions, sound, sizeof sound - 1));
    char *error = read_copy(suppressions, "{\nx\nMemcheck:Cond\nfun:a\n", 24);
    CHECK(error);
    free(error);
    CHECK_EQ(suppressions_count(suppressions), 3);
    suppressions_free(suppressions);
}

static void damage(char *text, size_t *size, size_t room) {
    static const char *const pieces[] = {"\n",
                                         "{\n",
                                         "}\n",
                                         "...\n",
                                         "fun:",
                                         "obj:\n",
                                         "src::\n",
                                         "*",
                                         "?*?*?",
                                         "#",
                                         "\0",
                                         ":",
                                         ",",
                                         "\xff",
                                         "match-leak-kinds:\n",
                                         "include f\n",
                                         "Memcheck:Leak\n"};
    size_t at = below(*size + 1);
    if (below(3) == 0 && *size) {
        at %= *size;
        size_t count = below(*size - at) + 1;
        memmove(text + at, text + at + count, *size - at - count);
        *size -= count;
    } else if (below(2) && *size) {
        text[at % *size] = (char)below(256);
    } else {
        const char *piece = pieces[below(sizeof pieces / sizeof *pieces)];
        size_t count = *piece ? strlen(piece) : 1;
        if (*size + count > room)
            return;
        memmove(text + at + count, text + at, *size - at);
        memcpy(text + at, piece, count);
        *size += count;
    }
}

TEST(damaged_text_is_survived) {
    const char *given = getenv("QUERN_FUZZ_ROUNDS");
    const char *seed = getenv("QUERN_FUZZ_SEED");
    size_t rounds = given ? strtoul(given, NULL, 10) : 30000, refused = 0, matched = 0;
    state = seed ? strtoull(seed, NULL, 10) * 2 + 1 : 0x9e3779b97f4a7c15;
    for (size_t round = 0; round < rounds; round++) {
        char text[2 * sizeof sound];
        size_t size = sizeof sound - 1;
        memcpy(text, sound, size);
        for (uint64_t i = below(8) + 1; i; i--)
            damage(text, &size, sizeof text);
        struct suppressions *suppressions = suppressions_new();
        char *error = read_copy(suppressions, text, size);
        refused += error != NULL;
        free(error);
        matched += match(suppressions, "Cond", NULL, 0) != NULL;
        matched += match(suppressions, "Param", "write(buf)", 0) != NULL;
        matched += match(suppressions, "Leak", NULL, 4) != NULL;
        suppressions_free(suppressions);
    }
    NOTE("%zu damaged texts: %zu refused, %zu matches", rounds, refused, matched);
    CHECK(refused > rounds / 10 && matched > rounds / 10);
}

TEST(matching_takes_no_exponential_time) {
    struct text {
        char bytes[8192];
        size_t size;
    } text = {0};
    text.size = (size_t)snprintf(text.bytes, sizeof text.bytes, "{\nn\nMemcheck:Cond\n");
    for (int i = 0; i < 200; i++)
        text.size += (size_t)snprintf(text.bytes + text.size, sizeof text.bytes - text.size,
                                      "...\nfun:a*b*c*\n");
    text.size += (size_t)snprintf(text.bytes + text.size, sizeof text.bytes - text.size, "}\n");
    struct suppressions *suppressions = suppressions_new();
    CHECK(!read_copy(suppressions, text.bytes, text.size));
    struct named_frame *frames = calloc(500, sizeof *frames);
    for (int i = 0; i < 500; i++)
        frames[i].symbol.name = "aaaaaaaaaaaabbbbbbbbbbbbbbbaaaaaaaaaabbbbbbbb";
    struct named_stack stack = {.frames = frames, .count = 500, .shown = 500};
    struct suppression_subject subject = {.kind = "Cond", .stack = &stack};
    CHECK(!suppressions_match(suppressions, &subject));
    free(frames);
    suppressions_free(suppressions);
}

UNIT_MAIN()
