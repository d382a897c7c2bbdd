#include "supervisor/outputs.h"

#include <stdlib.h>
#include <string.h>

#include "base/template.h"
#include "config.h"
#include "supervisor/job.h"
#include "supervisor/tool.h"

void outputs_prepare(const struct supervisor_request *request) {
    const struct output_settings *settings = &request->outputs;
    request->job->results.baseline = settings->baseline;
    request->job->results_wanted = settings->baseline || settings->sarif || settings->junit ||
                                   settings->json || settings->github;
}

struct results *outputs_results(const struct supervisor_request *request) {
    return request->job->results_wanted ? &request->job->results : NULL;
}

char *outputs_baseline_line(const struct supervisor_request *request) {
    const struct results *results = &request->job->results;
    size_t known = 0, failing = 0;
    if (!results->baseline)
        return NULL;
    for (size_t i = 0; i < results->count; i++) {
        known += results->items[i]->known;
        failing += results->items[i]->fails && !results->items[i]->known;
    }
    struct text line = {0};
    text_format(&line, "BASELINE: %zu known, %zu new that count as errors", known, failing);
    return text_take(&line);
}

static bool complain(const char *path, const char *reason) {
    fprintf(stderr, "quern: cannot write '%s': %s\n", path, reason);
    return false;
}

static bool write_file(const struct results *results, const char *pattern, results_writer *write,
                       const struct results_head *head, int main_pid) {
    char *reason = NULL;
    if (!pattern)
        return true;
    char *path = template_expand(pattern, main_pid, 0, &reason);
    if (!path) {
        complain(pattern, reason);
        free(reason);
        return false;
    }
    int error = results_write_file(path, write, results, head);
    if (error)
        complain(path, strerror(error));
    free(path);
    return !error;
}

bool outputs_write(const struct supervisor_request *request, int main_pid, int status) {
    const struct output_settings *settings = &request->outputs;
    struct results_head head = {.version = QUERN_VERSION,
                                .tool = request->tool->name,
                                .words = (const char *const *)request->argv,
                                .status = status};
    struct results *results = outputs_results(request);
    if (!results)
        return true;
    bool fine = write_file(results, settings->sarif, results_sarif, &head, main_pid);
    fine &= write_file(results, settings->junit, results_junit, &head, main_pid);
    fine &= write_file(results, settings->json, results_json, &head, main_pid);
    if (settings->github)
        results_github(stderr, results, &head);
    results_free(results);
    return fine;
}
