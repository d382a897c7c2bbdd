// The settings of tools that find errors, from the options of a run.
#ifndef QUERN_CLI_RUN_FINDINGS_H
#define QUERN_CLI_RUN_FINDINGS_H

#include "cli/options/options.h"
#include "supervisor/supervisor.h"

// Fills request->findings and request->xml. `default_file` is the suppressions that come with
// Quern. NULL, or a message to be freed: the run cannot start.
char *run_findings(const struct supervisor_tool *tool, const struct option_values *values,
                   const char *default_file, struct supervisor_request *request);

// Fills request->budgets and request->diagnose; the same.
char *run_budgets(const struct supervisor_tool *tool, const struct option_values *values,
                  struct supervisor_request *request);

// A file among the options that cannot be written, in a message to be freed; NULL: there is none.
char *run_files(const struct supervisor_tool *tool, const struct option_values *values);

// The settings of a search for leaks in a target that runs natively.
void run_heap_leaks(const struct option_values *values, struct heap_leak_settings *leaks);

// Changes an option of a run that goes on: an option_changer of the supervisor.
struct run_options {
    const struct supervisor_tool *tool;
    struct option_values *values;
    struct supervisor_request *request;
};
char *run_change_option(void *run_options, const char *word);

#endif
