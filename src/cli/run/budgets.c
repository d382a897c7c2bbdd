// Limits of a run from its options.
#include <string.h>

#include "base/text.h"
#include "cli/run/run.h"

static void choose_diagnosis(const struct option_values *values,
                             struct supervisor_request *request) {
    static const char *const names[] = {"auto", "yes", "no", "error"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(option_text(values, "diagnose"), names[i]) == 0)
            request->diagnose = (enum diagnose_mode)i;
}

char *run_budgets(const struct supervisor_tool *tool, const void *state,
                  const struct option_values *values, struct supervisor_request *request) {
    struct budget_settings *budgets = &request->budgets;
    budgets->error_status = (int)option_number(values, "error-exitcode");
    budgets->status = budgets->error_status ? budgets->error_status : 1;
    choose_diagnosis(values, request);
    for (enum budget_kind kind = 0; kind < BUDGETS; kind++) {
        const char *name = budget_words[kind].option;
        if (!option_given(values, name))
            continue;
        if (tool->knows && !tool->knows(state, kind)) {
            struct text text = {0};
            text_format(&text, "--%s: this run does not report the number; %s do", name,
                        budget_words[kind].known_by);
            return text_take(&text);
        }
        budgets->limits[kind] = (struct budget){true, option_bytes(values, name)};
    }
    return NULL;
}
