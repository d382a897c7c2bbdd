// quern check FILE...: compares what files say with limits, and hands findings to other programs.
#include <stdlib.h>
#include <string.h>

#include "cli/check_file.h"
#include "cli/options/options.h"
#include "cli/verbs.h"
#include "cli/words.h"
#include "config.h"
#include "report/shared/stack_text.h"

enum { CHECK_FAILED = 3 };

struct request {
    const char **paths;
    size_t path_count;
    struct budget limits[BUDGETS];
    const char *sarif, *junit, *json, *baseline;
    bool github;
    enum { DIAGNOSE_YES, DIAGNOSE_NO, DIAGNOSE_ERROR } diagnose;
    int status; // when something is not as it should be
    struct results results;
};

static int usage(FILE *out, int status) {
    fputs("usage: quern check [options] FILE...\n\n"
          "Compares what files say with limits, and hands findings to other programs. FILE is a\n"
          "recording of --tool=heap, or, of Quern or of Valgrind, a massif.out, a dhat.out or XML\n"
          "of memcheck, whose errors count.\n\n",
          out);
    for (enum budget_kind kind = 0; kind < BUDGETS; kind++)
        fprintf(out, "  --%s=SIZE%*s%s\n", budget_words[kind].option,
                (int)(14 - strlen(budget_words[kind].option)), "", budget_words[kind].help);
    fputs("  --diagnose=yes|no|error\n"
          "                       say what stands out; error: and fail [yes]\n"
          "  --baseline=FILE      what this file lists is known and does not fail\n"
          "  --sarif-file=FILE, --junit-file=FILE, --json-file=FILE, --github\n"
          "                       what was found, for other programs\n"
          "  --error-exitcode=NUMBER\n"
          "                       the status when something is not as it should be [3]\n",
          out);
    return status;
}

// ---- words -------------------------------------------------------------------------------------

static int take_limit(enum budget_kind kind, const char *value, struct budget *limit) {
    unsigned long long number = 0;
    bool is_rate = kind == BUDGET_GROWTH;
    if (!value || !option_parse_size(value, is_rate, &number))
        return words_fail("--%s is a number, with K, M or G at its end if need be%s",
                          budget_words[kind].option, is_rate ? ", and /min" : "");
    *limit = (struct budget){true, number};
    return WORDS_DONE;
}

static int take_diagnose(struct request *request, const char *value) {
    static const char *const names[] = {"yes", "no", "error"};
    for (unsigned i = 0; value && i < 3; i++) {
        if (strcmp(names[i], value) == 0) {
            request->diagnose = i;
            return WORDS_DONE;
        }
    }
    return words_fail("--diagnose is yes, no or error");
}

static int take_status(struct request *request, const char *value) {
    size_t number = 0;
    int status = words_whole("--error-exitcode", value, 1, 255, &number);
    request->status = (int)number;
    return status;
}

static int take_word(struct request *request, char ***word) {
    const char *value;
    for (enum budget_kind kind = 0; kind < BUDGETS; kind++) {
        struct text name = {0};
        text_format(&name, "--%s", budget_words[kind].option);
        bool is_it = words_value(word, name.bytes, &value);
        text_free(&name);
        if (is_it)
            return take_limit(kind, value, &request->limits[kind]);
    }
    if (words_value(word, "--diagnose", &value))
        return take_diagnose(request, value);
    if (words_value(word, "--error-exitcode", &value))
        return take_status(request, value);
    if (strcmp(**word, "--github") == 0) {
        request->github = true;
        return WORDS_DONE;
    }
    const struct {
        const char *name, **to;
    } files[] = {{"--sarif-file", &request->sarif},
                 {"--junit-file", &request->junit},
                 {"--json-file", &request->json},
                 {"--baseline", &request->baseline}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (words_value(word, files[i].name, files[i].to))
            return *files[i].to ? WORDS_DONE : words_fail("no file after %s", files[i].name);
    if ((**word)[0] == '-' && (**word)[1])
        return words_fail("unknown option '%s'; quern check --help lists them", **word);
    request->paths =
        base_reallocate(request->paths, (request->path_count + 2) * sizeof *request->paths);
    request->paths[request->path_count++] = **word;
    request->paths[request->path_count] = NULL;
    return WORDS_DONE;
}

// ---- checking ----------------------------------------------------------------------------------

// WORDS_FAILED after a message if a number is not known.
static int compare(struct request *request, const char *path, const struct check_file *file) {
    int status = WORDS_DONE;
    for (enum budget_kind kind = 0; kind < BUDGETS; kind++) {
        char *told;
        if (!request->limits[kind].is_set)
            continue;
        if (!file->numbers.is_known[kind]) {
            status = words_fail("'%s' does not say that: --%s cannot be checked; a recording of "
                                "--tool=heap knows all numbers",
                                path, budget_words[kind].option);
            continue;
        }
        bool exceeded =
            budget_exceeded(&request->limits[kind], kind, file->numbers.value[kind], &told);
        stack_text_escaped(stdout, path);
        printf(": %s: %s\n", exceeded ? "TOO MUCH" : "fine", told);
        if (exceeded) {
            struct text text = {0};
            text_format(&text, "BUDGET: %s", told);
            results_add(&request->results, budget_words[kind].rule, RESULT_ERROR, text.bytes, 0);
            text_free(&text);
        }
        free(told);
    }
    return status;
}

static int check_one(struct request *request, const char *path) {
    struct check_file file;
    struct check_wish wish = {request->limits[BUDGET_GROWTH].is_set,
                              request->diagnose != DIAGNOSE_NO};
    char *problem = check_file_read(path, &wish, &request->results, &file);
    int status = WORDS_DONE;
    if (problem) {
        status = words_fail("cannot check '%s': %s", path, problem);
        free(problem);
        check_file_free(&file);
        return status;
    }
    if (file.notice) {
        fprintf(stderr, "quern: '%s': %s\n", path, file.notice);
        status = WORDS_PARTIAL;
    }
    if (compare(request, path, &file))
        status = WORDS_FAILED;
    diagnoses_results(&file.diagnoses, &request->results, 0, request->diagnose == DIAGNOSE_ERROR);
    if (file.found) {
        stack_text_escaped(stdout, path);
        printf(": %zu findings: quern print shows them\n", file.found);
    }
    if (file.is_diagnosed && request->diagnose != DIAGNOSE_NO) {
        stack_text_escaped(stdout, path);
        puts(":");
        diagnoses_print(stdout, &file.diagnoses, DIAGNOSIS_CALLERS);
    }
    check_file_free(&file);
    return status;
}

// ---- for programs ------------------------------------------------------------------------------

static bool write_one(const char *path, results_writer *writer, const struct request *request,
                      const struct results_head *head) {
    int error = path ? results_write_file(path, writer, &request->results, head) : 0;
    if (error)
        words_fail("cannot write %s: %s", path, strerror(error));
    return !error;
}

static bool write_files(const struct request *request, int status) {
    struct results_head head = {
        .version = QUERN_VERSION, .tool = "check", .words = request->paths, .status = status};
    bool fine = write_one(request->sarif, results_sarif, request, &head);
    fine &= write_one(request->junit, results_junit, request, &head);
    fine &= write_one(request->json, results_json, request, &head);
    if (request->github)
        results_github(stderr, &request->results, &head);
    return fine;
}

static bool is_failed(const struct results *results) {
    bool failed = false;
    for (size_t i = 0; i < results->count; i++)
        failed |= results->items[i]->fails && !results->items[i]->known;
    return failed;
}

static int check_all(struct request *request) {
    char *error = NULL;
    int status = WORDS_DONE;
    if (request->baseline)
        request->results.baseline = baseline_read(request->baseline, &error);
    if (error) {
        status = words_fail("%s", error);
        free(error);
        return status;
    }
    for (size_t i = 0; i < request->path_count; i++) {
        int one = check_one(request, request->paths[i]);
        status = status == WORDS_FAILED || one == WORDS_DONE ? status : one;
    }
    if (!words_close(stdout, NULL))
        status = WORDS_FAILED;
    if (status != WORDS_FAILED && is_failed(&request->results))
        status = request->status;
    return write_files(request, status) ? status : WORDS_FAILED;
}

int verb_check(char **words) {
    struct request request = {.status = CHECK_FAILED};
    int status = WORDS_DONE;
    if (words_ask_help(words))
        return usage(stdout, WORDS_DONE);
    for (char **word = words; *word && !status; word++)
        status = take_word(&request, &word);
    if (!status)
        status = request.path_count ? check_all(&request) : usage(stderr, WORDS_FAILED);
    free(request.paths);
    results_free(&request.results);
    return status;
}
