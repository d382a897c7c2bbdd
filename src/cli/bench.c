// quern bench: measures allocators of this machine with patterns of allocation (src/patterns).
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/glob.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/verbs.h"
#include "cli/words.h"

enum { PATTERNS_MOST = 32, ALLOCATORS_MOST = 8 };

struct pattern {
    char name[32], help[96];
    bool wanted;
};

struct allocator {
    const char *name, *library; // library NULL: the C library's
    bool recorded;
};

// What is compared, and what came out.
struct bench {
    struct pattern patterns[PATTERNS_MOST];
    size_t pattern_count;
    struct allocator allocators[ALLOCATORS_MOST];
    size_t allocator_count;
    double times[PATTERNS_MOST][ALLOCATORS_MOST]; // seconds of CPU time; negative: failed
};

// ---- what there is -----------------------------------------------------------------------------

static bool read_patterns(struct bench *bench, const char *program) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], 1);
        execl(program, program, "--list", (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    FILE *in = fdopen(ends[0], "r");
    char line[160];
    while (in && bench->pattern_count < PATTERNS_MOST && fgets(line, sizeof line, in)) {
        struct pattern *pattern = &bench->patterns[bench->pattern_count];
        if (sscanf(line, "%31s %95[^\n]", pattern->name, pattern->help) == 2)
            bench->pattern_count++;
    }
    if (in)
        fclose(in);
    int status;
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 && bench->pattern_count;
}

static void find_allocators(struct bench *bench) {
    static const struct {
        const char *name, *files[3];
    } known[] = {
        {"jemalloc", {"libjemalloc.so.2", NULL}},
        {"mimalloc", {"libmimalloc.so.2", "libmimalloc.so.3", NULL}},
        {"tcmalloc", {"libtcmalloc_minimal.so.4", "libtcmalloc.so.4", NULL}},
    };
    static const char *const folders[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib",
                                          "/usr/local/lib"};
    bench->allocators[bench->allocator_count++] = (struct allocator){.name = "glibc"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char *found = NULL;
        for (size_t folder = 0; !found && folder < sizeof folders / sizeof *folders; folder++) {
            for (size_t file = 0; !found && known[i].files[file]; file++) {
                struct text path = {0};
                text_format(&path, "%s/%s", folders[folder], known[i].files[file]);
                if (access(path.bytes, R_OK) == 0)
                    found = text_take(&path);
                text_free(&path);
            }
        }
        if (found)
            bench->allocators[bench->allocator_count++] =
                (struct allocator){.name = known[i].name, .library = found};
    }
    bench->allocators[bench->allocator_count++] =
        (struct allocator){.name = "recorded", .recorded = true};
}

// ---- measuring ---------------------------------------------------------------------------------

static void run(const struct allocator *allocator, const char *program, const char *pattern) {
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, 1);
    if (allocator->library)
        setenv("LD_PRELOAD", allocator->library, 1);
    if (allocator->recorded)
        execl("/proc/self/exe", "quern", "-q", "--command-line-only=yes", "--tool=heap",
              "--heap-out-file=/dev/null", program, pattern, (char *)NULL);
    else
        execl(program, program, pattern, (char *)NULL);
    _exit(127);
}

static double measure(const struct allocator *allocator, const char *program, const char *pattern) {
    int status;
    struct rusage use;
    pid_t pid = fork();
    if (pid == 0)
        run(allocator, program, pattern);
    if (pid < 0 || wait4(pid, &status, 0, &use) != pid || status)
        return -1;
    return (double)use.ru_utime.tv_sec + (double)use.ru_stime.tv_sec +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

static void measure_all(struct bench *bench, const char *program, unsigned runs) {
    bool progress = isatty(2);
    for (size_t i = 0; i < bench->pattern_count; i++) {
        for (size_t j = 0; bench->patterns[i].wanted && j < bench->allocator_count; j++) {
            if (progress)
                fprintf(stderr, "\r%-12s %-12s", bench->patterns[i].name,
                        bench->allocators[j].name);
            double best = -1;
            for (unsigned k = 0; k < runs; k++) {
                double time = measure(&bench->allocators[j], program, bench->patterns[i].name);
                if (time >= 0 && (best < 0 || time < best))
                    best = time;
            }
            bench->times[i][j] = best;
        }
    }
    if (progress)
        fprintf(stderr, "\r%-26s\r", "");
}

static bool has_failed(const struct bench *bench) {
    for (size_t i = 0; i < bench->pattern_count; i++)
        for (size_t j = 0; bench->patterns[i].wanted && j < bench->allocator_count; j++)
            if (bench->times[i][j] < 0)
                return true;
    return false;
}

// ---- showing -----------------------------------------------------------------------------------

static void print_table(const struct bench *bench) {
    printf("%-12s", "");
    for (size_t j = 0; j < bench->allocator_count; j++)
        printf(" %16s", bench->allocators[j].name);
    puts("");
    for (size_t i = 0; i < bench->pattern_count; i++) {
        if (!bench->patterns[i].wanted)
            continue;
        printf("%-12s", bench->patterns[i].name);
        for (size_t j = 0; j < bench->allocator_count; j++) {
            if (bench->times[i][j] < 0)
                printf(" %16s", "failed");
            else if (j == 0 || bench->times[i][0] <= 0)
                printf(" %13.0f ms", 1000 * bench->times[i][j]);
            else
                printf(" %6.0f ms %5.2fx", 1000 * bench->times[i][j],
                       bench->times[i][j] / bench->times[i][0]);
        }
        puts("");
    }
    puts("\nCPU time of the fastest run; x: relative to glibc. recorded: glibc under --tool=heap.");
}

static bool write_svg(const struct bench *bench, const char *path) {
    enum { LEFT = 110, WIDTH = 600, BAR = 14, GAP = 16 };
    static const char *const colours[ALLOCATORS_MOST] = {
        "#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377", "#bbbbbb", "#000000"};
    double most = 0;
    size_t rows = 0;
    for (size_t i = 0; i < bench->pattern_count; i++) {
        rows += bench->patterns[i].wanted;
        for (size_t j = 0; bench->patterns[i].wanted && j < bench->allocator_count; j++)
            most = bench->times[i][j] > most ? bench->times[i][j] : most;
    }
    FILE *out = fopen(path, "we");
    if (!out)
        return false;
    size_t group = bench->allocator_count * BAR + GAP, y = 40;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%zu\" "
            "font-family=\"sans-serif\" font-size=\"11\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            LEFT + WIDTH + 90, 50 + rows * group);
    for (size_t j = 0; j < bench->allocator_count; j++)
        fprintf(out,
                "<rect x=\"%zu\" y=\"12\" width=\"10\" height=\"10\" fill=\"%s\"/>"
                "<text x=\"%zu\" y=\"21\">%s</text>\n",
                LEFT + 100 * j, colours[j], LEFT + 15 + 100 * j, bench->allocators[j].name);
    for (size_t i = 0; i < bench->pattern_count; i++) {
        if (!bench->patterns[i].wanted)
            continue;
        fprintf(out, "<text x=\"%d\" y=\"%zu\" text-anchor=\"end\">%s</text>\n", LEFT - 8,
                y + group / 2, bench->patterns[i].name);
        for (size_t j = 0; j < bench->allocator_count; j++, y += BAR) {
            double time = bench->times[i][j] < 0 ? 0 : bench->times[i][j];
            double width = most > 0 ? WIDTH * time / most : 0;
            fprintf(out,
                    "<rect x=\"%d\" y=\"%zu\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>"
                    "<text x=\"%.1f\" y=\"%zu\">%.0f ms</text>\n",
                    LEFT, y, width, BAR - 2, colours[j], LEFT + width + 4, y + BAR - 4,
                    1000 * time);
        }
        y += GAP;
    }
    fputs("</svg>\n", out);
    bool fine = !ferror(out);
    return fclose(out) == 0 && fine;
}

// ---- the verb ----------------------------------------------------------------------------------

// Names that benchmarks of allocators usually have. Case, '-' and '_' do not matter.
static const struct {
    const char *alias, *name;
} aliases[] = {
    {"string", "strings"},
    {"string-allocation", "strings"},
    {"vector", "vectors"},
    {"vec", "vectors"},
    {"vec-growth", "vectors"},
    {"vector-growth", "vectors"},
    {"map", "maps"},
    {"hash-map", "maps"},
    {"hash-maps", "maps"},
    {"reference", "references"},
    {"reference-counting", "references"},
    {"reference-counted-pointers", "references"},
    {"refcount", "references"},
    {"rc", "references"},
    {"arc", "references"},
    {"request", "requests"},
    {"request-response", "requests"},
    {"request/response", "requests"},
    {"object", "objects"},
    {"object-pool", "pool"},
    {"pools", "pool"},
    {"memory-pool", "pool"},
    {"leak", "leaks"},
    {"leak-patterns", "leaks"},
    {"memory-leaks", "leaks"},
    {"size", "sizes"},
    {"size-classes", "sizes"},
    {"allocation-sizes", "sizes"},
    {"free-timing", "late"},
    {"deallocation-timing", "late"},
    {"late-free", "late"},
};

static const char *skip_dashes(const char *text) {
    return text + strspn(text, "-_");
}

static bool is_alias(const char *word, const char *alias) {
    for (word = skip_dashes(word), alias = skip_dashes(alias); *word && *alias;
         word = skip_dashes(word + 1), alias = skip_dashes(alias + 1))
        if (tolower((unsigned char)*word) != *alias)
            return false;
    return *word == *alias;
}

// The name of a pattern that the word stands for; the word itself if it is no alias.
static const char *resolve_alias(const char *word) {
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (is_alias(word, aliases[i].alias))
            return aliases[i].name;
    return word;
}

static int choose(struct bench *bench, const char *word) {
    const char *name = resolve_alias(word);
    bool any = false;
    for (size_t i = 0; i < bench->pattern_count; i++) {
        bool matches = glob_match(name, bench->patterns[i].name);
        bench->patterns[i].wanted |= matches;
        any |= matches;
    }
    return any ? WORDS_DONE
               : words_fail("there is no pattern '%s'; quern bench --list names them", word);
}

static void list_patterns(const struct bench *bench) {
    for (size_t i = 0; i < bench->pattern_count; i++) {
        if (!bench->patterns[i].wanted)
            continue;
        printf("%-12s %s", bench->patterns[i].name, bench->patterns[i].help);
        const char *before = "; also";
        for (size_t j = 0; j < sizeof aliases / sizeof *aliases; j++) {
            if (strcmp(aliases[j].name, bench->patterns[i].name) == 0) {
                printf("%s %s", before, aliases[j].alias);
                before = ",";
            }
        }
        puts("");
    }
}

static int run_bench(const struct arguments *arguments) {
    struct bench bench = {0};
    const char *svg = argument_text(arguments, "svg");
    char *program = words_part("quern-patterns", X_OK);
    if (!program || !read_patterns(&bench, program))
        return words_fail("quern-patterns is missing; reinstall or rebuild Quern");
    for (size_t i = 0; i < arguments->operand_count; i++)
        if (choose(&bench, arguments->operands[i]))
            return WORDS_FAILED;
    for (size_t i = 0; !arguments->operand_count && i < bench.pattern_count; i++)
        bench.patterns[i].wanted = true;
    if (argument_given(arguments, "list")) {
        list_patterns(&bench);
        return WORDS_DONE;
    }
    find_allocators(&bench);
    measure_all(&bench, program, (unsigned)argument_number(arguments, "runs"));
    print_table(&bench);
    free(program);
    if (svg && !write_svg(&bench, svg))
        return words_fail("cannot write '%s': %s", svg, strerror(errno));
    return has_failed(&bench) ? words_fail("some patterns could not be run") : WORDS_DONE;
}

static const struct option options[] = {
    {.name = "list", .type = OPTION_FLAG, .help = "list the patterns and what they do"},
    {.name = "runs",
     .type = OPTION_NUMBER,
     .least = 1,
     .most = 100,
     .initial = "3",
     .help = "runs per pattern; the fastest is shown"},
    {.name = "svg", .type = OPTION_STRING, .value = "FILE", .help = "also draw a chart"},
    {0},
};

const struct verb verb_bench = {
    .name = "bench",
    .usage = "[options] [PATTERN...]",
    .help = "measure allocators and Quern's recorder",
    .description = "Runs patterns of allocation with each installed allocator (glibc, jemalloc, "
                   "mimalloc, tcmalloc) and with glibc under Quern's recorder, and shows the CPU "
                   "time. PATTERN is a name or a glob of names; the default is all.",
    .options = options,
    .run = run_bench,
};
