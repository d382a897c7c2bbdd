// What the verbs that read files share: taking their words apart, opening input and output.
#ifndef QUERN_CLI_WORDS_H
#define QUERN_CLI_WORDS_H

#include <stdbool.h>
#include <stdio.h>

#include "base/text.h"
#include "report/heap/export.h"
#include "report/heap/filter.h"

// Exit statuses of these verbs. Documented in the manual page.
enum { WORDS_DONE = 0, WORDS_FAILED = 1, WORDS_PARTIAL = 2 };

// Whether the word is this option, `NAME=VALUE` or `NAME VALUE`. If so *value is set, to NULL when
// it is missing, and *word stands at the last word used.
bool words_value(char ***word, const char *name, const char **value);

// Whether one of them is -h or --help.
bool words_ask_help(char *const *words);

// One line on stderr that begins with "quern: "; WORDS_FAILED.
int words_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

// The same for a value that is not in a table, or missing (NULL): says what there is.
int words_refuse(const char *what, const char *value, void (*list)(struct text *text));
// The value of an option that is a number between these bounds: WORDS_DONE, or WORDS_FAILED after a
// message.
int words_number(const char *name, const char *value, double least, double most, double *number);
int words_whole(const char *name, const char *value, size_t least, size_t most, size_t *number);
// The weight of this name: WORDS_DONE, or WORDS_FAILED after a message.
int words_weight(const char *value, const struct heap_weight **weight);
void words_list_weights(struct text *text);

// The first bytes of a file, at most `most` of them; how many. 0 if it cannot be read.
size_t words_start(const char *path, char *start, size_t most);
// Opens a file for reading and looks at its first bytes. -1 after a message.
int words_open(const char *path, char *start, size_t *size);
// Whether the word is an option of a filter. If so *status is WORDS_DONE, or WORDS_FAILED after a
// message.
bool words_filter(char ***word, struct heap_filter *filter, int *status);
// What --help says of them.
extern const char words_filter_help[];
// Reads the recording at path. WORDS_DONE; WORDS_PARTIAL after a notice when it does not hold the
// whole run; WORDS_FAILED after a message. The file is to be freed unless it is WORDS_FAILED.
int words_recording(const char *path, struct heap_file *file, const struct heap_filter *filter,
                    const struct heap_sink *sinks, size_t count);

// The output: stdout if path is NULL or "-". NULL after a message, also if it is the input.
FILE *words_output(const char *path, const char *input);
// Closes it. False after a message if not everything could be written.
bool words_close(FILE *out, const char *path);

// A part of Quern that lies beside the program or in libexec; NULL: it is missing. To be freed.
char *words_part(const char *name, int mode);

#endif
