/* Mappings, files and their bounds, identity, variables, names: what needs no other judge. */
#include "unit.h"

#include "symbols/demangle.h"
#include "base/guard.h"
#include "symbols/names.h"
#include "symbols/ranges.h"
#include "symbols/symbols.h"
#include "symbols/symtab.h"
#include "symbols_help.h"

#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ------------------------------------------------------------------ parts */

TEST(ranges_find_the_innermost) {
    struct range_list list = {0};
    struct ranges ranges;
    range_list_add(&list, 30, 40, 3, 2);
    range_list_add(&list, 10, 100, 1, 0);
    range_list_add(&list, 20, 60, 2, 1);
    range_list_add(&list, 20, 60, 4, 2); /* the same, but deeper */
    range_list_add(&list, 100, 110, 5, 0);
    range_list_add(&list, 105, 120, 6, 0); /* overlaps without nesting: the later wins */
    range_list_add(&list, 7, 7, 9, 0);     /* empty */
    CHECK_EQ(ranges_build(&ranges, &list), 0);
    static const struct {
        uint64_t at;
        uint32_t owner;
    } expected[] = {{0, RANGES_NONE}, {7, RANGES_NONE}, {9, RANGES_NONE},  {10, 1},  {19, 1},
                    {20, 4},          {29, 4},          {30, 3},           {39, 3},  {40, 4},
                    {59, 4},          {60, 1},          {99, 1},           {100, 5}, {104, 5},
                    {105, 6},         {119, 6},         {120, RANGES_NONE}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        CHECK_EQ(ranges_find(&ranges, expected[i].at), expected[i].owner);
    ranges_free(&ranges);
    range_list_free(&list);
}

/* Against the definition, on many small random families of nested ranges. */
TEST(ranges_agree_with_a_plain_search) {
    unsigned seed = 1;
    for (int round = 0; round < 2000; round++) {
        struct range_list list = {0};
        struct range kept[16];
        struct ranges ranges;
        uint32_t count = 0;
        for (uint32_t i = 0; i < 16; i++) {
            uint64_t low = (uint64_t)rand_r(&seed) % 64, high = low + (uint64_t)rand_r(&seed) % 32;
            bool nests = low < high;
            for (uint32_t j = 0; j < count && nests; j++)
                nests = high <= kept[j].low || low >= kept[j].high ||
                        (low > kept[j].low && high < kept[j].high) ||
                        (low < kept[j].low && high > kept[j].high);
            if (!nests)
                continue;
            kept[count] = (struct range){.low = low, .high = high, .owner = count};
            range_list_add(&list, low, high, count, 0);
            count++;
        }
        CHECK_EQ(ranges_build(&ranges, &list), 0);
        for (uint64_t at = 0; at < 100; at++) {
            uint32_t best = RANGES_NONE;
            for (uint32_t j = 0; j < count; j++)
                if (at >= kept[j].low && at < kept[j].high &&
                    (best == RANGES_NONE || kept[j].low > kept[best].low))
                    best = j;
            CHECK_EQ(ranges_find(&ranges, at), best);
        }
        ranges_free(&ranges);
        range_list_free(&list);
    }
}

TEST(names_are_kept_once) {
    struct names *names = names_new();
    char text[32];
    const char *first = names_keep(names, "name7");
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 5000; i++) {
            snprintf(text, sizeof text, "name%d", i);
            CHECK_STR(names_keep(names, text), text);
        }
    CHECK(names_keep(names, "name7") == first);
    CHECK(names_keep_part(names, "name77", 5) == first);
    CHECK(names_keep(names, NULL) == NULL);
    names_free(names);
}

TEST(demangle_knows_cxx_and_rust) {
    static const char *const pairs[][2] = {
        {"_ZN2ns1KC1Ev", "ns::K::K()"},
        {"_ZNSt6vectorIiSaIiEE9push_backERKi",
         "std::vector<int, std::allocator<int> >::push_back(int const&)"},
        {"_ZZ4mainENKUliE_clEi", "main::{lambda(int)#1}::operator()(int) const"},
        {"_ZL7comparePKvS0_.part.0", "compare(void const*, void const*) [clone .part.0]"},
        {"_ZNSs4swapERSs@@GLIBCXX_3.4", "std::string::swap(std::string&)@@GLIBCXX_3.4"},
        {"_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"},
        {"_RNvCs1234_7mycrate3foo", "mycrate::foo"},
        {"_GLOBAL__sub_I_main", "_GLOBAL__sub_I_main"},
    };
    char buffer[4096];
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (!demangle(pairs[i][0], buffer, sizeof buffer))
            snprintf(buffer, sizeof buffer, "%s", pairs[i][0]);
        CHECK_STR(buffer, pairs[i][1]);
    }
    CHECK(!demangle("main", buffer, sizeof buffer));
    CHECK(!demangle("_start", buffer, sizeof buffer));
    CHECK(!demangle("", buffer, sizeof buffer));
    CHECK(!demangle("_ZNSt6vectorIiSaIiEE9push_backERKi", buffer, 8)); /* no room */
}

/* Each argument doubles the one before: 2 to the power of 30 bytes without a bound. */
TEST(demangle_stops_where_names_explode) {
    char name[512] = "_Z1f1AIiiE";
    static char buffer[NAMES_LONGEST];
    for (int i = 0; i < 30; i++) {
        char digit = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i];
        char next[16];
        snprintf(next, sizeof next, "S_IS%c_S%c_E", digit, digit);
        strcat(name, next);
    }
    double start = help_seconds();
    CHECK(!demangle(name, buffer, sizeof buffer));
    CHECK(help_seconds() - start < 2);
    /* Long names are demangled all the same. */
    static char longer[6000] = "_Z1f";
    for (int i = 0; i < 200; i++)
        strcat(longer, "24ANameThatIsNotShortAtAll");
    CHECK(demangle(longer, buffer, sizeof buffer));
    CHECK(!strncmp(buffer, "f(ANameThatIsNotShortAtAll, ANameThat", 37));
}

TEST(symtab_prefers_what_valgrind_prints) {
    /* Seen in Valgrind 3.19 with glibc 2.36. */
    static const char *const pairs[][2] = {
        {"abort", "__GI_abort"},
        {"__libc_start_main", "__libc_start_main_impl"},
        {"__libc_start_main@GLIBC_2.2.5", "__libc_start_main"},
        {"__libc_start_main@@GLIBC_2.34", "__libc_start_main@GLIBC_2.2.5"},
        {"secure_getenv", "__secure_getenv@GLIBC_2.2.5"},
        {"aio_cancel64@GLIBC_2.2.5", "__aio_cancel"},
        {"__open", "open64"},
        {"_Exit", "_exit"},
        {"__EI_xdr_bool", "__GI_xdr_bool"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        CHECK(symtab_prefer(pairs[i][0], pairs[i][1]));
        CHECK(!symtab_prefer(pairs[i][1], pairs[i][0]));
    }
}

static void raise_segv(void *context) {
    raise(SIGSEGV);
}
static void call_abort(void *context) {
    abort();
}
static void give_up(void *context) {
    guard_give_up();
}
static void do_nothing(void *context) {}

TEST(guard_survives_signals) {
    for (int round = 0; round < 3; round++) {
        CHECK(!guard_run(raise_segv, NULL));
        CHECK(!guard_run(call_abort, NULL));
        CHECK(!guard_run(give_up, NULL));
        CHECK(guard_run(do_nothing, NULL));
    }
}

/* ------------------------------------------------------------------ mappings */

static const char *built(void) {
    static const char *path;
    if (!path) {
        bool compiled = help_run("gcc -g -O2 -pthread $T/symbols_c.c -o plain");
        CHECK(compiled);
        path = strdup(help_path("plain"));
    }
    return path;
}

/* The outermost function at a vaddr of the plain target, or "". */
static const char *name_at(struct symbols *symbols, pid_t pid, uint64_t address) {
    struct symbol_frame frames[16];
    size_t count = symbols_resolve(symbols, pid, address, false, frames, 16);
    return count && frames[count - 1].name ? frames[count - 1].name : "";
}

TEST(maps_and_unmaps) {
    struct symbols *symbols = symbols_new(NULL);
    uint64_t bias = 0x7f1234560000, main_at = help_symbol(built(), "main");
    CHECK(main_at);
    CHECK_STR(name_at(symbols, 1, main_at + bias), "");
    CHECK(help_map(symbols, 1, built(), bias));
    symbols_check(symbols);
    CHECK_STR(name_at(symbols, 1, main_at + bias), "main");
    CHECK_STR(name_at(symbols, 2, main_at + bias), "");
    /* A hole in the middle takes nothing else away. */
    uint64_t page = (main_at + bias) & ~4095ull;
    symbols_unmap(symbols, 1, page, page + 4096);
    symbols_check(symbols);
    CHECK_STR(name_at(symbols, 1, main_at + bias), "");
    /* Something else is mapped over it. */
    CHECK(help_map(symbols, 1, built(), bias));
    CHECK_STR(name_at(symbols, 1, main_at + bias), "main");
    symbols_map(symbols, 1, page, page + 4096, 0, "/dev/zero", NULL);
    symbols_check(symbols);
    CHECK_STR(name_at(symbols, 1, main_at + bias), "");
    symbols_free(symbols);
}

/* What remains of a mapping on either side of a hole keeps its place in the file. */
TEST(splits_mappings) {
    const char *path = built();
    uint64_t main_at = help_symbol(path, "main"), bias = 0x100000;
    for (int side = 0; side < 2; side++) {
        struct symbols *symbols = symbols_new(NULL);
        /* Pages before the file's first and after its last make room for the hole. */
        symbols_map(symbols, 1, bias, bias + 0x10000, 0, path, NULL);
        uint64_t page = main_at & ~4095ull;
        CHECK(page);
        if (side)
            symbols_unmap(symbols, 1, bias + page + 4096, bias + page + 8192);
        else
            symbols_map(symbols, 1, bias - 4096, bias + page, 0, "/dev/zero", NULL);
        symbols_check(symbols);
        CHECK_STR(name_at(symbols, 1, main_at + bias), "main");
        symbols_free(symbols);
    }
}

TEST(forks_and_ends) {
    struct symbols *symbols = symbols_new(NULL);
    uint64_t main_at = help_symbol(built(), "main");
    CHECK(help_map(symbols, 1, built(), 0x10000));
    symbols_fork(symbols, 1, 2);
    symbols_end(symbols, 1);
    symbols_check(symbols);
    CHECK_STR(name_at(symbols, 1, main_at + 0x10000), "");
    CHECK_STR(name_at(symbols, 2, main_at + 0x10000), "main");
    for (pid_t pid = 3; pid < 3000; pid++)
        symbols_fork(symbols, 2, pid);
    symbols_fork(symbols, 77, 2); /* a child's number is used again */
    CHECK_STR(name_at(symbols, 2999, main_at + 0x10000), "main");
    CHECK_STR(name_at(symbols, 2, main_at + 0x10000), "main");
    symbols_check(symbols);
    CHECK_EQ(symbols_statistics(symbols).opened_files, 1);
    symbols_end(symbols, 12345);
    symbols_free(symbols);
}

TEST(keeps_unmapped_objects_if_asked) {
    for (int keep = 0; keep < 2; keep++) {
        struct symbols *symbols = symbols_new(&(struct symbols_options){.keep_unmapped = keep});
        uint64_t main_at = help_symbol(built(), "main");
        for (int round = 0; round < 3; round++) {
            CHECK(help_map(symbols, 1, built(), 0x10000));
            symbols_unmap(symbols, 1, 0, UINT64_MAX);
        }
        symbols_check(symbols);
        CHECK_STR(name_at(symbols, 1, main_at + 0x10000), keep ? "main" : "");
        symbols_fork(symbols, 1, 2);
        CHECK_STR(name_at(symbols, 2, main_at + 0x10000), keep ? "main" : "");
        symbols_free(symbols);
    }
}

/* lld puts segments into the file without padding: one page of it is mapped twice. */
TEST(tells_segments_in_one_page_apart) {
    if (!help_has("ld.lld") || !help_has("clang"))
        SKIP("no clang or lld");
    CHECK(help_run("clang -g -O2 -pthread -fuse-ld=lld $T/symbols_c.c -o lld"));
    struct symbols *symbols = symbols_new(NULL);
    const char *path = help_path("lld");
    CHECK(help_map(symbols, 1, path, 0x555500000000));
    static const char *const functions[] = {"main", "outermost", "recursive", "_start"};
    for (size_t i = 0; i < 4; i++) {
        uint64_t vaddr = help_symbol(path, functions[i]);
        CHECK(vaddr);
        CHECK_STR(name_at(symbols, 1, vaddr + 0x555500000000), functions[i]);
    }
    symbols_free(symbols);
}

TEST(names_variables) {
    struct symbols *symbols = symbols_new(NULL);
    const char *path = built();
    CHECK(help_map(symbols, 1, path, 0x40000));
    static const char *const variables[] = {"initialised_variable", "zeroed_variable",
                                            "constant_variable"};
    static const uint64_t offsets[] = {12, 9000, 3};
    for (size_t i = 0; i < 3; i++) {
        struct symbol_data data;
        uint64_t vaddr = help_symbol(path, variables[i]);
        CHECK(symbols_resolve_data(symbols, 1, vaddr + 0x40000 + offsets[i], &data));
        CHECK_STR(data.name, variables[i]);
        CHECK_EQ(data.offset, offsets[i]);
        CHECK_STR(data.object, path);
    }
    struct symbol_data data;
    CHECK(!symbols_resolve_data(symbols, 1, 0x10, &data));
    CHECK(!symbols_resolve_data(symbols, 1, 0x7fffffff0000, &data));
    CHECK(!symbols_resolve_data(symbols, 1, help_symbol(path, "main") + 0x40000, &data));
    symbols_free(symbols);
}

/* ------------------------------------------------------------------ files */

static char noted[4096];

static void note(void *context, const char *text) {
    snprintf(noted + strlen(noted), sizeof noted - strlen(noted), "%s\n", text);
}

/* Every way to put another file where the mapped one was. */
TEST(withholds_names_of_a_replaced_file) {
    static const char *const ways[] = {
        "cp $T/symbols_c.c other.tmp && mv other.tmp victim",
        "cp plain other.tmp && mv other.tmp victim",
        "sleep 0.02; cat plain > victim",
        "truncate -s 20000 victim",
        "rm victim",
    };
    uint64_t main_at = help_symbol(built(), "main");
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        CHECK(help_run("rm -f victim; cp plain victim"));
        struct symbols *symbols = symbols_new(&(struct symbols_options){.note = note});
        CHECK(help_map(symbols, 1, help_path("victim"), 0));
        CHECK(help_run("%s", ways[i]));
        noted[0] = 0;
        CHECK_STR(name_at(symbols, 1, main_at), "");
        CHECK(strstr(noted, "victim: the file "));
        /* Said once. */
        noted[0] = 0;
        CHECK_STR(name_at(symbols, 1, main_at + 1), "");
        CHECK_STR(noted, "");
        symbols_free(symbols);
    }
}

TEST(compares_what_is_known_of_a_file) {
    struct stat status;
    CHECK(stat(built(), &status) == 0);
    uint64_t main_at = help_symbol(built(), "main");
    const struct symbols_identity right = {.device = status.st_dev,
                                           .inode = status.st_ino,
                                           .size = (uint64_t)status.st_size,
                                           .changed_seconds = status.st_mtim.tv_sec,
                                           .changed_nanoseconds = (uint32_t)status.st_mtim.tv_nsec};
    struct symbols_identity known[] = {right, {0}, right, right, right, right, right};
    known[2].device++;
    known[3].inode++;
    known[4].size++;
    known[5].changed_seconds++;
    known[6].changed_nanoseconds++;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct symbols *symbols = symbols_new(NULL);
        symbols_map(symbols, 1, 0, 1 << 20, 0, built(), &known[i]);
        CHECK_STR(name_at(symbols, 1, main_at), i < 2 ? "main" : "");
        symbols_free(symbols);
    }
}

TEST(follows_the_build_id) {
    CHECK(help_run(
        "gcc -g -Wl,--build-id=0x0123456789abcdef0123456789abcdef -pthread $T/symbols_c.c -o id"));
    uint64_t main_at = help_symbol(help_path("id"), "main");
    struct symbols_identity identity = {.inode = 1, .build_id_size = 16};
    memcpy(identity.build_id, "\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef",
           16);
    for (int wrong = 0; wrong < 2; wrong++) {
        struct symbols *symbols = symbols_new(NULL);
        identity.build_id[9] ^= wrong;
        symbols_map(symbols, 1, 0, 1 << 20, 0, help_path("id"), &identity);
        CHECK_STR(name_at(symbols, 1, main_at), wrong ? "" : "main");
        symbols_free(symbols);
    }
}

TEST(closes_what_was_used_least_recently) {
    enum { FILES = 100 };
    CHECK(built());
    for (int i = 0; i < FILES; i++)
        CHECK(help_run("cp plain copy%d", i));
    struct symbols *symbols = symbols_new(&(struct symbols_options){.max_open_files = 8});
    uint64_t main_at = help_symbol(built(), "main");
    char name[32];
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "copy%d", i);
        CHECK(help_map(symbols, 1, help_path(name), 0x100000ull * (i + 1)));
    }
    CHECK_EQ(symbols_statistics(symbols).opened_files, 0);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < FILES; i++) {
            CHECK_STR(name_at(symbols, 1, main_at + 0x100000ull * (i + 1)), "main");
            symbols_check(symbols);
        }
    struct symbols_statistics statistics = symbols_statistics(symbols);
    CHECK_EQ(statistics.open_files, 8);
    CHECK_EQ(statistics.opened_files, 2 * FILES);
    CHECK_EQ(statistics.closed_files, 2 * FILES - 8);
    /* The last one is still open. */
    CHECK_STR(name_at(symbols, 1, main_at + 0x100000ull * FILES), "main");
    CHECK_EQ(symbols_statistics(symbols).opened_files, 2 * FILES);
    symbols_free(symbols);
    /* Tables too large for the bound: each question opens the file again. */
    symbols = symbols_new(&(struct symbols_options){.max_table_bytes = 1});
    CHECK(help_map(symbols, 1, built(), 0));
    CHECK_STR(name_at(symbols, 1, main_at), "main");
    CHECK_STR(name_at(symbols, 1, main_at), "main");
    CHECK_EQ(symbols_statistics(symbols).open_files, 0);
    CHECK_EQ(symbols_statistics(symbols).opened_files, 2);
    symbols_free(symbols);
}

TEST(gives_no_names_for_what_is_no_object) {
    CHECK(help_run("mkfifo pipe; : > empty; printf '\\177ELF' > short; mkdir -p folder"));
    static const char *const paths[] = {"pipe", "empty", "short", "folder", "missing"};
    struct symbols *symbols = symbols_new(NULL);
    struct symbol_frame frame;
    for (size_t i = 0; i < 5; i++) {
        symbols_map(symbols, 1, 0x1000, 0x2000, 0, help_path(paths[i]), NULL);
        CHECK_EQ(symbols_resolve(symbols, 1, 0x1800, false, &frame, 1), 1);
        CHECK(!frame.name && !frame.file && frame.object);
    }
    symbols_map(symbols, 1, 0x1000, 0x2000, 0, "[vdso]", NULL);
    CHECK_EQ(symbols_resolve(symbols, 1, 0x1800, false, &frame, 1), 1);
    CHECK_STR(frame.object, "[vdso]");
    CHECK_EQ(symbols_resolve(symbols, 1, 0x1800, false, &frame, 0), 0);
    symbols_free(symbols);
}

TEST(resolves_inlined_frames) {
    const char *path = built();
    uint64_t low = help_symbol(path, "outermost");
    for (int without = 0; without < 2; without++) {
        struct symbols *symbols = symbols_new(&(struct symbols_options){.no_inlined = without});
        CHECK(help_map(symbols, 1, path, 0));
        size_t most = 0;
        struct symbol_frame frames[16], best[16] = {0};
        for (uint64_t at = low; at < low + 24; at++) {
            size_t count = symbols_resolve(symbols, 1, at, false, frames, 16);
            CHECK(count >= 1);
            CHECK_STR(frames[count - 1].name, "outermost");
            CHECK_EQ(frames[count - 1].offset, at - low);
            CHECK_STR(frames[0].file, "symbols_c.c");
            if (count > most) {
                most = count;
                memcpy(best, frames, sizeof best);
            }
        }
        CHECK_EQ(most, without ? 1 : 3);
        if (!without) {
            CHECK_STR(best[0].name, "innermost");
            CHECK_STR(best[1].name, "middle");
            CHECK(best[0].inlined && best[1].inlined && !best[2].inlined);
            CHECK_EQ(best[1].line, 29);
            CHECK_EQ(best[2].line, 34);
            CHECK_STR(best[2].directory, SYMBOLS_TARGETS);
        }
        symbols_free(symbols);
    }
}

/* Whether a frame of that name is found anywhere in the program's code. */
static bool is_named(struct symbols *symbols, const char *path, const char *name, bool inlined) {
    uint64_t *addresses;
    size_t count = help_text_addresses(path, 200000, &addresses);
    bool found = false;
    for (size_t i = 0; i < count && !found; i++) {
        struct symbol_frame frames[64];
        size_t most = symbols_resolve(symbols, 1, addresses[i], false, frames, 64);
        for (size_t j = 0; j < most; j++)
            found |=
                frames[j].name && !strcmp(frames[j].name, name) && frames[j].inlined == inlined;
    }
    free(addresses);
    return found;
}

TEST(tells_functions_of_one_name_apart) {
    CHECK(help_run("gcc -g -O2 $T/symbols_twin.c $T/symbols_twin_other.c -o twins"));
    for (int full = 0; full < 2; full++) {
        struct symbols *symbols = symbols_new(&(struct symbols_options){.full_names = full});
        CHECK(help_map(symbols, 1, help_path("twins"), 0));
        CHECK(is_named(symbols, help_path("twins"), "work", true));
        CHECK(is_named(symbols, help_path("twins"), "rest", false));
        bool by_file = is_named(symbols, help_path("twins"), "work (symbols_twin.c:5)", true) ||
                       is_named(symbols, help_path("twins"), "work (symbols_twin_other.c:5)", true);
        CHECK_EQ(by_file, full);
        by_file = is_named(symbols, help_path("twins"), "rest (symbols_twin.c:11)", false) ||
                  is_named(symbols, help_path("twins"), "rest (symbols_twin_other.c:11)", false);
        CHECK_EQ(by_file, full);
        symbols_free(symbols);
    }
}

TEST(names_inlined_frames_with_their_paths) {
    if (!help_has("rustc"))
        SKIP("rustc is not installed");
    for (int version = 0; version < 2; version++) {
        CHECK(help_run("rustc --edition 2021 -g -O %s $T/symbols_paths.rs -o paths",
                       version ? "-C symbol-mangling-version=v0" : ""));
        struct symbols *plain = symbols_new(NULL);
        struct symbols *full = symbols_new(&(struct symbols_options){.full_names = true});
        CHECK(help_map(plain, 1, help_path("paths"), 0));
        CHECK(help_map(full, 1, help_path("paths"), 0));
        CHECK(is_named(plain, help_path("paths"), "work", true));
        CHECK(is_named(full, help_path("paths"), "symbols_paths::a::work", true));
        CHECK(is_named(full, help_path("paths"), "symbols_paths::b::work", true));
        CHECK(is_named(full, help_path("paths"), "symbols_paths::serve::{async fn}", true));
        CHECK(is_named(full, help_path("paths"), "symbols_paths::a::work::{closure#0}", true));
        CHECK(!is_named(full, help_path("paths"), "work", true));
        symbols_free(plain);
        symbols_free(full);
    }
}

UNIT_MAIN()
