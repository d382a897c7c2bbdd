// All options of Quern and of its tools, and how words of the command line become values.
//
// One list describes every option of Quern and every Valgrind option that a user may bring along:
// the table of Quern's own options (options/table.c), then those of the tools (supervisor/tool.h).
// base/option.h says what an option is.
#ifndef QUERN_CLI_OPTIONS_H
#define QUERN_CLI_OPTIONS_H

#include "base/option.h"
#include "supervisor/tool.h"

extern const struct option option_core[];
extern const size_t option_core_count;

// All options, in the order of help, and how many there are.
const struct option *const *option_list(size_t *count);
// By name without dashes, `size` characters long.
const struct option *option_find(const char *name, size_t size);
const struct option *option_find_letter(char letter);
// The tool an option belongs to, NULL for core options.
const struct supervisor_tool *option_tool(const struct option *option);
// Whether the tool takes the option.
bool option_serves(const struct option *option, const struct supervisor_tool *tool);

// Where an option came from. Later ones win.
enum option_source {
    SOURCE_VALGRIND, // .valgrindrc, $VALGRIND_OPTS: what Quern does not know is passed over
    SOURCE_QUERN,    // .quernrc, $QUERN_OPTS
    SOURCE_COMMAND_LINE,
};

void options_init(struct option_values *values);
void options_free(struct option_values *values);
// Applies one word such as --num-callers=20. NULL, or an error message to be freed.
// `origin` names the source in messages ("~/.quernrc"); NULL for the command line.
char *options_apply(struct option_values *values, const struct supervisor_tool *tool,
                    const char *word, enum option_source source, const char *origin);

// The value as text for help: "no|yes", "NUMBER", "FILE".
const char *option_value_text(const struct option *option);

#endif
