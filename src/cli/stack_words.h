// Files of stacks (report/stack_file.h), for the verbs that take them. Messages and statuses are those
// of words.h.
#ifndef QUERN_CLI_STACK_WORDS_H
#define QUERN_CLI_STACK_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

bool stack_words_is_one(const char *path);
// Formats: collapsed, flamegraph, speedscope, pprof.
int stack_words_export(const char *path, const char *format, const char *out);

struct stack_words_view {
    const char *name; // summary, top-down or bottom-up; NULL: summary
    size_t top;       // functions in the summary
    double threshold; // percent: less is left out of trees
};
int stack_words_print(const char *path, const struct stack_words_view *);

#endif
