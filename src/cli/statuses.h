// Exit statuses of quern: one table, from which the manual page is made; docs/ci.md holds the same.
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
