// The words behind a verb, parsed by the verb's table of options.
//
// Options are written --name=VALUE or --name VALUE, or -o VALUE or -oVALUE for a name of one letter.
// They may stand between the operands. A yes|no option without a value means yes. Every function here writes
// its message to stderr as one line.
#ifndef QUERN_CLI_ARGUMENTS_H
#define QUERN_CLI_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/verbs.h"

struct argument_values {
    const char **items;
    size_t count;
};

// Texts belong to the command line.
struct arguments {
    const struct verb *verb;
    char *const *words;    // as typed, NULL-terminated
    const char **operands; // NULL-terminated
    size_t operand_count;
    struct argument_values *values; // one entry for each option of the verb
};

// WORDS_DONE, or WORDS_FAILED after a message. To be freed in either case.
int arguments_parse(struct arguments *arguments, const struct verb *verb, char *const *words);
void arguments_free(struct arguments *arguments);

// The last value of an option, else its default, else NULL. The name must be in the verb's table.
const char *argument_text(const struct arguments *arguments, const char *name);
bool argument_given(const struct arguments *arguments, const char *name);
// All values of an option that may be repeated.
const struct argument_values *argument_items(const struct arguments *arguments, const char *name);
// The value by the option's type. The parser has checked it.
bool argument_yes(const struct arguments *arguments, const char *name);
size_t argument_number(const struct arguments *arguments, const char *name);
double argument_decimal(const struct arguments *arguments, const char *name);
// The number of the value among the option's choices, counted from 0.
unsigned argument_choice(const struct arguments *arguments, const char *name);
// Rejects the option's value for a reason that the table does not express; WORDS_FAILED. `advice`
// says what to give instead.
int argument_refuse(const struct arguments *arguments, const char *name, const char *advice);

#endif
