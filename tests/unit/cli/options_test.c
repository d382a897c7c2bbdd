#include "unit.h"

#include <string.h>
#include <stdint.h>
#include <stdlib.h>

#include "cli/options/options.h"
#include "cli/options/sources.h"

static struct option_values values;

// The message of an applied word, "" when it was taken. Lives until the next call.
static const char *apply(const char *word, enum option_source source) {
    static char *message;
    free(message);
    message = options_apply(&values, tool_find("none"), word, source,
                            source == SOURCE_COMMAND_LINE ? NULL : "rc");
    return message ? message : "";
}

static void fresh(void) {
    if (values.values)
        options_free(&values);
    options_init(&values);
}

TEST(table_is_sound) {
    size_t count;
    const struct option *const *list = option_list(&count);
    for (size_t i = 0; i < count; i++) {
        const struct option *option = list[i];
        if (!option->help || !option->since ||
            option_find(option->name, strlen(option->name)) != option)
            unit_fail(__FILE__, __LINE__, "--%s lacks something or stands there twice",
                      option->name);
        if (option->state == OPTION_NO_EFFECT && !option->why)
            unit_fail(__FILE__, __LINE__, "--%s does not say why", option->name);
        if (option->initial && option->type != OPTION_STRING && option->type != OPTION_FILE) {
            char word[128];
            snprintf(word, sizeof word, "--%s=%s", option->name, option->initial);
            fresh();
            const char *message = apply(word, SOURCE_COMMAND_LINE);
            if (strstr(message, "invalid value"))
                unit_fail(__FILE__, __LINE__, "the default of --%s is refused: %s", option->name,
                          message);
        }
        for (const char *c = option->help; *c; c++)
            if ((unsigned char)*c < ' ')
                unit_fail(__FILE__, __LINE__, "help of --%s has a control character", option->name);
    }
}

TEST(values_and_defaults) {
    fresh();
    CHECK_EQ(option_number(&values, "num-callers"), 12);
    CHECK_STR(apply("--num-callers=20", SOURCE_COMMAND_LINE), "");
    CHECK_STR(apply("--num-callers=30", SOURCE_COMMAND_LINE), "");
    CHECK_EQ(option_number(&values, "num-callers"), 30);
    CHECK_STR(apply("-v", SOURCE_COMMAND_LINE), "");
    CHECK_STR(apply("--verbose", SOURCE_COMMAND_LINE), "");
    CHECK_EQ(option_times(&values, "verbose"), 2);
    CHECK_STR(apply("--fullpath-after=", SOURCE_COMMAND_LINE), "");
    CHECK_STR(apply("--fullpath-after=/src/", SOURCE_COMMAND_LINE), "");
    CHECK_EQ(option_times(&values, "fullpath-after"), 2);
}

TEST(bad_words_are_refused) {
    static const char *const words[][2] = {
        {"--bogus", "unknown option '--bogus'; quern --help lists all"},
        {"--num-caller=3", "did you mean --num-callers?"},
        {"--num-callers", "--num-callers needs a value: --num-callers=NUMBER"},
        {"--num-callers=", "invalid value '' for --num-callers; give a number from 1 to 1000000"},
        {"--num-callers=x", "invalid value 'x' for --num-callers; give a number from 1 to 1000000"},
        {"--num-callers=3x",
         "invalid value '3x' for --num-callers; give a number from 1 to 1000000"},
        {"--num-callers= 3",
         "invalid value ' 3' for --num-callers; give a number from 1 to 1000000"},
        {"--num-callers=0", "invalid value '0' for --num-callers; give a number from 1 to 1000000"},
        {"--num-callers=1000001",
         "invalid value '1000001' for --num-callers; give a number from 1 to 1000000"},
        {"--num-callers=99999999999999999999",
         "invalid value '99999999999999999999' for --num-callers; give a number from 1 to 1000000"},
        {"--trace-children=maybe",
         "invalid value 'maybe' for --trace-children; choose one of no, yes"},
        {"--trace-children=YES", "invalid value 'YES' for --trace-children; choose one of no, yes"},
        {"--log-file=~/x", "$HOME"},
        {"--log-file=%q{QUERN_NOT_SET}", "is not set"},
        {"--quiet=yes", "takes no value"},
        {"-z", "unknown option"},
        {"-qq", "unknown option"},
        {"-", "unknown option"},
        {"word", "unknown option"},
        {"--mode=heap", "option of tool 'dhat'"},
        {"--leak-check=full", "option of tool 'memcheck'"},
    };
    fresh();
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *message = apply(words[i][0], SOURCE_COMMAND_LINE);
        if (!strstr(message, words[i][1]))
            unit_fail(__FILE__, __LINE__, "%s gave: %s", words[i][0], message);
    }
}

TEST(harmless_values_of_missing_options_are_taken) {
    fresh();
    CHECK_STR(apply("--vgdb=no", SOURCE_COMMAND_LINE), "");
    CHECK_STR(apply("--xml=no", SOURCE_COMMAND_LINE), "");
    CHECK_STR(apply("--vgdb-shadow-registers=no", SOURCE_COMMAND_LINE), "");
    CHECK_EQ(values.remark_count, 0);
}

TEST(options_without_effect_leave_a_remark) {
    fresh();
    CHECK_STR(apply("--error-exitcode=3", SOURCE_COMMAND_LINE), "");
    CHECK_STR(apply("-s", SOURCE_COMMAND_LINE), "");
    CHECK_STR(apply("--error-exitcode=x", SOURCE_COMMAND_LINE),
              "invalid value 'x' for --error-exitcode; give a number from 0 to 255");
    CHECK_EQ(values.remark_count, 2);
    CHECK(values.remark_count && strstr(values.remarks[0], "--error-exitcode=3 has no effect"));
}

TEST(tool_prefix) {
    fresh();
    CHECK_STR(apply("--memcheck:leak-check=full", SOURCE_COMMAND_LINE), "");
    CHECK_STR(apply("--none:num-callers=5", SOURCE_COMMAND_LINE), "");
    CHECK_EQ(option_number(&values, "num-callers"), 5);
    CHECK(strstr(apply("--none:bogus=5", SOURCE_COMMAND_LINE), "unknown option"));
}

TEST(valgrind_sources_are_forgiving) {
    fresh();
    CHECK_STR(apply("--leak-check=full", SOURCE_VALGRIND), "");
    CHECK_EQ(values.remark_count, 1);
    CHECK_EQ(values.warning_count, 0);
    CHECK_STR(apply("--first-race-only=yes", SOURCE_VALGRIND), "");
    CHECK_STR(apply("stray", SOURCE_VALGRIND), "");
    CHECK_EQ(values.warning_count, 2);
    CHECK(strstr(apply("--num-callers=x", SOURCE_VALGRIND), "rc: invalid value"));
}

TEST(quern_sources_are_strict) {
    fresh();
    CHECK_STR(apply("--leak-check=full", SOURCE_QUERN), "");
    CHECK(strstr(apply("--first-race-only=yes", SOURCE_QUERN), "rc: unknown option"));
}

static void split(struct source_words *words, const char *text) {
    sources_split(words, text, strlen(text), SOURCE_QUERN, "test");
}

TEST(words_are_split_and_quoted) {
    struct source_words words = {0};
    split(&words, "  --a=1\t--b='x y'\n\n\"--c=it's\" --d=\"\" ''");
    CHECK_EQ(words.count, 5);
    static const char *const wanted[] = {"--a=1", "--b=x y", "--c=it's", "--d=", ""};
    for (size_t i = 0; i < words.count && i < 5; i++)
        CHECK_STR(words.words[i].text, wanted[i]);
    sources_free(&words);
    split(&words, "'open quote");
    CHECK_EQ(words.count, 1);
    CHECK_STR(words.words[0].text, "open quote");
    sources_free(&words);
    split(&words, " \n ");
    CHECK_EQ(words.count, 0);
    sources_free(&words);
}

TEST(fuzzed_files_and_words_do_no_harm) {
    static const char alphabet[] = "-=:,~%{}'\" \n\taq1x0\\\0noyes";
    uint64_t state = 1181783497276652981ull;
    size_t words_seen = 0, count;
    const struct option *const *list = option_list(&count);
    for (int round = 0; round < 20000; round++) {
        char text[96];
        size_t size = 0;
        while (size < sizeof text - 32) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            if (state % 7 == 0) {
                const char *name = list[state / 7 % count]->name;
                size += (size_t)snprintf(text + size, 31, "--%s=", name);
            } else {
                text[size++] = alphabet[state / 8 % (sizeof alphabet - 1)];
            }
        }
        struct source_words words = {0};
        sources_split(&words, text, size, SOURCE_VALGRIND, "fuzz");
        fresh();
        for (size_t i = 0; i < words.count; i++)
            apply(words.words[i].text, (enum option_source)(state % 3));
        words_seen += words.count;
        sources_free(&words);
    }
    CHECK(words_seen > 20000);
}

UNIT_MAIN()
