// What the verbs share: messages, opening input and output, reading recordings.
//
// A function that fails has printed its message. Its status can be returned from the verb as it
// is.
#ifndef QUERN_CLI_WORDS_H
#define QUERN_CLI_WORDS_H

#include <stdbool.h>
#include <stdio.h>

#include "base/text.h"
#include "cli/arguments.h"
#include "cli/options/options.h"
#include "report/heap/export.h"
#include "report/heap/filter.h"

// The option that says which frames are the program's own, for verbs; words_choose_own takes it.
#define WORDS_MINE                                                                                 \
    {                                                                                              \
        .name = "mine", .type = OPTION_STRING, .value = "PATTERN,...",                             \
        .help =                                                                                    \
            "functions, source files or objects that are mine; default: the program's own code"    \
    }

// Exit statuses of these verbs. Documented in the manual page.
enum { WORDS_DONE = 0, WORDS_FAILED = 1, WORDS_PARTIAL = 2 };

// One line on stderr that begins with "quern: "; WORDS_FAILED.
int words_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

// The message for an option's value that its table cannot judge: "invalid value 'x' for --by;
// ADVICE". `name` has its dashes. WORDS_FAILED.
int words_invalid(const char *name, const char *value, const char *advice);
// The weight of this name, for --by: WORDS_DONE, or WORDS_FAILED after a message.
int words_weight(const char *value, const struct heap_weight **weight);
// The weights as choices of an option.
bool words_offer_weights(size_t index, struct option_choice *choice);

// Chooses the program's own frames for the verb (report/shared/own.h).
void words_choose_own(const struct arguments *arguments);

// Reads the first bytes of a file, at most `most`; their number, 0 if it cannot be read.
size_t words_start(const char *path, char *start, size_t most);
// Opens a file and reads its first bytes, at most *size. -1 after a message.
int words_open(const char *path, char *start, size_t *size);
// Reads the recording at path. WORDS_DONE; WORDS_PARTIAL after a notice if it does not hold the
// whole run; WORDS_FAILED after a message. The caller frees the file unless it is WORDS_FAILED.
int words_recording(const char *path, struct heap_file *file, const struct heap_filter *filter,
                    const struct heap_sink *sinks, size_t count);

// The output: stdout if path is NULL or "-". NULL after a message, also if it is the input.
FILE *words_output(const char *path, const char *input);
// Closes it. False after a message if not everything could be written.
bool words_close(FILE *out, const char *path);

// The path of a part of Quern, beside the program or in libexec, to be freed; NULL: it is missing.
char *words_part(const char *name, int mode);

#endif
