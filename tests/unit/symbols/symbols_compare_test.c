/*
 * The same addresses asked of symbols and of addr2line, for programs of many kinds. llvm-addr2line
 * is the judge wherever it is there, because it knows DWARF 5 and split units; GNU addr2line of
 * binutils 2.40 mixes up the files of DWARF 5 and misses inlined functions there, so it judges
 * DWARF 4 only.
 *
 * Programs of yours at full length:
 *     SYMBOLS_PROGRAMS=/path/one:/path/two SYMBOLS_ADDRESSES=10000 tests/run unit:real_programs
 */
#include "unit.h"

#include "symbols/symbols.h"
#include "symbols/symtab.h"
#include "symbols_help.h"

#include <string.h>

enum { MOST_FRAMES = 128, MOST_ADDRESSES = 6000 };

enum depth {
    ALL,        /* inlined frames, lines and names */
    NO_INLINED, /* the line at the address and the function around */
    NAMES,      /* a function has its name, or none where the file was stripped of it */
};

struct counts {
    size_t addresses, frames, inlined, named, lines, aliases;
};

static char difference[8192];

static size_t most_addresses(void) {
    const char *given = getenv("SYMBOLS_ADDRESSES");
    return given ? strtoul(given, NULL, 10) : MOST_ADDRESSES;
}

/* One frame of the judge: two lines, the function and FILE:LINE. */
struct judged {
    char name[8192], place[4096];
};

static bool read_line(FILE *from, char *line, size_t size) {
    if (!fgets(line, (int)size, from))
        return false;
    line[strcspn(line, "\n")] = 0;
    return true;
}

static bool is_address_line(const char *line) {
    return !strncmp(line, "0x", 2) && line[2 + strspn(line + 2, "0123456789abcdef")] == 0;
}

static bool same_place(const struct symbol_frame *frame, const char *place) {
    char whole[8192];
    const char *colon = strrchr(place, ':');
    unsigned line = colon ? (unsigned)strtoul(colon + 1, NULL, 10) : 0;
    if (!line)
        return !frame->line; /* the judge then guesses files from the symbol table */
    if (frame->line != line || !frame->file)
        return false;
    bool has_folder = frame->directory && frame->directory[0];
    snprintf(whole, sizeof whole, "%s%s%s", has_folder ? frame->directory : "",
             has_folder ? "/" : "", frame->file);
    return strlen(whole) == (size_t)(colon - place) && !strncmp(whole, place, strlen(whole));
}

/* The judge takes another of the names at the same address now and then. */
static bool same_function(const struct symbol_frame *frame, const char *name,
                          struct counts *counts) {
    const char *own = frame->linkage ? frame->linkage : frame->name;
    if (!own || !strcmp(name, "??"))
        return !own && !strcmp(name, "??");
    if (!strcmp(own, name))
        return true;
    /* main.cold is a symbol; in the debug information it is a part of main. */
    size_t length = strlen(name);
    if (!strncmp(own, name, length) && own[length] == '.')
        return true;
    if (frame->inlined || !symtab_prefer(own, name))
        return false;
    counts->aliases++;
    return true;
}

static bool same_frames(enum depth depth, const struct symbol_frame *frames, size_t count,
                        const struct judged *judged, size_t judged_count, struct counts *counts) {
    if (depth == NAMES) {
        const struct symbol_frame *frame = &frames[count - 1];
        return !frame->name || same_function(frame, judged[judged_count - 1].name, counts);
    }
    if (depth == NO_INLINED)
        return count == 1 && same_place(&frames[0], judged[0].place) &&
               same_function(&frames[0], judged[judged_count - 1].name, counts);
    if (count != judged_count)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!same_place(&frames[i], judged[i].place) ||
            !same_function(&frames[i], judged[i].name, counts))
            return false;
    return true;
}

static void describe(uint64_t address, const struct symbol_frame *frames, size_t count,
                     const struct judged *judged, size_t judged_count) {
    size_t used = (size_t)snprintf(difference, sizeof difference, "0x%lx:", (long)address);
    for (size_t i = 0; i < count && used < sizeof difference; i++)
        used += (size_t)snprintf(difference + used, sizeof difference - used, " %s %s:%u",
                                 frames[i].linkage ? frames[i].linkage : frames[i].name,
                                 frames[i].file, frames[i].line);
    for (size_t i = 0; i < judged_count && used < sizeof difference; i++)
        used += (size_t)snprintf(difference + used, sizeof difference - used, "%s%s %s",
                                 i ? " " : " | judge: ", judged[i].name, judged[i].place);
}

static struct counts compare(const char *label, const char *judge, const char *judged_file,
                             const char *file, enum depth depth,
                             const struct symbols_options *options) {
    struct counts counts = {0};
    static struct judged judged[MOST_FRAMES];
    struct symbol_frame frames[MOST_FRAMES];
    uint64_t *addresses, bias = 0x7f0000000000;
    size_t count = help_text_addresses(help_path(judged_file), most_addresses(), &addresses);
    CHECK(count > 100);
    FILE *list = fopen(help_path("addresses"), "w");
    for (size_t i = 0; i < count; i++)
        fprintf(list, "0x%lx\n", (long)addresses[i]);
    fclose(list);
    CHECK(help_run("%s -f -i -a -e %s < addresses > answers", judge, judged_file));

    struct symbols *symbols = symbols_new(options);
    CHECK(help_map(symbols, 1, help_path(file), bias));
    FILE *answers = fopen(help_path("answers"), "r");
    static char line[8192];
    bool more = read_line(answers, line, sizeof line);
    for (size_t i = 0; i < count; i++) {
        CHECK(more && is_address_line(line) && strtoul(line, NULL, 16) == addresses[i]);
        size_t judged_count = 0;
        while ((more = read_line(answers, line, sizeof line)) && !is_address_line(line)) {
            CHECK(judged_count < MOST_FRAMES);
            strcpy(judged[judged_count].name, line);
            CHECK(read_line(answers, judged[judged_count].place, sizeof judged[0].place));
            judged_count++;
        }
        size_t found = symbols_resolve(symbols, 1, addresses[i] + bias, false, frames, MOST_FRAMES);
        CHECK(found && judged_count);
        if (!same_frames(depth, frames, found, judged, judged_count, &counts)) {
            describe(addresses[i], frames, found, judged, judged_count);
            unit_fail(label, 0, "%s", difference);
        }
        counts.addresses++;
        counts.frames += found;
        counts.inlined += found - 1;
        counts.named += frames[found - 1].name != NULL;
        counts.lines += frames[0].line != 0;
    }
    CHECK(!more);
    fclose(answers);
    free(addresses);
    symbols_check(symbols);
    CHECK_EQ(symbols_statistics(symbols).faults, 0);
    symbols_free(symbols);
    NOTE("%-34s %5zu addresses %6zu frames %6zu inlined %5zu named %5zu with line %4zu aliases",
         label, counts.addresses, counts.frames, counts.inlined, counts.named, counts.lines,
         counts.aliases);
    return counts;
}

static const char *judge(void) {
    return help_has("llvm-addr2line") ? "llvm-addr2line" : NULL;
}

static void need(const char *program) {
    if (!help_has(program))
        SKIP("%s is not installed", program);
}

/* Builds with the command (which writes "program"), then compares everything. */
static void compare_build(const char *label, const char *command) {
    if (!help_run("rm -f program; %s", command))
        unit_fail(label, 0, "does not compile: %s", command);
    struct counts counts = compare(label, judge(), "program", "program", ALL, NULL);
    CHECK(counts.lines > counts.addresses / 50);
    CHECK(counts.named > counts.addresses / 2);
}

TEST(c_with_gcc) {
    need("llvm-addr2line");
    compare_build("gcc -O0", "gcc -g -O0 -pthread $T/symbols_c.c -o program");
    compare_build("gcc -O2", "gcc -g -O2 -pthread $T/symbols_c.c -o program");
    compare_build("gcc -O2 not PIE", "gcc -g -O2 -no-pie -pthread $T/symbols_c.c -o program");
    compare_build("gcc -O2 -gdwarf-4", "gcc -gdwarf-4 -O2 -pthread $T/symbols_c.c -o program");
    compare_build("gcc -O2 -flto", "gcc -g -O2 -flto -pthread $T/symbols_c.c -o program");
    compare_build("gcc -O2 sections",
                  "gcc -g -O2 -ffunction-sections -Wl,--gc-sections -pthread $T/symbols_c.c "
                  "-o program");
}

TEST(c_static) {
    need("llvm-addr2line");
    CHECK(help_run("gcc -g -O2 -static -pthread $T/symbols_c.c -o program"));
    struct counts counts = compare("gcc -static", judge(), "program", "program", ALL, NULL);
    CHECK(counts.named > counts.addresses * 9 / 10);
}

TEST(c_with_clang) {
    need("llvm-addr2line");
    need("clang");
    compare_build("clang -O0", "clang -g -O0 -pthread $T/symbols_c.c -o program");
    compare_build("clang -O2", "clang -g -O2 -pthread $T/symbols_c.c -o program");
    compare_build("clang -O2 -gdwarf-4", "clang -gdwarf-4 -O2 -pthread $T/symbols_c.c -o program");
}

TEST(cxx) {
    need("llvm-addr2line");
    compare_build("g++ -O0", "g++ -std=c++17 -g -O0 $T/symbols_cxx.cc -o program");
    compare_build("g++ -O2", "g++ -std=c++17 -g -O2 $T/symbols_cxx.cc -o program");
    compare_build("g++ -O2 compressed", "g++ -std=c++17 -g -gz -O2 $T/symbols_cxx.cc -o program");
    need("clang++");
    compare_build("clang++ -O0", "clang++ -std=c++17 -g -O0 $T/symbols_cxx.cc -o program");
    compare_build("clang++ -O2", "clang++ -std=c++17 -g -O2 $T/symbols_cxx.cc -o program");
    compare_build("clang++ -O2 -gdwarf-4",
                  "clang++ -std=c++17 -gdwarf-4 -O2 $T/symbols_cxx.cc -o program");
}

TEST(rust) {
    need("llvm-addr2line");
    need("rustc");
    compare_build("rustc", "rustc -g $T/symbols_rust.rs -o program");
    compare_build("rustc -O", "rustc -g -O $T/symbols_rust.rs -o program");
    compare_build("rustc -O v0",
                  "rustc -g -O -C symbol-mangling-version=v0 $T/symbols_rust.rs -o program");
}

/* Programs with many inlined functions: servers in C++ and Rust, and those of SYMBOLS_PROGRAMS. */
TEST(real_programs) {
    need("llvm-addr2line");
    need("clang++");
    compare_build("server, g++ -O2", "g++ -g -O2 -pthread $R/tests/report/growth/targets/twelve.cc "
                                     "-o program");
    compare_build("server, clang++ -O2",
                  "clang++ -g -O2 -pthread $R/tests/report/growth/targets/twelve.cc -o program");
    need("rustc");
    compare_build("shop, rustc -O",
                  "rustc -g -O --edition=2021 --crate-type=rlib --crate-name=shop "
                  "$R/examples/shop/src/lib.rs && rustc -g -O --edition=2021 --extern "
                  "shop=libshop.rlib $R/examples/shop/src/main.rs -o program");
    const char *given = getenv("SYMBOLS_PROGRAMS");
    char *paths = strdup(given ? given : ""), *rest = paths;
    for (char *path; (path = strsep(&rest, ":"));) {
        if (!*path)
            continue;
        CHECK(help_run("cp '%s' program", path));
        compare(path, judge(), "program", "program", ALL, NULL);
    }
    free(paths);
}

/* Where compilers cut paths that are relative differs; the whole is the same. */
TEST(relative_paths) {
    need("llvm-addr2line");
    need("clang");
    static const char *const compilers[] = {"gcc -gdwarf-4", "gcc -gdwarf-5", "clang -gdwarf-4",
                                            "clang -gdwarf-5"};
    for (size_t i = 0; i < 4; i++) {
        CHECK(help_run("mkdir -p deep/er && cp $T/symbols_c.c deep/er/ && "
                       "%s -O2 -pthread deep/er/symbols_c.c -o program",
                       compilers[i]));
        compare(compilers[i], judge(), "program", "program", ALL, NULL);
    }
}

TEST(split_dwarf) {
    need("llvm-addr2line");
    compare_build("g++ -gsplit-dwarf", "g++ -std=c++17 -g -gsplit-dwarf -O2 -c $T/symbols_cxx.cc "
                                       "&& g++ symbols_cxx.o -o program");
    compare_build("g++ -gdwarf-4 -gsplit-dwarf",
                  "g++ -std=c++17 -gdwarf-4 -gsplit-dwarf -O2 -c $T/symbols_cxx.cc "
                  "&& g++ symbols_cxx.o -o program");
    need("clang++");
    compare_build("clang++ -gsplit-dwarf",
                  "clang++ -std=c++17 -g -gsplit-dwarf -O2 -c $T/symbols_cxx.cc "
                  "&& clang++ symbols_cxx.o -o program");
    /* Without the split unit its lines remain. */
    CHECK(help_run("mv symbols_cxx.dwo elsewhere.dwo"));
    CHECK(help_run("clang++ -std=c++17 -g -O2 $T/symbols_cxx.cc -o whole"));
    compare(".dwo not there", judge(), "whole", "program", NO_INLINED, NULL);
}

/* The judge reads the whole program, we the stripped one with its debug file elsewhere. */
TEST(separate_debug_files) {
    need("llvm-addr2line");
    struct counts counts;
    CHECK(help_run("g++ -std=c++17 -g -O2 -Wl,--build-id=none $T/symbols_cxx.cc -o whole && "
                   "mkdir -p bin/.debug extra && objcopy --only-keep-debug whole bin/link.debug && "
                   "strip whole -o bin/program && cd bin && "
                   "objcopy --add-gnu-debuglink=link.debug program"));
    counts = compare("debuglink beside", judge(), "whole", "bin/program", ALL, NULL);
    CHECK(counts.inlined > 500);
    CHECK(help_run("mv bin/link.debug bin/.debug/"));
    compare("debuglink in .debug", judge(), "whole", "bin/program", ALL, NULL);
    struct symbols_options options = {.extra_debug_path = help_path("extra")};
    CHECK(help_run("mv bin/.debug/link.debug extra/"));
    compare("debuglink in the extra path", judge(), "whole", "bin/program", ALL, &options);
    /* A debug file with the wrong checksum is not believed. */
    CHECK(help_run("cp extra/link.debug bin/ && printf x >> bin/link.debug"));
    counts = compare("debuglink with wrong checksum", judge(), "whole", "bin/program", NAMES, NULL);
    CHECK_EQ(counts.lines, 0);
    /* By build-id. */
    CHECK(help_run("gcc -g -O2 -pthread -Wl,--build-id=0x00112233445566778899aabbccddeeff "
                   "$T/symbols_c.c -o whole && mkdir -p extra/.build-id/00 && "
                   "objcopy --only-keep-debug whole "
                   "extra/.build-id/00/112233445566778899aabbccddeeff.debug && "
                   "strip whole -o program"));
    compare("build-id in the extra path", judge(), "whole", "program", ALL, &options);
}

TEST(stripped) {
    need("llvm-addr2line");
    CHECK(help_run("gcc -g -O2 -rdynamic -pthread $T/symbols_c.c -o whole && "
                   "strip whole -o program"));
    struct counts counts = compare(".dynsym only", judge(), "whole", "program", NAMES, NULL);
    CHECK(counts.named > 50 && counts.lines == 0);
    CHECK(help_run("gcc -O2 -pthread $T/symbols_c.c -o program"));
    counts = compare(".symtab only", judge(), "program", "program", ALL, NULL);
    CHECK(counts.named > counts.addresses / 2 && counts.lines == 0);
    /* MiniDebugInfo: the symbol table alone, compressed, in a section of the stripped program. */
    need("xz");
    CHECK(help_run("strip -g whole -o mini && objcopy --only-keep-debug mini && xz -kf mini && "
                   "strip whole -o program && "
                   "objcopy --add-section .gnu_debugdata=mini.xz program"));
    counts = compare(".gnu_debugdata", judge(), "mini", "program", ALL, NULL);
    CHECK(counts.named > counts.addresses / 2);
}

TEST(dwz) {
    need("llvm-addr2line");
    need("dwz");
    CHECK(help_run("g++ -std=c++17 -gdwarf-4 -O2 $T/symbols_cxx.cc -o whole && "
                   "cp whole one && cp whole two && dwz one && "
                   "cp whole one2 && cp whole two2 && dwz -m common.dwz one2 two2"));
    struct counts counts = compare("dwz", judge(), "whole", "one", ALL, NULL);
    CHECK(counts.inlined > 500);
    compare("dwz -m", judge(), "whole", "one2", ALL, NULL);
}

TEST(gnu_addr2line_agrees_on_dwarf_4) {
    CHECK(help_run("clang++ -std=c++17 -gdwarf-4 -O2 $T/symbols_cxx.cc -o whole || "
                   "g++ -std=c++17 -gdwarf-4 -O0 $T/symbols_cxx.cc -o whole"));
    /* It names the padding behind a function after it: ask for names of functions only. */
    struct counts counts = compare("GNU addr2line", "addr2line", "whole", "whole", NAMES, NULL);
    CHECK(counts.named > 1000);
}

UNIT_MAIN()
