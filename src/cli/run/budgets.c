// Limits of a run from its options, and which tool knows which number.
#include <string.h>

#include "base/text.h"
#include "cli/run/findings.h"

static const char *const who_knows[BUDGETS] = {
    [BUDGET_PEAK] = "tools heap, massif and dhat",
    [BUDGET_LEAKED] = "tools heap, massif and dhat, and memcheck with a search for leaks",
    [BUDGET_ALLOCATIONS] = "tools heap, massif, dhat and memcheck",
    [BUDGET_GROWTH] = "tool heap, and massif with time in milliseconds",
};

static bool is_known(const struct supervisor_tool *tool, const struct option_values *values,
                     enum budget_kind kind) {
    bool is_leak_checked = strcmp(option_text(values, "leak-check"), "no") != 0;
    bool is_heap = strcmp(option_text(values, "mode"), "copy") != 0 &&
                   strcmp(option_text(values, "mode"), "ad-hoc") != 0;
    if (strcmp(tool->name, "memcheck") == 0)
        return kind == BUDGET_ALLOCATIONS || (kind == BUDGET_LEAKED && is_leak_checked);
    if (strcmp(tool->name, "dhat") == 0)
        return is_heap && kind != BUDGET_GROWTH;
    if (strcmp(tool->name, "massif") == 0)
        return kind != BUDGET_GROWTH || strcmp(option_text(values, "time-unit"), "ms") == 0;
    return true;
}

static void choose_diagnosis(const struct option_values *values,
                             struct supervisor_request *request) {
    static const char *const names[] = {"auto", "yes", "no", "error"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(option_text(values, "diagnose"), names[i]) == 0)
            request->diagnose = (enum diagnose_wish)i;
}

char *run_budgets(const struct supervisor_tool *tool, const struct option_values *values,
                  struct supervisor_request *request) {
    struct budget_settings *budgets = &request->budgets;
    budgets->error_status = (int)option_number(values, "error-exitcode");
    budgets->status = budgets->error_status ? budgets->error_status : 1;
    choose_diagnosis(values, request);
    for (enum budget_kind kind = 0; kind < BUDGETS; kind++) {
        const char *name = budget_words[kind].option;
        if (!option_given(values, name))
            continue;
        if (!is_known(tool, values, kind)) {
            struct text text = {0};
            text_format(&text, "--%s: this run would not know the number; %s do", name,
                        who_knows[kind]);
            return text_take(&text);
        }
        budgets->limits[kind] = (struct budget){true, option_bytes(values, name)};
    }
    return NULL;
}
