#include "cli/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "base/vector.h"
#include "cli/arguments.h"
#include "cli/names/parts.h"
#include "cli/verbs.h"
#include "cli/words.h"
#include "config.h"

enum { PATH_SIZE = 4096 };

struct words {
    char **at;
    size_t count;
};

static bool claims_valgrind;

bool names_claim_valgrind(void) {
    return claims_valgrind;
}

static void add_word(struct words *words, const char *word) {
    *vector_push(words->at, words->count) = base_copy(word);
}

static void add_joined(struct words *words, const char *first, const char *second) {
    struct text text = {0};
    text_format(&text, "%s%s", first, second);
    *vector_push(words->at, words->count) = text_take(&text);
}

static bool is_either(const char *word, const char *letter, const char *name) {
    return strcmp(word, letter) == 0 || strcmp(word, name) == 0;
}

static bool complain(const char *name, const char *word, const char *what) {
    fprintf(stderr, "%s: %s %s\n", name, word, what);
    return false;
}

// ---- words of single programs ------------------------------------------------------------------

// The words are the verb's own.
static bool keep(struct words *words, char **argv) {
    for (; *argv; argv++)
        add_word(words, *argv);
    return true;
}

// FILE becomes FILE.zst, as heaptrack's does, in a folder that is made if it is not there.
static void add_heaptrack_file(struct words *words, const char *file) {
    struct text text = {0};
    for (const char *slash = strchr(file, '/'); slash; slash = strchr(slash + 1, '/')) {
        text_clear(&text);
        text_format(&text, "%.*s", (int)(slash - file), file);
        if (text.size)
            mkdir(text.bytes, 0777);
    }
    text_clear(&text);
    text_format(&text, "%s.zst", file);
    add_joined(words, "--heap-out-file=", text.bytes);
    text_free(&text);
}

static const char *base_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

// heaptrack.PROGRAM.PID.zst here
static void add_heaptrack_default(struct words *words, const char *program) {
    struct text text = {0};
    text_string(&text, "heaptrack.");
    for (const char *at = base_of(program); *at; at++)
        text_format(&text, *at == '%' ? "%%%%" : "%c", *at);
    text_string(&text, ".%p");
    add_heaptrack_file(words, text.bytes);
    text_free(&text);
}

// heaptrack [-o FILE] [-a FILE] PROGRAM ...
static bool translate_heaptrack(struct words *words, char **argv) {
    bool has_file = false;
    for (; *argv && (*argv)[0] == '-'; argv++) {
        const char *word = *argv;
        if (strcmp(word, "--") == 0) {
            argv++;
            break;
        }
        if (is_either(word, "-o", "--output") || strcmp(word, "--output-file") == 0) {
            if (!argv[1])
                return complain("heaptrack", word, "needs a file");
            add_heaptrack_file(words, *++argv);
            has_file = true;
        } else if (is_either(word, "-a", "--analyze") && argv[1]) {
            free(words->at[words->count - 1]);
            words->at[words->count - 1] = base_copy("print");
            return keep(words, argv + 1);
        } else if (is_either(word, "-q", "--quiet") || is_either(word, "-h", "--help")) {
            add_word(words, word);
        } else if (is_either(word, "-p", "--pid")) {
            return complain("heaptrack", word,
                            "is not supported; quern leaks --pid=PID looks into a process");
        } else if (!is_either(word, "-r", "--raw") && strcmp(word, "--record-only") != 0 &&
                   strcmp(word, "--use-inject") != 0) {
            return complain("heaptrack", word, "is not supported; see quern heap --help");
        }
    }
    if (*argv && !has_file)
        add_heaptrack_default(words, *argv);
    if (*argv)
        add_word(words, "--");
    return keep(words, argv);
}

// --dump may stand without a reason.
static bool translate_control(struct words *words, char **argv) {
    for (; *argv; argv++)
        if (is_either(*argv, "-d", "--dump"))
            add_word(words, "--dump=callgrind_control");
        else if (strcmp(*argv, "-b") == 0 || strcmp(*argv, "--back") == 0 ||
                 strncmp(*argv, "-e", 2) == 0)
            return complain("callgrind_control", *argv,
                            "is not supported; --dump writes stacks and counts to a file");
        else
            add_word(words, *argv);
    return true;
}

// ---- the table ---------------------------------------------------------------------------------

// What a program prints for --version: Valgrind's Perl scripts to standard error with status 255.
#define VALGRIND_SCRIPT "-" NAMES_VALGRIND_VERSION, 255
#define VALGRIND_KIN    "-" NAMES_VALGRIND_VERSION, 0
#define HEAPTRACK_KIN   " 1.4.0", 0

static const struct name {
    const char *name;
    const char *version; // behind the name; NULL: the words of the verb decide
    int version_status;
    const struct verb *verb; // NULL: a run
    bool (*translate)(struct words *words, char **argv);
    const char *tool; // of a run; NULL: the words name it
} table[] = {
    {"valgrind", NULL, 0, NULL, keep, NULL},
    {"ms_print", VALGRIND_SCRIPT, &verb_print, keep, NULL},
    {"callgrind_annotate", VALGRIND_SCRIPT, &verb_callgrind_annotate, keep, NULL},
    {"callgrind_control", VALGRIND_KIN, &verb_callgrind_control, translate_control, NULL},
    {"cg_annotate", VALGRIND_KIN, &verb_cg_annotate, keep, NULL},
    {"cg_diff", VALGRIND_KIN, &verb_cg_diff, keep, NULL},
    {"cg_merge", VALGRIND_KIN, &verb_merge, keep, NULL},
    {"heaptrack", HEAPTRACK_KIN, NULL, translate_heaptrack, "heap"},
    {"heaptrack_print", HEAPTRACK_KIN, &verb_heaptrack_print, keep, NULL},
    {"vgdb", NULL, 0, &verb_vgdb, keep, NULL},
};
static const size_t table_size = sizeof table / sizeof *table;

static bool read_own_path(char path[PATH_SIZE]) {
    ssize_t size = readlink("/proc/self/exe", path, PATH_SIZE - 1);
    path[size < 0 ? 0 : size] = 0;
    return size > 0;
}

static void refuse_name(const char *name) {
    fprintf(stderr, "quern: called as '%s', which is no name that it knows; those are quern", name);
    for (size_t i = 0; i < table_size; i++)
        fprintf(stderr, "%s %s", i + 1 < table_size ? "," : " and", table[i].name);
    fputc('\n', stderr);
}

static bool asks_for_version(const struct name *name, char *const *argv) {
    for (; name->version && *argv && (*argv)[0] == '-'; argv++)
        if (strcmp(*argv, "--version") == 0 ||
            (strcmp(*argv, "-v") == 0 && name->verb != &verb_merge))
            return true;
    return false;
}

static enum names_call print_version(const struct name *name, int *status) {
    fprintf(name->version_status ? stderr : stdout, "%s%s (Quern %s)\n", name->name, name->version,
            QUERN_VERSION);
    *status = name->version_status;
    return NAMES_ENDED;
}

enum names_call names_translate(char ***argv, const struct verb **verb, int *status) {
    char path[PATH_SIZE];
    const char *name = base_of((*argv)[0]);
    const struct name *found = NULL;
    *status = WORDS_FAILED;
    for (size_t i = 0; i < table_size; i++)
        if (strcmp(table[i].name, name) == 0)
            found = &table[i];
    if (!found) {
        if (!read_own_path(path) || strcmp(base_of(path), name) == 0 || strcmp(name, "quern") == 0)
            return NAMES_OWN;
        refuse_name(name);
        return NAMES_ENDED;
    }
    if (asks_for_version(found, *argv + 1))
        return print_version(found, status);
    claims_valgrind = strcmp(found->name, "valgrind") == 0;
    struct words words = {0};
    add_word(&words, (*argv)[0]);
    if (found->tool)
        add_word(&words, found->tool);
    if (!found->translate(&words, *argv + 1))
        return NAMES_ENDED;
    *vector_push(words.at, words.count) = NULL;
    *argv = words.at;
    *verb = found->verb;
    return found->verb ? NAMES_VERB : NAMES_OWN;
}

// ---- quern names DIRECTORY ---------------------------------------------------------------------

static int make_links(const struct arguments *arguments) {
    char path[PATH_SIZE];
    const char *folder = arguments->operands[0];
    if (!read_own_path(path))
        return words_fail("cannot find the program's own file: %s", strerror(errno));
    if (mkdir(folder, 0777) < 0 && errno != EEXIST)
        return words_fail("cannot make '%s': %s", folder, strerror(errno));
    for (size_t i = 0; i < table_size; i++) {
        struct text link = {0};
        text_format(&link, "%s/%s", folder, table[i].name);
        int failed = symlink(path, link.bytes) < 0 ? errno : 0;
        if (failed)
            words_fail("cannot make '%s': %s", link.bytes, strerror(failed));
        text_free(&link);
        if (failed)
            return WORDS_FAILED;
    }
    printf("To use them, run\n  PATH=%s:$PATH\n", folder);
    return words_close(stdout, NULL) ? WORDS_DONE : WORDS_FAILED;
}

const struct verb verb_names = {
    .name = "names",
    .usage = "DIRECTORY",
    .help = "make links by which Quern stands in for valgrind and its kin",
    .description =
        "Makes the directory if it is not there, and in it links to this program with "
        "the names valgrind, ms_print, callgrind_annotate, callgrind_control, "
        "cg_annotate, cg_diff, cg_merge, heaptrack, heaptrack_print and vgdb. Put it in front "
        "of PATH.",
    .operands_least = 1,
    .run = make_links,
};
