#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "cli/arguments.h"
#include "cli/options/check.h"
#include "cli/words.h"

static const struct option options[] = {
    {.name = "top", .type = OPTION_NUMBER, .least = 1, .most = 9, .initial = "5", .help = "rows"},
    {.name = "share", .type = OPTION_DECIMAL, .most = 100, .initial = "1.5", .help = "percent"},
    {.name = "auto", .type = OPTION_BOOL, .choices = "no|yes", .initial = "no", .help = "lines"},
    {.name = "tree", .type = OPTION_CHOICE, .choices = "a|b|c", .initial = "b", .help = "tree"},
    {.name = "json", .type = OPTION_FLAG, .help = "JSON"},
    {.name = "x", .type = OPTION_NUMBER, .most = 9, .help = "width"},
    {.name = "o", .letter = 'o', .type = OPTION_STRING, .repeats = true, .help = "output"},
    {0},
};
static const struct verb verb = {.name = "test", .options = options};
static const struct verb dashes = {.name = "test", .options = options, .takes_dashes = true};

// Parses up to six words; the status. What goes to stderr is dropped.
static int parse(struct arguments *arguments, const struct verb *with, char *const *words) {
    FILE *shown = stderr;
    stderr = fopen("/dev/null", "w");
    int status = arguments_parse(arguments, with, words);
    fclose(stderr);
    stderr = shown;
    return status;
}

#define WORDS(...)                                                                                 \
    (char *[]) {                                                                                   \
        __VA_ARGS__, NULL                                                                          \
    }

TEST(defaults_and_operands) {
    struct arguments arguments;
    CHECK_EQ(parse(&arguments, &verb, WORDS("one", "-", "two")), WORDS_DONE);
    CHECK_EQ(arguments.operand_count, 3);
    CHECK_STR(arguments.operands[1], "-");
    CHECK(!arguments.operands[3]);
    CHECK_EQ(argument_number(&arguments, "top"), 5);
    CHECK(argument_decimal(&arguments, "share") == 1.5);
    CHECK(!argument_yes(&arguments, "auto"));
    CHECK_EQ(argument_choice(&arguments, "tree"), 1);
    CHECK(!argument_given(&arguments, "json"));
    CHECK(!argument_text(&arguments, "o"));
    arguments_free(&arguments);
}

TEST(values_in_the_same_word_or_the_next) {
    struct arguments arguments;
    CHECK_EQ(parse(&arguments, &verb, WORDS("--top=2", "--top", "3", "--x=4", "-o", "a", "-o=b")),
             WORDS_DONE);
    CHECK_EQ(arguments.operand_count, 0);
    CHECK_EQ(argument_number(&arguments, "top"), 3);
    CHECK_EQ(argument_number(&arguments, "x"), 4);
    CHECK_EQ(argument_items(&arguments, "o")->count, 2);
    CHECK_STR(argument_text(&arguments, "o"), "b");
    arguments_free(&arguments);
}

TEST(yes_needs_no_value) {
    struct arguments arguments;
    CHECK_EQ(parse(&arguments, &verb, WORDS("--auto", "file")), WORDS_DONE);
    CHECK(argument_yes(&arguments, "auto"));
    CHECK_EQ(arguments.operand_count, 1);
    arguments_free(&arguments);
    CHECK_EQ(parse(&arguments, &verb, WORDS("--auto", "no", "file")), WORDS_DONE);
    CHECK(!argument_yes(&arguments, "auto"));
    CHECK_EQ(arguments.operand_count, 1);
    arguments_free(&arguments);
}

TEST(wrong_words_are_refused) {
    char *const *const wrong[] = {WORDS("--bogus"),   WORDS("--top=0"),   WORDS("--top=10"),
                                  WORDS("--top"),     WORDS("--top=x"),   WORDS("--share=101"),
                                  WORDS("--auto=on"), WORDS("--tree=ab"), WORDS("--json=yes"),
                                  WORDS("-o"),        WORDS("-o="),       WORDS("--o=a"),
                                  WORDS("-x=4"),      WORDS("-top=2"),    WORDS("file", "-y")};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct arguments arguments;
        if (parse(&arguments, &verb, wrong[i]) != WORDS_FAILED)
            unit_fail(__FILE__, __LINE__, "%s was taken", wrong[i][0]);
        arguments_free(&arguments);
    }
}

TEST(operands_may_have_dashes) {
    struct arguments arguments;
    CHECK_EQ(parse(&arguments, &dashes, WORDS("file", "-- a comment", "--json")), WORDS_DONE);
    CHECK_EQ(arguments.operand_count, 2);
    CHECK(argument_given(&arguments, "json"));
    arguments_free(&arguments);
    CHECK_EQ(parse(&arguments, &dashes, WORDS("-- a comment", "file")), WORDS_FAILED);
    arguments_free(&arguments);
}

// Every verb: help that fits, names that are unique, defaults that its own parser takes.
TEST(tables_of_verbs_are_sound) {
    for (size_t i = 0; i < verb_count; i++) {
        const struct verb *one = verb_table[i];
        CHECK(one->usage && one->help && one->description && one->run);
        CHECK(verb_find(one->name) == one);
        for (const struct option *option = one->options; option && option->name; option++) {
            for (const struct option *other = one->options; other != option; other++)
                CHECK(strcmp(other->name, option->name) != 0);
            char *error = option->initial ? option_check(option, option->initial) : NULL;
            if (error || !option->help)
                unit_fail(__FILE__, __LINE__, "%s --%s: %s", one->name, option->name,
                          error ? error : "no help");
            free(error);
        }
    }
}

UNIT_MAIN()
