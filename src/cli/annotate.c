// quern annotate FILE...: costs of functions and lines from callgrind.out and cachegrind.out files.
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cost_words.h"
#include "cli/verbs.h"
#include "cli/words.h"
#include "report/callgrind/annotate.h"

struct request {
    const char **paths;
    size_t path_count;
    const char *show, *sort;
    const char *out;
    struct annotate_options options;
    const char **directories;
};

static int usage(FILE *out, int status) {
    fputs(
        "usage: quern annotate [options] [FILE...]\n\n"
        "FILE is a callgrind.out or cachegrind.out, Quern's or Valgrind's. Several add up. "
        "Without\n"
        "one, the newest callgrind.out.* or cachegrind.out.* here is taken.\n\n"
        "  --inclusive=no|yes   costs of functions with what they call [no]\n"
        "  --tree=none|caller|calling|both\n"
        "                       who calls them, and whom they call [none]\n"
        "  --sort=EVENT         the event that decides [the first]\n"
        "  --show=EVENT,...     the events to show [all]\n"
        "  --threshold=PERCENT  functions are shown until they make up so much [99]\n"
        "  --show-percs=no|yes  shares of the total [yes]\n"
        "  --auto=no|yes        source lines of the functions shown [no]\n"
        "  --asm=no|yes         instructions of the functions shown, with their lines, calls and\n"
        "                       jumps; of files written with --dump-instr=yes [no]\n"
        "  --context=NUMBER     lines around those with costs [8]\n"
        "  -I DIRECTORY         look for sources here too\n"
        "  -o OUT               write to a file\n",
        out);
    return status;
}

static bool is_bool(const char *text) {
    return text && (strcmp(text, "yes") == 0 || strcmp(text, "no") == 0);
}

// --NAME, --NAME=yes or --NAME yes; false: the word is something else.
static bool take_bool(char ***word, const char *name, bool *to, int *status) {
    const char *value = "yes";
    if ((strcmp(**word, name) != 0 || is_bool((*word)[1])) && !words_value(word, name, &value))
        return false;
    *status = is_bool(value) ? WORDS_DONE : words_fail("%s is yes or no", name);
    *to = *value == 'y';
    return true;
}

static int take_tree(struct request *request, const char *value) {
    static const char *const names[] = {"none", "caller", "calling", "both"};
    for (unsigned i = 0; value && i < 4; i++) {
        if (strcmp(value, names[i]) == 0) {
            request->options.tree = i;
            return WORDS_DONE;
        }
    }
    return words_fail("--tree is none, caller, calling or both");
}

static void add_text(const char ***list, size_t *count, const char *text) {
    *list = base_reallocate(*list, (*count + 1) * sizeof **list);
    (*list)[(*count)++] = text;
}

static int take_word(struct request *request, char ***word) {
    struct annotate_options *options = &request->options;
    const char *value;
    size_t number = 0;
    int status;
    if (take_bool(word, "--inclusive", &options->inclusive, &status) ||
        take_bool(word, "--show-percs", &options->percents, &status) ||
        take_bool(word, "--auto", &options->sources, &status) ||
        take_bool(word, "--asm", &options->assembly, &status))
        return status;
    if (words_value(word, "--tree", &value))
        return take_tree(request, value);
    if (words_value(word, "--threshold", &value))
        return words_number("--threshold", value, 0, 100, &options->threshold);
    if (words_value(word, "--context", &value)) {
        status = words_whole("--context", value, 0, 1000000, &number);
        options->context = (unsigned)number;
        return status;
    }
    if (words_value(word, "--sort", &request->sort) ||
        words_value(word, "--show", &request->show) || words_value(word, "-o", &request->out))
        return WORDS_DONE;
    if (words_value(word, "-I", &value)) {
        if (!value)
            return words_fail("no directory after -I");
        add_text(&request->directories, &options->directory_count, value);
        return WORDS_DONE;
    }
    if (**word[0] == '-' && (**word)[1])
        return words_fail("unknown option '%s'; quern annotate --help lists them", **word);
    add_text(&request->paths, &request->path_count, **word);
    return WORDS_DONE;
}

// The one written last in this folder, as callgrind_annotate takes it; NULL: there is none.
static char *newest(void) {
    glob_t found = {0};
    char *path = NULL;
    struct timespec last = {0};
    glob("callgrind.out.*", 0, NULL, &found);
    glob("cachegrind.out.*", GLOB_APPEND, NULL, &found);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct stat st;
        if (stat(found.gl_pathv[i], &st) != 0 ||
            (path && (st.st_mtim.tv_sec < last.tv_sec ||
                      (st.st_mtim.tv_sec == last.tv_sec && st.st_mtim.tv_nsec < last.tv_nsec))))
            continue;
        free(path);
        path = base_copy(found.gl_pathv[i]);
        last = st.st_mtim;
    }
    globfree(&found);
    return path;
}

static int annotate_all(struct request *request) {
    struct cost_profile *profile = costs_new();
    struct annotate_options *options = &request->options;
    int status = WORDS_DONE;
    for (size_t i = 0; i < request->path_count && !status; i++)
        status = cost_words_read(profile, request->paths[i]);
    if (!status)
        status = cost_words_events(profile, request->show, request->sort, options);
    if (!status && options->assembly && !profile->instruction_count)
        status = words_fail("there are no costs of instructions in '%s'; write it with "
                            "--dump-instr=yes",
                            request->paths[0]);
    if (!status) {
        options->directories = request->directories;
        FILE *out = words_output(request->out, request->paths[0]);
        if (out)
            annotate(out, profile, options);
        if (!out || !words_close(out, request->out))
            status = WORDS_FAILED;
    }
    costs_free(profile);
    return status;
}

int verb_annotate(char **words) {
    struct request request = {
        .options = {.threshold = 99, .percents = true, .context = 8, .tree = TREE_NONE}};
    int status = WORDS_DONE;
    char *chosen = NULL;
    if (words_ask_help(words))
        return usage(stdout, WORDS_DONE);
    for (char **word = words; *word && !status; word++)
        status = take_word(&request, &word);
    if (!status && !request.path_count && (chosen = newest())) {
        fprintf(stderr, "quern: the newest file here is '%s'\n", chosen);
        add_text(&request.paths, &request.path_count, chosen);
    }
    if (!status && !request.path_count)
        status = usage(stderr, WORDS_FAILED);
    else if (!status)
        status = annotate_all(&request);
    free(chosen);
    free(request.paths);
    free(request.directories);
    return status;
}
