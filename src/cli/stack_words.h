// Files of stacks (report/flame/stack_file.h), for the verbs that take them. Messages and statuses
// are those of words.h.
#ifndef QUERN_CLI_STACK_WORDS_H
#define QUERN_CLI_STACK_WORDS_H

#include <stdbool.h>

bool stack_words_is_one(const char *path);
// Formats: collapsed, flamegraph, speedscope, pprof.
int stack_words_export(const char *path, const char *format, const char *out);

#endif
