// Options that the target changes while it runs.
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/run/run.h"

static const struct option *option_of(const char *word) {
    if (word[0] != '-' || !word[1])
        return NULL;
    if (word[1] != '-')
        return word[2] ? NULL : option_find_letter(word[1]);
    return option_find(word + 2, strcspn(word + 2, "="));
}

// Brings the settings in line with the values; NULL, or why not.
static char *settle(const struct run_options *run, const struct option *option) {
    struct supervisor_request *request = run->request;
    request->stacks.show_below_main = option_yes(run->values, "show-below-main");
    request->stacks.symbol_offsets = option_yes(run->values, "sym-offsets");
    return run->tool->changed(request->tool_state, run->setup, option);
}

char *run_change_option(void *run_options, const char *word) {
    const struct run_options *run = run_options;
    const struct option *option = option_of(word);
    struct text said = {0};
    if (!option || !option_serves(option, run->tool)) {
        text_format(&said, "Ignoring dynamic change to unrecognised option %s", word);
        return text_take(&said);
    }
    // Who is asked about suppressions waits from the start.
    if (!option->dynamic || strcmp(word, "--gen-suppressions=yes") == 0) {
        text_format(&said, "Cannot change --%s option dynamically", option->name);
        return text_take(&said);
    }
    char *error = options_apply(run->values, run->tool, word, SOURCE_COMMAND_LINE, NULL);
    if (!error)
        error = settle(run, option);
    bool whole = option->type == OPTION_FLAG || (option->type == OPTION_CHOICE && !option->local);
    if (error)
        text_format(&said, "Ignoring dynamic change to %s: %s", word, error);
    else if (whole)
        text_format(&said, "Handling new value %s for option %s", word, word);
    else
        text_format(&said, "Handling new value %s for option --%s", word, option->name);
    free(error);
    return text_take(&said);
}
