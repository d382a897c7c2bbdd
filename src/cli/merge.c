// quern merge FILE...: adds callgrind.out or cachegrind.out files into one.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/arguments.h"
#include "cli/verbs.h"
#include "cli/words.h"
#include "config.h"
#include "report/callgrind/cost_merge.h"

// ---- output ----

// Regular files are replaced. Pipes, devices and the targets of links are written to.
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

// The old contents stay until all of the new ones are written.
static int write_file(const char *path, const struct text *text) {
    struct text beside = {0};
    bool replaces = is_replaced(path);
    text_format(&beside, "%s.%d.new", path, (int)getpid());
    FILE *out = replaces ? fopen(beside.bytes, "wxe") : NULL;
    bool is_beside = out != NULL;
    // The directory may not permit a new file.
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

// Valgrind leaves an empty file PATH beside the files of threads, PATH-01 and so on.
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

// Remarks quote commands, which may contain control characters.
static void print_remarks(char *remarks) {
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
            print_remarks(remarks);
        cost_merge_write(merge, "quern-" QUERN_VERSION, &text);
        status = write_output(out, &text);
    }
    text_free(&text);
    cost_merge_free(merge);
    return status;
}

static int run_merge(const struct arguments *arguments) {
    return merge_files(arguments->operands, arguments->operand_count,
                       argument_text(arguments, "o"));
}

static const struct option options[] = {
    {.name = "o",
     .letter = 'o',
     .type = OPTION_STRING,
     .value = "OUT",
     .help = "write to this file, which may be an input; default: standard output"},
    {0},
};

const struct verb verb_merge = {
    .name = "merge",
    .usage = "[-o OUT] FILE...",
    .help = "add callgrind.out files, or cachegrind.out files, into one",
    .description = "Adds callgrind.out files, or cachegrind.out files, of Quern or Valgrind into "
                   "one. They must have the same events. Costs, calls and jumps are added by "
                   "function, source file and line, and by instruction if all files have "
                   "instructions (--dump-instr=yes). The files may be parts or threads of one run, "
                   "or runs of several programs.",
    .options = options,
    .operands_least = 1,
    .run = run_merge,
};
