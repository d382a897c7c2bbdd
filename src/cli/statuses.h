// The exit statuses of quern. The manual page derives from this table; docs/ci.md has a copy, and a
// test compares them.
#ifndef QUERN_CLI_STATUSES_H
#define QUERN_CLI_STATUSES_H

#include <stddef.h>

struct status_word {
    const char *status; // a number, or what stands for one
    const char *when;
};
extern const struct status_word status_words[];
extern const size_t status_count;

#endif
