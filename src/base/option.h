// An option of the command line, and the values that a run was given.
//
// Every option is an entry of a table: Quern's own stand in cli/options/table.c, those of a tool in
// the folder of that tool (base/option_table.h has the words to write them with). Parser, help,
// manual page and shell completion derive from the tables; the engine receives the effective values
// by name. An option that is not ready stands in its table all the same and is refused by name:
// nothing is ignored silently.
//
// For the supervisor's side. Parsing is in cli/options.
#ifndef QUERN_BASE_OPTION_H
#define QUERN_BASE_OPTION_H

#include <stdbool.h>
#include <stddef.h>

enum option_type {
    OPTION_FLAG,    // --name, no value; counted
    OPTION_BOOL,    // yes or no
    OPTION_NUMBER,  // decimal, within bounds
    OPTION_SIZE,    // decimal, K, M or G may follow: 1024 of the next smaller each
    OPTION_HEX,     // hexadecimal with 0x, or decimal
    OPTION_BYTE,    // two hexadecimal digits, with 0x or without
    OPTION_DECIMAL, // a number with a fraction, within bounds
    OPTION_CHOICE,  // one of `choices`
    OPTION_SET,     // a comma-separated list of `choices`
    OPTION_STRING,
    OPTION_FILE, // a file name template (%p %n %q{} %%)
};

enum option_state {
    OPTION_WORKS,
    OPTION_NO_EFFECT, // accepted; a remark under -v says why it changes nothing
};

// Where help shows an option.
enum option_topic {
    TOPIC_TOOL, // with the tool whose table it stands in; the option belongs to that tool
    TOPIC_BASIC,
    TOPIC_LOG,
    TOPIC_CHILDREN,
    TOPIC_STACKS,
    TOPIC_ERRORS,
    TOPIC_HEAP,
    TOPIC_FLEET,
    TOPIC_UNCOMMON,
    TOPIC_DEBUGGING,
    TOPIC_COUNT,
};

// A value that an option offers, `size` characters long.
struct option_choice {
    const char *name;
    size_t size;
    const char *help; // NULL: none
};

struct option {
    const char *name;
    char letter; // -q; 0 when there is none
    enum option_type type;
    enum option_topic topic;
    enum option_state state;
    bool repeats;        // values accumulate, else the last one wins
    bool local;          // not sent to the engine
    bool dynamic;        // the program itself may change it while it runs
    const char *initial; // default; NULL when there is none
    long least;
    long most;
    const char *choices; // "a|b|c"
    const char *since;
    const char *value; // how help calls the value; NULL: derived from the type
    const char *help;
    const char *why;       // OPTION_NO_EFFECT: the reason
    const char *also;      // TOPIC_TOOL: other tools that take it: "a|b"
    const char *alias;     // another name
    const char *zero;      // OPTION_NUMBER: a word that means 0
    const char *only_with; // OPTION_FILE: written only if this option is not at its default
    // The option X, an OPTION_NUMBER: --XN=TEXT is short for this option with the value N,TEXT.
    const char *numbered;
    // Choices from another table: sets number `index`, false behind the last. An OPTION_STRING
    // takes other values too.
    bool (*offers)(size_t index, struct option_choice *choice);
};

// The values of a run.
struct option_values {
    const struct option *const *options; // all there are
    size_t count;
    struct option_value {
        char **items;
        size_t count;
    } * values; // one entry per option
    // Lines about options that were skipped or have no effect; shown under -v.
    char **remarks;
    size_t remark_count;
    // The same for those a user should always see (options of Valgrind's sources not supported).
    char **warnings;
    size_t warning_count;
};

// Effective values: what was given last, else the default, else NULL. The name must be in a table.
const char *option_text(const struct option_values *values, const char *name);
bool option_yes(const struct option_values *values, const char *name);
// Whether the value is this text.
bool option_is(const struct option_values *values, const char *name, const char *text);
long option_number(const struct option_values *values, const char *name);
double option_decimal(const struct option_values *values, const char *name);
// The bytes of an OPTION_SIZE.
unsigned long long option_bytes(const struct option_values *values, const char *name);
bool option_given(const struct option_values *values, const char *name);
// All values of an option that may be repeated.
const struct option_value *option_items(const struct option_values *values, const char *name);
// How often a flag was given.
size_t option_times(const struct option_values *values, const char *name);

// Reads a size as options have it, with K, M or G at its end; a rate may go on with "/min". False:
// it is invalid.
bool option_parse_size(const char *text, bool is_rate, unsigned long long *bytes);

#endif
