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

// ---- words of single programs ------------------------------------------------------------------

// The words are the verb's own.
static bool keep(struct words *words, char **argv) {
    for (; *argv; argv++)
        add_word(words, *argv);
    return true;
}

// heaptrack [-o FILE] [-a FILE] PROGRAM ...
static bool translate_heaptrack(struct words *words, char **argv) {
    for (; *argv && (*argv)[0] == '-'; argv++) {
        if (strcmp(*argv, "--") == 0) {
            argv++;
            break;
        }
        bool has_next = argv[1] != NULL;
        if ((strcmp(*argv, "-o") == 0 || strcmp(*argv, "--output") == 0) && has_next) {
            add_joined(words, "--heap-out-file=", *++argv);
        } else if ((strcmp(*argv, "-a") == 0 || strcmp(*argv, "--analyze") == 0) && has_next) {
            free(words->at[words->count - 1]);
            words->at[words->count - 1] = base_copy("print");
            return keep(words, argv + 1);
        } else if (strcmp(*argv, "-q") == 0 || strcmp(*argv, "--quiet") == 0 ||
                   strcmp(*argv, "-h") == 0 || strcmp(*argv, "--help") == 0) {
            add_word(words, *argv);
        } else if (strcmp(*argv, "--record-only") != 0 && strcmp(*argv, "-r") != 0) {
            fprintf(stderr, "heaptrack: Quern has nothing like %s; see quern heap --help\n", *argv);
            return false;
        }
    }
    return keep(words, argv);
}

// heaptrack_print [-f] FILE
static bool translate_heaptrack_print(struct words *words, char **argv) {
    for (; *argv; argv++)
        if (strcmp(*argv, "-f") != 0 && strcmp(*argv, "--file") != 0)
            add_word(words, *argv);
    return true;
}

// callgrind_control [-s] [-d[=HINT]] [-z] [-k] [-i on|off] PID
static bool translate_control(struct words *words, char **argv) {
    const char *request = "status", *process = NULL, *more = NULL;
    for (; *argv; argv++) {
        const char *word = *argv;
        if (word[0] != '-')
            process = word;
        else if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0)
            return add_word(words, "--help"), true;
        else if (strcmp(word, "-d") == 0 || strncmp(word, "--dump", 6) == 0)
            request = "dump";
        else if (strcmp(word, "-z") == 0 || strcmp(word, "--zero") == 0)
            request = "zero";
        else if (strcmp(word, "-k") == 0 || strcmp(word, "--kill") == 0)
            request = "stop";
        else if (strncmp(word, "--instr=", 8) == 0)
            request = "instrumentation", more = word + 8;
        else if (strcmp(word, "-i") == 0 && argv[1])
            request = "instrumentation", more = *++argv;
        else if (strcmp(word, "-s") != 0 && strcmp(word, "--stat") != 0) {
            fprintf(stderr, "callgrind_control: Quern has nothing like %s; see quern ctl --help\n",
                    word);
            return false;
        }
    }
    if (!process) {
        fprintf(stderr, "callgrind_control: name a process by its number\n");
        return false;
    }
    add_word(words, process);
    add_word(words, request);
    if (more)
        add_word(words, more);
    return true;
}

static bool translate_diff(struct words *words, char **argv) {
    fprintf(stderr, "cg_diff: Quern cannot write the difference as a file yet; "
                    "quern diff FILE FILE shows it\n");
    return false;
}

// ---- the table ---------------------------------------------------------------------------------

static const struct name {
    const char *name;
    const char *verb; // NULL: a run
    bool (*translate)(struct words *words, char **argv);
} table[] = {
    {"valgrind", NULL, keep},
    {"ms_print", "print", keep},
    {"callgrind_annotate", "annotate", keep},
    {"callgrind_control", "ctl", translate_control},
    {"cg_annotate", "annotate", keep},
    {"cg_diff", "diff", translate_diff},
    {"cg_merge", "merge", keep},
    {"heaptrack", "heap", translate_heaptrack},
    {"heaptrack_print", "print", translate_heaptrack_print},
    {"vgdb", "vgdb", keep},
};
static const size_t table_size = sizeof table / sizeof *table;

static const char *base_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

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

char **names_translate(char **argv) {
    char path[PATH_SIZE];
    const char *name = base_of(argv[0]);
    const struct name *found = NULL;
    for (size_t i = 0; i < table_size; i++)
        if (strcmp(table[i].name, name) == 0)
            found = &table[i];
    if (!found) {
        if (!read_own_path(path) || strcmp(base_of(path), name) == 0 || strcmp(name, "quern") == 0)
            return argv;
        refuse_name(name);
        return NULL;
    }
    claims_valgrind = !found->verb;
    struct words words = {0};
    add_word(&words, argv[0]);
    if (found->verb)
        add_word(&words, found->verb);
    if (!found->translate(&words, argv + 1))
        return NULL;
    *vector_push(words.at, words.count) = NULL;
    return words.at;
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
    .description = "Makes the directory if it is not there, and in it links to this program with "
                   "the names valgrind, ms_print, callgrind_annotate, callgrind_control, "
                   "cg_annotate, cg_merge, heaptrack, heaptrack_print and others. Put it in front "
                   "of PATH.",
    .operands_least = 1,
    .run = make_links,
};
