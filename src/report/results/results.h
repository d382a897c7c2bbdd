// What a run has found, in a form for other programs: SARIF, JUnit, JSON, annotations of a
// workflow.
//
// A result has a rule (InvalidRead, Leak_DefinitelyLost), a message, the stacks that belong to it
// and a *fingerprint*: a number made of the rule and the names of the functions of its first stack.
// Lines, addresses and sizes are not in it, so it stays the same while a program is worked on. A
// *baseline* is a file of fingerprints, and how many results have each: those are known, and do not
// fail a run. Supervisor and verbs only.
#ifndef QUERN_REPORT_RESULTS_H
#define QUERN_REPORT_RESULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "report/findings/named_finding.h"

enum result_level { RESULT_ERROR, RESULT_WARNING, RESULT_NOTE };

struct result_frame {
    char *function; // NULL: not known
    char *object;   // path; NULL: in none
    char *path;     // of the source file; NULL: not known
    uint32_t line;
    uint64_t address;
};

struct result_stack {
    char *title;                 // what it is the stack of; NULL for the first
    struct result_frame *frames; // innermost first
    size_t count;
};

struct result {
    const char *rule; // lives as long as the results do
    enum result_level level;
    bool fails; // counts for --error-exitcode, unless it is known
    bool known; // in the baseline
    char *message;
    char **remarks;
    size_t remark_count;
    struct result_stack *stacks;
    size_t stack_count;
    size_t place;      // frame of the first stack where it is best shown, plus one; 0: look for it
    char *suppression; // NULL: there is none
    uint64_t fingerprint;
    uint64_t count; // how often it was seen
    int pid;
};

struct results {
    struct result **items;
    size_t count;
    struct baseline *baseline; // NULL: none
};

// The error as a result, which belongs to the results and stays where it is.
struct result *results_add_finding(struct results *, const struct named_finding *,
                                   const struct stack_text_options *, int pid);
struct result *results_add_loss(struct results *, const struct named_loss *, size_t index,
                                size_t count, const struct stack_text_options *, int pid,
                                bool fails);
// A result that is not a memory error: for example, a limit that was exceeded.
struct result *results_add(struct results *, const char *rule, enum result_level,
                           const char *message, int pid);
void results_free(struct results *);
// A further stack, whose frames the result owns from here on, with a title (copied; NULL for the
// first). The fingerprint and whether it is known follow.
void results_add_stack(struct results *, struct result *, const char *title,
                       struct result_frame *frames, size_t count);
void results_add_remark(struct result *, const char *text);
// The path of the source file, to be freed; NULL: not known.
char *result_path(const struct symbol_frame *);
void result_frames_free(struct result_frame *frames, size_t count);

// The rule of this name, as a string that lives on; "OtherError" if there is no such rule.
const char *result_rule(const char *name);
// What a rule is about, in a sentence, and what to do.
const char *result_rule_help(const char *rule);
// Where it is best shown: the first frame of the program's own (shared/own.h), one in a source file
// of the repository before others; else any frame with a line; NULL: nowhere.
const struct result_frame *result_place(const struct result *);
// A path as services that know the repository want it: relative to its top folder if it is below.
// The repository is the one of the current folder. Without one, the current folder counts.
const char *result_relative(const char *path);

// ---- baselines ----

// NULL and *error (to be freed) if the file cannot be read or is not a baseline.
struct baseline *baseline_read(const char *path, char **error);
void baseline_free(struct baseline *);
// Takes one entry of that fingerprint; false: none is left.
bool baseline_take(struct baseline *, uint64_t fingerprint);
// An empty one; what a file of --json-file holds is added to it. NULL, or an error to be freed.
struct baseline *baseline_new(void);
char *baseline_add_findings(struct baseline *, const char *path);
// Writes it; how many results are in it.
uint64_t baseline_write(FILE *out, struct baseline *);

// ---- writers ----

struct results_head {
    const char *version; // of Quern
    const char *tool;
    const char *const *words; // the target's command line, NULL at the end
    int status;               // as the run ended
};

typedef void results_writer(FILE *out, const struct results *, const struct results_head *);
// Writes a temporary file and renames it, so that nobody reads half a file. Something else than a
// regular file (a pipe, say) is written directly. 0, or an errno.
int results_write_file(const char *path, results_writer *, const struct results *,
                       const struct results_head *);
void results_sarif(FILE *out, const struct results *, const struct results_head *);
void results_junit(FILE *out, const struct results *, const struct results_head *);
void results_json(FILE *out, const struct results *, const struct results_head *);
// Workflow commands: one line each.
void results_github(FILE *out, const struct results *, const struct results_head *);

#endif
