// Files for other programs, from the options of a run.
#include <stdlib.h>

#include "base/text.h"
#include "cli/run/run.h"
#include "report/results/results.h"
#include "report/shared/own.h"

char *run_outputs(const struct option_values *values, struct supervisor_request *request) {
    struct output_settings *outputs = &request->outputs;
    char *error = NULL;
    own_choose(option_text(values, "mine"));
    outputs->sarif = option_text(values, "sarif-file");
    outputs->junit = option_text(values, "junit-file");
    outputs->json = option_text(values, "json-file");
    outputs->github = option_given(values, "github");
    if (option_given(values, "baseline"))
        outputs->baseline = baseline_read(option_text(values, "baseline"), &error);
    if (!error)
        return NULL;
    struct text message = {0};
    text_format(&message, "FATAL: %s", error);
    free(error);
    return text_take(&message);
}
