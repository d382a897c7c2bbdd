// The options that choose a part of a recording: --from, --to, --size, --lifetime, --function and
// --library, for the verbs that have them.
#ifndef QUERN_CLI_FILTER_H
#define QUERN_CLI_FILTER_H

#include "cli/arguments.h"
#include "report/heap/filter.h"

// Entries for a verb's table of options.
// clang-format off
#define FILTER_OPTIONS                                                                             \
    {.name = "from", .type = OPTION_STRING, .value = "SECONDS",                                    \
     .help = "count only blocks allocated from this time on (recordings)"},                        \
    {.name = "to", .type = OPTION_STRING, .value = "SECONDS",                                      \
     .help = "ignore everything from this time on (recordings)"},                                  \
    {.name = "size", .type = OPTION_STRING, .value = "LEAST-MOST",                                 \
     .help = "count only blocks of this many bytes; one bound may be missing"},                    \
    {.name = "lifetime", .type = OPTION_STRING, .value = "LEAST-MOST",                             \
     .help = "count only blocks that live this many seconds"},                                     \
    {.name = "function", .type = OPTION_STRING, .value = "PATTERN,...",                            \
     .help = "count only stacks with a matching function; * and ? are wildcards"},                 \
    {.name = "library", .type = OPTION_STRING, .value = "PATTERN,...",                             \
     .help = "count only stacks with a matching program or library"}
// clang-format on

// Reads these options into the filter, which the caller has initialised. *given is set if there is
// one. WORDS_DONE, or WORDS_FAILED after a message.
int filter_arguments(const struct arguments *arguments, struct heap_filter *filter, bool *given);

#endif
