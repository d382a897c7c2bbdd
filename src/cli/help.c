// quern --help, --help-debug, --help-dyn-options, --version.
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/verbs.h"
#include "cli/words.h"
#include "config.h"

#define HELP_COLUMN 34
#define HELP_WIDTH  98

const char *topic_title(enum option_topic topic) {
    static const char *const titles[TOPIC_COUNT] = {
        [TOPIC_BASIC] = "Basic options",
        [TOPIC_LOG] = "Where the log goes",
        [TOPIC_CHILDREN] = "Child processes",
        [TOPIC_STACKS] = "Stacks and symbols",
        [TOPIC_ERRORS] = "Tools that report errors",
        [TOPIC_HEAP] = "Tools that replace malloc",
        [TOPIC_UNCOMMON] = "Uncommon options",
        [TOPIC_DEBUGGING] = "Debugging Quern itself",
        [TOPIC_MEMCHECK] = "memcheck",
        [TOPIC_MASSIF] = "massif",
        [TOPIC_RECORDING] = "heap",
        [TOPIC_CALLGRIND] = "callgrind",
        [TOPIC_CACHEGRIND] = "cachegrind",
        [TOPIC_DHAT] = "dhat",
        [TOPIC_FLAME] = "flame",
    };
    return topic < TOPIC_COUNT ? titles[topic] : NULL;
}

// Prints words from column HELP_COLUMN on, breaking lines at HELP_WIDTH.
static void print_wrapped(const char *text, size_t column) {
    if (column + 1 >= HELP_COLUMN) {
        putchar('\n');
        column = 0;
    }
    for (; column < HELP_COLUMN; column++)
        putchar(' ');
    while (*text) {
        size_t size = strcspn(text, " ");
        if (column + size > HELP_WIDTH) {
            printf("\n%*s", HELP_COLUMN, "");
            column = HELP_COLUMN;
        }
        printf("%.*s", (int)size, text);
        column += size;
        text += size;
        if (*text == ' ') {
            putchar(' ');
            column++;
            text++;
        }
    }
    putchar('\n');
}

static void print_option(const struct option *option) {
    struct text left = {0};
    struct text right = {0};
    text_string(&left, "    ");
    if (option->letter)
        text_format(&left, "-%c", option->letter);
    if (strlen(option->name) > 1)
        text_format(&left, "%s--%s", option->letter ? " " : "", option->name);
    if (option->type != OPTION_FLAG)
        text_format(&left, "=%s", option_value_text(option));
    text_string(&right, option->help);
    if (option->initial)
        text_format(&right, " [%s]", option->initial);
    if (option->state == OPTION_NOT_YET)
        text_string(&right, " (not yet)");
    if (option->state == OPTION_NO_EFFECT)
        text_string(&right, " (no effect here)");
    fputs(left.bytes, stdout);
    print_wrapped(right.bytes, left.size);
    text_free(&left);
    text_free(&right);
}

static void print_topic(enum option_topic topic, const char *tool) {
    printf("\n  %s:\n", topic_title(topic));
    for (size_t i = 0; i < option_count; i++)
        if (option_table[i].topic == topic ||
            (tool && option_table[i].also && strcmp(option_table[i].also, tool) == 0))
            print_option(&option_table[i]);
}

int verb_help(const struct tool *tool, bool debugging) {
    printf("usage: quern [options] [--] program [arguments]\n"
           "       quern TOOL [options] [--] program [arguments]\n"
           "       quern VERB FILE ...\n\n"
           "Runs a program and tells what it does with memory and time. Defaults stand in [ ].\n\n"
           "  Tools:\n");
    for (size_t i = 0; i < tool_count; i++) {
        size_t column = (size_t)printf("    %s", tool_table[i].name);
        struct text help = {0};
        text_format(&help, "%s%s", tool_table[i].help, tool_table[i].works ? "" : " (not yet)");
        print_wrapped(help.bytes, column);
        text_free(&help);
    }
    printf("\n  Verbs, for files that tools have written (quern VERB --help says more):\n");
    for (size_t i = 0; i < verb_count; i++) {
        size_t column = (size_t)printf("    %s %s", verb_table[i].name, verb_table[i].arguments);
        print_wrapped(verb_table[i].help, column);
    }
    for (enum option_topic topic = 0; topic < TOPIC_DEBUGGING; topic++)
        print_topic(topic, NULL);
    if (debugging)
        print_topic(TOPIC_DEBUGGING, NULL);
    if (tool && tool->topic < TOPIC_COUNT)
        print_topic(tool->topic, tool->name);
    printf(
        "\n  quern TOOL --help shows a tool's own options, quern --help-debug the debugging "
        "ones.\n  Options are also read from ~/.quernrc, $QUERN_OPTS and ./.quernrc, and before "
        "those\n  from ~/.valgrindrc, $VALGRIND_OPTS and ./.valgrindrc; man quern tells more.\n");
    return fflush(stdout) == 0 ? 0 : 1;
}

int verb_help_of(char **words) {
    const struct verb *verb = words[0] ? verb_find(words[0]) : NULL;
    const struct tool *tool = words[0] ? tool_find(words[0]) : NULL;
    if (verb && verb->run != verb_help_of)
        return verb->run((char *[]){(char[]){"--help"}, NULL});
    if (words[0] && !verb && !tool)
        return words_fail("there is no tool or verb '%s'; quern help lists them", words[0]);
    return verb_help(tool, false);
}

int verb_help_dynamic(void) {
    printf("Options that a program can change while it runs (VALGRIND_CLO_CHANGE):\n");
    for (size_t i = 0; i < option_count; i++)
        if (option_table[i].dynamic)
            print_option(&option_table[i]);
    return fflush(stdout) == 0 ? 0 : 1;
}

int verb_version(void) {
    printf("quern-" QUERN_VERSION "\n");
    return fflush(stdout) == 0 ? 0 : 1;
}
