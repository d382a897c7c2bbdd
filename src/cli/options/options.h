// The option table, and the values that a run got from the command line and other sources.
//
// One table (options/table.c) describes every option of Quern and every Valgrind option that a user
// may bring along. Parser, help, manual page and shell completion derive from it; the engine
// receives the effective values by name. An option that is not ready is in the table all the same
// and is refused by name: nothing is ignored silently.
#ifndef QUERN_CLI_OPTIONS_H
#define QUERN_CLI_OPTIONS_H

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
    OPTION_NOT_YET,   // refused by name, but for the values in `fine`
    OPTION_NO_EFFECT, // accepted; a remark under -v says why it changes nothing
};

enum option_topic {
    TOPIC_BASIC,
    TOPIC_LOG,
    TOPIC_CHILDREN,
    TOPIC_STACKS,
    TOPIC_ERRORS,
    TOPIC_HEAP,
    TOPIC_UNCOMMON,
    TOPIC_DEBUGGING,
    TOPIC_MEMCHECK,
    TOPIC_MASSIF,
    TOPIC_RECORDING,
    TOPIC_CALLGRIND,
    TOPIC_CACHEGRIND,
    TOPIC_DHAT,
    TOPIC_FLAME,
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
    enum option_topic topic; // a tool's topic: the option belongs to that tool only
    enum option_state state;
    bool repeats;        // values accumulate, else the last one wins
    bool local;          // not sent to the engine
    bool dynamic;        // the program itself may change it while it runs
    const char *initial; // default; NULL when there is none
    long least;
    long most;
    const char *choices; // "a|b|c"
    const char *fine;    // values that work although the state is OPTION_NOT_YET: "a|b"
    const char *since;
    const char *value; // how help calls the value; NULL: derived from the type
    const char *help;
    const char *why; // OPTION_NO_EFFECT: the reason
    const char *also; // other tools that take it: "a|b"
    // Choices from another table: sets number `index`, false behind the last. An OPTION_STRING
    // takes other values too.
    bool (*offers)(size_t index, struct option_choice *choice);
};

struct tool {
    const char *name;
    bool works;
    enum option_topic topic; // TOPIC_COUNT when it has no options of its own
    const char *help;
};

extern const struct option option_table[];
extern const size_t option_count;
extern const struct tool tool_table[];
extern const size_t tool_count;

const struct tool *tool_find(const char *name);
// By name without dashes, `size` characters long.
const struct option *option_find(const char *name, size_t size);
const struct option *option_find_letter(char letter);
// The tool an option belongs to, NULL for core options.
const struct tool *option_tool(const struct option *option);
// Whether the tool takes the option.
bool option_serves(const struct option *option, const struct tool *tool);

// Where an option came from. Later ones win.
enum option_source {
    SOURCE_VALGRIND, // .valgrindrc, $VALGRIND_OPTS: what Quern does not know is passed over
    SOURCE_QUERN,    // .quernrc, $QUERN_OPTS
    SOURCE_COMMAND_LINE,
};

// The values of a run. One entry per option of the table.
struct option_values {
    struct option_value {
        char **items;
        size_t count;
    } * values;
    // Lines about options that were passed over or have no effect; shown under -v.
    char **remarks;
    size_t remark_count;
    // The same for those a user should always see (options of Valgrind's sources not supported).
    char **warnings;
    size_t warning_count;
};

void options_init(struct option_values *values);
void options_free(struct option_values *values);
// Applies one word such as --num-callers=20. NULL, or an error message to be freed.
// `origin` names the source in messages ("~/.quernrc"); NULL for the command line.
char *options_apply(struct option_values *values, const struct tool *tool, const char *word,
                    enum option_source source, const char *origin);

// Effective values: what was given last, else the default, else NULL. The name must be in the
// table.
const char *option_text(const struct option_values *values, const char *name);
bool option_yes(const struct option_values *values, const char *name);
long option_number(const struct option_values *values, const char *name);
// Of an OPTION_SIZE, in bytes.
// A size as options have it, with K, M or G at its end if need be; a rate may go on with "/min".
// False: it is none.
bool option_parse_size(const char *text, bool is_rate, unsigned long long *bytes);
unsigned long long option_bytes(const struct option_values *values, const char *name);
bool option_given(const struct option_values *values, const char *name);
// All values of an option that may be repeated.
const struct option_value *option_items(const struct option_values *values, const char *name);
// How often a flag was given.
size_t option_times(const struct option_values *values, const char *name);

// The value as text for help: "no|yes", "NUMBER", "FILE".
const char *option_value_text(const struct option *option);

#endif
