// The verbs of the quern program: `quern VERB ...` instead of `quern [options] program`.
//
// Each verb is one file that describes the verb as a `struct verb`. The parser (cli/arguments.h),
// help, the manual page and shell completion derive from that description. A program with the name
// of a verb is run by its path or after --.
#ifndef QUERN_CLI_VERBS_H
#define QUERN_CLI_VERBS_H

#include <stdbool.h>
#include <stdio.h>

#include "cli/options/options.h"

struct arguments;

// A titled list of names with help, shown after the options.
struct verb_list {
    const char *title;
    bool (*offers)(size_t index, struct option_choice *choice); // as in struct option
};

struct verb {
    const char *name;
    const char *usage;             // the words behind the name
    const char *usage_other;       // a second form; NULL: none
    const char *usage_third;       // likewise
    const char *help;              // one line
    const char *description;       // for the verb's own help; \n ends a paragraph
    const struct option *options;  // an entry without a name ends the table; NULL: no options
    const struct verb_list *lists; // an entry without a title ends them; NULL: none
    size_t operands_least;         // with fewer operands the verb shows its usage and fails
    bool takes_dashes;             // operands but the first may begin with a dash
    const char *rest;              // a flag: all words behind it are operands; NULL: none
    const char *(*notice)(void);   // the last line of its help; may return NULL
    // Prints to stdout and returns the exit status (cli/words.h).
    int (*run)(const struct arguments *arguments);
};

extern const struct verb verb_print, verb_annotate, verb_export, verb_ctl, verb_bench,
    verb_diagnose, verb_check, verb_diff, verb_merge, verb_query, verb_baseline, verb_view,
    verb_vgdb, verb_leaks, verb_attach, verb_push, verb_names, verb_help;

extern const struct verb *const verb_table[];
extern const size_t verb_count;
const struct verb *verb_find(const char *name);
// Parses the words behind the verb and runs it; the exit status.
int verb_start(const struct verb *verb, char *const *words);

// ---- help.c ----

// How the verb is used, its options and lists.
void help_verb(FILE *out, const struct verb *verb);
// The same on stderr, for missing operands; WORDS_FAILED.
int help_usage_error(const struct verb *verb);
// What most people need: a tool's own options, or without a tool (NULL) what tools and verbs there
// are, and the most used options. These print to stdout and return the exit status.
int help_short(const struct supervisor_tool *tool);
// All options by topic; with a tool, that tool's options too; with `debugging`, those as well.
int help_all(const struct supervisor_tool *tool, bool debugging);
int help_dynamic(void);
int help_version(void);
// "Basic options" and the like; NULL for a topic without options.
const char *topic_title(enum option_topic topic);

// ---- what the build generates ----

// The manual page quern(1), in man macros.
int generate_manual(void);
int generate_bash_completion(void);
int generate_zsh_completion(void);

// ---- run/run.c ----

// Runs `argv` (the target's words) with these values. `words` are the options as typed, for the
// record.
int verb_run(const struct supervisor_tool *tool, struct option_values *values, char *const *words,
             char **argv);
// The same for a process that runs already, which --pid names.
int verb_run_attached(const struct supervisor_tool *tool, struct option_values *values,
                      char *const *words);

#endif
