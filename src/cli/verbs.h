// What the quern program can do, one file per verb. Each prints to stdout and returns the exit
// status, but for verb_run, which runs the target.
#ifndef QUERN_CLI_VERBS_H
#define QUERN_CLI_VERBS_H

#include <stdbool.h>

#include "cli/options/options.h"

// Runs `argv` (the target's words) with these values.
// `words` are the options as typed, for the record.
int verb_run(const struct tool *tool, struct option_values *values, char *const *words,
             char **argv);
// The verbs that read files: the first word of a command line chooses one. Help, manual and
// completion derive from this table. A program of such a name is run by its path or after --.
struct verb {
    const char *name;
    const char *arguments;
    const char *help;
    int (*run)(char **words); // those after the verb, NULL-terminated
};

extern const struct verb verb_table[];
extern const size_t verb_count;
const struct verb *verb_find(const char *name);

// Writes a recording in another format.
int verb_export(char **words);
// Costs of functions and lines, from callgrind.out and cachegrind.out files.
int verb_annotate(char **words);
// Asks a run that goes on for something.
int verb_ctl(char **words);
// Measures allocators.
int verb_bench(char **words);
// Says what is wrong with memory.
int verb_diagnose(char **words);
// Compares what files say with limits.
int verb_check(char **words);
// Compares two recordings.
int verb_diff(char **words);
// Adds up callgrind.out or cachegrind.out files.
int verb_merge(char **words);
// Asks a recording in SQL.
int verb_query(char **words);
// Makes a baseline of findings.
int verb_baseline(char **words);
// Shows files in a browser.
int verb_view(char **words);
// Shows a massif.out or a recording.
int verb_print(char **words);
// Help by topic; with a tool, that tool's options too; with `debugging`, everything.
int verb_help(const struct tool *tool, bool debugging);
// The same, or the help of a verb, for a name.
int verb_help_of(char **words);
int verb_help_dynamic(void);
int verb_version(void);
// The manual page quern(1), in man macros.
int verb_manual(void);
int verb_completion_bash(void);
int verb_completion_zsh(void);

// "Basic options" and the like; NULL for a topic without options.
const char *topic_title(enum option_topic topic);

#endif
