// Checks values against the types of options, and words the messages about wrong ones. The options
// of a run and those of verbs share it, so every message reads the same. Pure computation.
#ifndef QUERN_CLI_OPTIONS_CHECK_H
#define QUERN_CLI_OPTIONS_CHECK_H

#include "base/text.h"
#include "cli/options/options.h"

// NULL if the value is of the option's type, else a message to be freed: "invalid value 'ful' for
// --leak-check; choose one of no, summary, yes, full".
char *option_check(const struct option *option, const char *value);
// The same message for a value that only the caller can judge. `name` has its dashes; `advice` says
// what to give instead.
char *option_invalid(const char *name, const char *value, const char *advice);
// A message for an option without its value, to be freed.
char *option_lacks_value(const struct option *option);
// A message for a flag with a value, to be freed.
char *option_excess_value(const struct option *option);

// Whether `word`, of `size` characters, is one of the choices "a|b|c".
bool option_choices_contain(const char *choices, const char *word, size_t size);
// Choice number `index` of the option, from `choices` or `offers`; false behind the last.
bool option_choice_at(const struct option *option, size_t index, struct option_choice *choice);
// Whether the option has no long name, only a letter.
bool option_is_short(const struct option *option);
// Adds "--name", or "-n" for a short option.
void option_add_name(struct text *out, const struct option *option);

#endif
