#include "supervisor/budgets.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "report/diagnose/diagnose.h"
#include "supervisor/job.h"
#include "supervisor/log.h"
#include "supervisor/outputs.h"

// What grows does so by this much in a minute: the sum of the diagnoses of growth.
static uint64_t growth_of(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct heap_file file;
    struct diagnoses diagnoses = {0};
    if (fd < 0)
        return 0;
    char *problem = heap_file_read(fd, &file, NULL, 0);
    if (!problem)
        problem = diagnose(fd, &file, &diagnoses);
    double rate = diagnoses_rate(&diagnoses);
    diagnoses_free(&diagnoses);
    free(problem);
    heap_file_free(&file);
    close(fd);
    return (uint64_t)(60 * rate);
}

void budgets_recorded(struct budget_numbers *numbers, const struct budget_settings *settings,
                      const struct summary *summary, const char *path) {
    budget_number(numbers, BUDGET_PEAK, summary->total.peak_bytes);
    budget_number(numbers, BUDGET_LEAKED, summary->total.live_bytes);
    budget_number(numbers, BUDGET_ALLOCATIONS, summary->total.allocated);
    if (settings->limits[BUDGET_GROWTH].is_set && path)
        budget_number(numbers, BUDGET_GROWTH, growth_of(path));
}

static void fail(const struct supervisor_request *request, int pid, enum budget_kind kind,
                 const char *told) {
    struct text text = {0};
    text_format(&text, "BUDGET: %s", told);
    log_print(request->job->log, pid, LOG_USER, text.bytes);
    if (outputs_results(request))
        results_add(outputs_results(request), budget_words[kind].rule, RESULT_ERROR, text.bytes,
                    pid);
    text_free(&text);
    request->job->over_budget = true;
}

void budgets_check(const struct supervisor_request *request, int pid,
                   const struct budget_numbers *numbers) {
    const struct budget_settings *settings = &request->budgets;
    for (enum budget_kind kind = 0; kind < BUDGETS; kind++) {
        char *told = NULL;
        if (!settings->limits[kind].is_set)
            continue;
        if (!numbers->is_known[kind]) {
            struct text text = {0};
            text_format(&text, "--%s cannot be checked: the process was killed before its end",
                        budget_words[kind].option);
            fail(request, pid, kind, text.bytes);
            text_free(&text);
        } else if (budget_exceeded(&settings->limits[kind], kind, numbers->value[kind], &told)) {
            fail(request, pid, kind, told);
        }
        free(told);
    }
}

bool budgets_failed(const struct supervisor_request *request) {
    return request->job->over_budget;
}
