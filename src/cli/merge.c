// quern merge FILE...: one callgrind.out or cachegrind.out that adds up others.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/verbs.h"
#include "cli/words.h"
#include "config.h"
#include "report/callgrind/cost_merge.h"

static int usage(FILE *out, int status) {
    fputs(
        "usage: quern merge [-o OUT] FILE...\n\n"
        "Writes a file that adds up others: callgrind.out files, or cachegrind.out files, Quern's "
        "or\n"
        "Valgrind's, with the same events. Costs, calls and jumps are added up by function, "
        "source\n"
        "file and line, and by instruction if all files tell them (--dump-instr=yes). Parts and\n"
        "threads of one run can be merged, and runs of several programs.\n\n"
        "  -o OUT   write to a file, which may be one of those read [standard output]\n",
        out);
    return status;
}

// ---- output ----

// A file can be replaced; a pipe, a device or what a link leads to is written to.
static bool is_replaced(const char *path) {
    struct stat status;
    return lstat(path, &status) != 0 || S_ISREG(status.st_mode);
}

static bool write_all(FILE *out, const struct text *text) {
    bool fine = fwrite(text->bytes, 1, text->size, out) == text->size;
    int error = errno;
    if (fclose(out) != 0 && fine)
        return false;
    errno = error;
    return fine;
}

// What was there before stays until the whole of it is written.
static int write_file(const char *path, const struct text *text) {
    struct text beside = {0};
    bool replaces = is_replaced(path);
    text_format(&beside, "%s.%d.new", path, (int)getpid());
    FILE *out = replaces ? fopen(beside.bytes, "wxe") : NULL;
    bool is_beside = out != NULL;
    // The folder may be one where nothing can be added.
    if (!out)
        out = fopen(path, "we");
    bool fine = out && write_all(out, text) && (!is_beside || rename(beside.bytes, path) == 0);
    int status = fine ? WORDS_DONE : words_fail("cannot write '%s': %s", path, strerror(errno));
    if (!fine && is_beside)
        unlink(beside.bytes);
    text_free(&beside);
    return status;
}

static int write_output(const char *path, const struct text *text) {
    if (path && strcmp(path, "-") != 0)
        return write_file(path, text);
    fwrite(text->bytes, 1, text->size, stdout);
    return words_close(stdout, NULL) ? WORDS_DONE : WORDS_FAILED;
}

// ---- input ----

// Valgrind leaves an empty file PATH beside those of threads, PATH-01 and so on.
static bool is_left_empty(const char *path, const char *const *paths, size_t count) {
    struct stat status;
    size_t size = strlen(path);
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size)
        return false;
    for (size_t i = 0; i < count; i++)
        if (strncmp(paths[i], path, size) == 0 && paths[i][size] == '-' &&
            strspn(paths[i] + size + 1, "0123456789") == strlen(paths[i] + size + 1))
            return true;
    return false;
}

static int add_file(struct cost_merge *merge, const char *path) {
    FILE *in = fopen(path, "re");
    if (!in)
        return words_fail("cannot read '%s': %s", path, strerror(errno));
    char *problem = cost_merge_add(merge, path, in);
    int status = problem ? words_fail("cannot merge '%s': %s", path, problem) : WORDS_DONE;
    free(problem);
    fclose(in);
    return status;
}

// Commands are data: nothing in them may move the cursor.
static void tell(char *remarks) {
    char *rest = remarks;
    for (char *c = remarks; *c; c++)
        if ((unsigned char)*c < ' ' && *c != '\n')
            *c = '?';
    for (char *line; (line = strsep(&rest, "\n")) && *line;)
        fprintf(stderr, "quern: %s\n", line);
    free(remarks);
}

static int merge_files(const char *const *paths, size_t count, const char *out) {
    struct cost_merge *merge = cost_merge_new();
    struct text text = {0};
    int status = WORDS_DONE;
    for (size_t i = 0; i < count && !status; i++)
        if (!is_left_empty(paths[i], paths, count))
            status = add_file(merge, paths[i]);
    if (!status) {
        char *remarks = cost_merge_remarks(merge);
        if (remarks)
            tell(remarks);
        cost_merge_write(merge, "quern-" QUERN_VERSION, &text);
        status = write_output(out, &text);
    }
    text_free(&text);
    cost_merge_free(merge);
    return status;
}

int verb_merge(char **words) {
    const char *out = NULL;
    const char **paths = NULL;
    size_t count = 0, word_count = 0;
    int status = WORDS_DONE;
    if (words_ask_help(words))
        return usage(stdout, WORDS_DONE);
    while (words[word_count])
        word_count++;
    paths = base_allocate((word_count + 1) * sizeof *paths);
    for (char **word = words; *word && !status; word++) {
        if (words_value(&word, "-o", &out))
            status = out && *out ? WORDS_DONE : words_fail("no name after -o");
        else if ((*word)[0] == '-' && (*word)[1])
            status = words_fail("unknown option '%s'; quern merge --help lists them", *word);
        else
            paths[count++] = *word;
    }
    if (!status)
        status = count ? merge_files(paths, count, out) : usage(stderr, WORDS_FAILED);
    free(paths);
    return status;
}
