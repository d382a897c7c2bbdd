#include "supervisor/diagnosis.h"

#include <stdlib.h>

#include "supervisor/log.h"
#include "supervisor/outputs.h"

static bool failed;

static bool is_shown(const struct supervisor_request *request, bool is_usual) {
    return log_shows(0) && (is_usual || log_is_terminal() || request->diagnose != DIAGNOSE_AUTO);
}

bool diagnosis_wanted(const struct supervisor_request *request, bool is_usual) {
    return request->diagnose != DIAGNOSE_NO &&
           (is_shown(request, is_usual) || diagnosis_demanded(request));
}

bool diagnosis_demanded(const struct supervisor_request *request) {
    return request->diagnose == DIAGNOSE_YES || request->diagnose == DIAGNOSE_ERROR ||
           (request->diagnose == DIAGNOSE_AUTO && outputs_results());
}

static void show(int pid, const struct diagnoses *diagnoses) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return;
    diagnoses_print(out, diagnoses, DIAGNOSIS_CALLERS);
    fclose(out);
    log_format(pid, LOG_USER, "\nWhat stands out:\n%s", text);
    free(text);
}

void diagnosis_tell(const struct supervisor_request *request, int pid, struct diagnoses *diagnoses,
                    bool is_usual) {
    struct results *results = outputs_results();
    bool fails = request->diagnose == DIAGNOSE_ERROR;
    if (diagnoses->count && is_shown(request, is_usual))
        show(pid, diagnoses);
    size_t first = results ? results->count : 0;
    if (results)
        diagnoses_results(diagnoses, results, pid, fails);
    for (size_t i = first; results && i < results->count; i++)
        failed |= fails && !results->items[i]->known;
    failed |= fails && !results && diagnoses->count;
    diagnoses_free(diagnoses);
}

bool diagnosis_failed(void) {
    return failed;
}
