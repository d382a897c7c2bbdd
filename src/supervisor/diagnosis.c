#include "supervisor/diagnosis.h"

#include <stdlib.h>

#include "supervisor/job.h"
#include "supervisor/log.h"
#include "supervisor/outputs.h"

static bool is_shown(const struct supervisor_request *request, bool is_usual) {
    const struct log *log = request->job->log;
    return log_shows(log, 0) &&
           (is_usual || log_is_terminal(log) || request->diagnose != DIAGNOSE_AUTO);
}

bool diagnosis_wanted(const struct supervisor_request *request, bool is_usual) {
    return request->diagnose != DIAGNOSE_NO &&
           (is_shown(request, is_usual) || diagnosis_demanded(request));
}

bool diagnosis_demanded(const struct supervisor_request *request) {
    return request->diagnose == DIAGNOSE_YES || request->diagnose == DIAGNOSE_ERROR ||
           (request->diagnose == DIAGNOSE_AUTO && outputs_results(request));
}

static void show(struct log *log, int pid, const struct diagnoses *diagnoses) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return;
    diagnoses_print(out, diagnoses, DIAGNOSIS_CALLERS);
    fclose(out);
    log_format(log, pid, LOG_USER, "\nDiagnosis:\n%s", text);
    free(text);
}

void diagnosis_tell(const struct supervisor_request *request, int pid, struct diagnoses *diagnoses,
                    bool is_usual) {
    struct results *results = outputs_results(request);
    bool fails = request->diagnose == DIAGNOSE_ERROR;
    if (diagnoses->count && is_shown(request, is_usual))
        show(request->job->log, pid, diagnoses);
    size_t first = results ? results->count : 0;
    if (results)
        diagnoses_results(diagnoses, results, pid, fails);
    for (size_t i = first; results && i < results->count; i++)
        request->job->has_failed_diagnosis |= fails && !results->items[i]->known;
    request->job->has_failed_diagnosis |= fails && !results && diagnoses->count;
    diagnoses_free(diagnoses);
}

bool diagnosis_failed(const struct supervisor_request *request) {
    return request->job->has_failed_diagnosis;
}
