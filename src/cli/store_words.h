// What the verbs share that ask a store: they hand over to quern-exporter, which has the libraries.
#ifndef QUERN_CLI_STORE_WORDS_H
#define QUERN_CLI_STORE_WORDS_H

#include "cli/arguments.h"

// Options of a verb that uses a store.
#define STORE_WORDS_CREDENTIALS                                                                    \
    {                                                                                              \
        .name = "credentials", .type = OPTION_STRING, .value = "FILE",                             \
        .help = "file with USER:PASSWORD for the store; default: $QUERN_PUSH_USER and "            \
                "$QUERN_PUSH_PASSWORD"                                                             \
    }

// The words for a task of quern-exporter. All zero is none.
struct store_words {
    char **items;
    size_t count;
};
// Adds "name=value"; nothing if the value is NULL.
void store_words_add(struct store_words *words, const char *name, const char *value);
// Adds the option of a verb under this name, if it is given or has a default.
void store_words_option(struct store_words *words, const struct arguments *arguments,
                        const char *option, const char *name);
// Becomes quern-exporter with this task. Returns after a message only: WORDS_FAILED.
int store_words_run(const struct store_words *words, const char *task);
// A moment from --before or --after: "now", "today", "yesterday", a day of the week (the last one),
// "YYYY-MM-DD" (each of these means the end of the day, or now), "YYYY-MM-DD HH:MM[:SS]", or "-N"
// with s, m, h or d: this long ago. False: it is none of these.
bool store_words_moment(const char *text, time_t now, time_t *moment);

#endif
