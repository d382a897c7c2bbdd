// quern push --push=URL FILE...: pushes recordings, and what waits in a spool, to a store.
#include "cli/arguments.h"
#include "cli/store_words.h"
#include "cli/verbs.h"
#include "cli/words.h"

static int run_push(const struct arguments *arguments) {
    struct store_words words = {0};
    if (!argument_given(arguments, "push"))
        return words_fail("where to? Give --push=URL of a store");
    store_words_option(&words, arguments, "push", "push");
    store_words_option(&words, arguments, "credentials", "credentials");
    store_words_option(&words, arguments, "service", "service");
    store_words_option(&words, arguments, "service-version", "version");
    store_words_option(&words, arguments, "push-keep", "keep-days");
    for (size_t i = 0; i < arguments->operand_count; i++)
        store_words_add(&words, "file", arguments->operands[i]);
    return store_words_run(&words, "push");
}

static const struct option options[] = {
    {.name = "push",
     .type = OPTION_STRING,
     .value = "URL",
     .help = "clickhouse://HOST[:PORT][/DATABASE], or postgresql://HOST[:PORT]/DATABASE"},
    STORE_WORDS_CREDENTIALS,
    {.name = "service",
     .type = OPTION_STRING,
     .value = "NAME",
     .help = "name of the service; default: the program's name"},
    {.name = "service-version", .type = OPTION_STRING, .value = "TEXT", .help = "its version"},
    {.name = "push-keep",
     .type = OPTION_NUMBER,
     .value = "DAYS",
     .initial = "30",
     .most = 36500,
     .help = "days after which the store may drop profiles; 0: never"},
    {0},
};

const struct verb verb_push = {
    .name = "push",
    .usage = "--push=URL [options] FILE...",
    .help = "push recordings to a store",
    .description =
        "Pushes recordings of --tool=heap to a store that quern query --store and quern diff "
        "--store ask. A recording becomes one interval. A file of a spool (*.interval), which a "
        "run "
        "could not push, is removed when the store has it. What the store has already is not added "
        "again.",
    .options = options,
    .operands_least = 1,
    .run = run_push,
};
