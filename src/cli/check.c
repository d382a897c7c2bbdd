// quern check FILE...: compares the numbers in files with limits, and writes findings for other
// programs.
#include <stdlib.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/check_file.h"
#include "cli/options/options.h"
#include "cli/verbs.h"
#include "cli/words.h"
#include "config.h"
#include "report/shared/stack_text.h"

struct request {
    const char *const *paths; // NULL-terminated
    size_t path_count;
    struct budget limits[BUDGETS];
    const char *sarif, *junit, *json, *baseline;
    bool github;
    enum { SAY_YES, SAY_NO, SAY_ERROR } diagnose;
    int status; // for failed checks
    struct results results;
};

// ---- checking ----------------------------------------------------------------------------------

// WORDS_FAILED after a message if a number is unknown.
static int compare(struct request *request, const char *path, const struct check_file *file) {
    int status = WORDS_DONE;
    for (enum budget_kind kind = 0; kind < BUDGETS; kind++) {
        char *told;
        if (!request->limits[kind].is_set)
            continue;
        if (!file->numbers.is_known[kind]) {
            status = words_fail("'%s' lacks this number: --%s cannot be checked; a recording of "
                                "--tool=heap has all numbers",
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
    struct check_needs needs = {request->limits[BUDGET_GROWTH].is_set, request->diagnose != SAY_NO};
    char *problem = check_file_read(path, &needs, &request->results, &file);
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
    diagnoses_results(&file.diagnoses, &request->results, 0, request->diagnose == SAY_ERROR);
    if (file.found) {
        stack_text_escaped(stdout, path);
        printf(": %zu findings: quern print shows them\n", file.found);
    }
    if (file.is_diagnosed && request->diagnose != SAY_NO) {
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

// ---- the verb ----------------------------------------------------------------------------------

static void take_limits(const struct arguments *arguments, struct budget limits[BUDGETS]) {
    for (enum budget_kind kind = 0; kind < BUDGETS; kind++) {
        unsigned long long number;
        const char *value = argument_text(arguments, budget_words[kind].option);
        if (value && option_parse_size(value, kind == BUDGET_GROWTH, &number))
            limits[kind] = (struct budget){true, number};
    }
}

static int run_check(const struct arguments *arguments) {
    words_choose_own(arguments);
    struct request request = {
        .paths = arguments->operands,
        .path_count = arguments->operand_count,
        .sarif = argument_text(arguments, "sarif-file"),
        .junit = argument_text(arguments, "junit-file"),
        .json = argument_text(arguments, "json-file"),
        .baseline = argument_text(arguments, "baseline"),
        .github = argument_given(arguments, "github"),
        .diagnose = argument_choice(arguments, "diagnose"),
        .status = (int)argument_number(arguments, "error-exitcode"),
    };
    take_limits(arguments, request.limits);
    int status = check_all(&request);
    results_free(&request.results);
    return status;
}

static const struct option options[] = {
    {.name = "max-peak",
     .type = OPTION_SIZE,
     .help = "fail if the peak of live heap bytes is higher"},
    {.name = "max-leaked",
     .type = OPTION_SIZE,
     .help = "fail if more bytes are not freed at exit (memcheck: lost)"},
    {.name = "max-allocs", .type = OPTION_SIZE, .help = "fail if more blocks are allocated"},
    {.name = "max-growth",
     .type = OPTION_SIZE,
     .value = "SIZE[/min]",
     .help = "fail if the heap grows faster after the warm-up"},
    {.name = "diagnose",
     .type = OPTION_CHOICE,
     .choices = "yes|no|error", // the order of `diagnose` in struct request
     .initial = "yes",
     .help = "report problems in the use of memory; error: and fail if any"},
    {.name = "baseline",
     .type = OPTION_STRING,
     .value = "FILE",
     .help = "ignore findings in this file (see quern baseline)"},
    {.name = "sarif-file",
     .type = OPTION_STRING,
     .value = "FILE",
     .help = "write findings as SARIF 2.1.0"},
    {.name = "junit-file",
     .type = OPTION_STRING,
     .value = "FILE",
     .help = "write findings as JUnit XML"},
    {.name = "json-file", .type = OPTION_STRING, .value = "FILE", .help = "write findings as JSON"},
    {.name = "github",
     .type = OPTION_FLAG,
     .help = "print findings as annotations for a GitHub workflow"},
    WORDS_MINE,
    {.name = "error-exitcode",
     .type = OPTION_NUMBER,
     .least = 1,
     .most = 255,
     .initial = "3",
     .help = "exit with this status if a check fails"},
    {0},
};

const struct verb verb_check = {
    .name = "check",
    .usage = "[options] FILE...",
    .help = "fail if a file exceeds a limit; write findings as SARIF, JUnit, JSON",
    .description = "Compares the numbers in files with limits, and writes findings for other "
                   "programs. FILE is a recording of --tool=heap, or a massif.out, dhat.out or "
                   "memcheck XML of Quern or Valgrind. Errors in the XML count as failures.",
    .options = options,
    .operands_least = 1,
    .run = run_check,
};
