// What the parts of a run have in common: from option values to the request that the supervisor
// gets. No tool is named here: each makes its own settings (supervisor/tool.h).
#ifndef QUERN_CLI_RUN_RUN_H
#define QUERN_CLI_RUN_RUN_H

#include "cli/options/options.h"
#include "supervisor/tool.h"

// Fills request->outputs, request->budgets and request->diagnose. NULL, or a message to be freed:
// the run cannot start.
char *run_outputs(const struct option_values *values, struct supervisor_request *request);
char *run_budgets(const struct supervisor_tool *tool, const void *state,
                  const struct option_values *values, struct supervisor_request *request);

// A file among the options that cannot be written, in a message to be freed; NULL: there is none.
char *run_files(const struct supervisor_tool *tool, const struct option_values *values);

// Changes an option of a run that goes on: an option_changer of the supervisor.
struct run_options {
    const struct supervisor_tool *tool;
    struct option_values *values;
    struct supervisor_request *request;
    struct tool_setup *setup;
};
char *run_change_option(void *run_options, const char *word);

#endif
