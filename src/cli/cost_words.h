// The verbs that take callgrind.out and cachegrind.out files share these: telling such a file by
// its contents, reading it with messages, and the options that name events.
#ifndef QUERN_CLI_COST_WORDS_H
#define QUERN_CLI_COST_WORDS_H

#include "report/callgrind/annotate.h"

// Whether the file is one of these; false also if it cannot be read.
bool cost_words_is_one(const char *path);
// The newest callgrind.out.* or cachegrind.out.* in this folder, to be freed; NULL: there is none.
char *cost_words_newest(void);
// Adds the file: WORDS_DONE, or WORDS_FAILED after a message.
int cost_words_read(struct cost_profile *, const char *path);
// Sets columns and order from comma-separated event names. Without names: all columns, by the
// first.
int cost_words_events(const struct cost_profile *, const char *show, const char *sort,
                      struct annotate_options *);

#endif
