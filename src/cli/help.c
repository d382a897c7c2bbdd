// quern --help, --help-all, --help-debug, --help-dyn-options, --version, and the help of verbs.
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/arguments.h"
#include "cli/options/check.h"
#include "cli/names.h"
#include "cli/verbs.h"
#include "cli/words.h"
#include "config.h"

#define HELP_COLUMN 34
#define LIST_COLUMN 18 // of the shorter names in lists
#define HELP_WIDTH  98

const char *topic_title(enum option_topic topic) {
    static const char *const titles[TOPIC_COUNT] = {
        [TOPIC_BASIC] = "Basic options",
        [TOPIC_LOG] = "Where the log goes",
        [TOPIC_CHILDREN] = "Child processes",
        [TOPIC_STACKS] = "Stacks and symbols",
        [TOPIC_ERRORS] = "Tools that report errors",
        [TOPIC_HEAP] = "Tools that replace malloc",
        [TOPIC_FLEET] = "Metrics and profiles for other machines",
        [TOPIC_UNCOMMON] = "Uncommon options",
        [TOPIC_DEBUGGING] = "Debugging Quern itself",
    };
    return topic < TOPIC_COUNT ? titles[topic] : NULL;
}

// Prints text from `indent` on, with lines broken at HELP_WIDTH. `column` is where the cursor is.
static void print_wrapped(FILE *out, const char *text, size_t column, size_t indent) {
    if (column && column + 1 >= indent) {
        fputc('\n', out);
        column = 0;
    }
    fprintf(out, "%*s", (int)(indent - column), "");
    column = indent;
    while (*text) {
        size_t size = strcspn(text, " ");
        if (column > indent && column + 1 + size > HELP_WIDTH) {
            fprintf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            fputc(' ', out);
            column++;
        }
        fprintf(out, "%.*s", (int)size, text);
        column += size;
        text += size + (text[size] == ' ');
    }
    fputc('\n', out);
}

// ---- options -----------------------------------------------------------------------------------

// The values that an option offers with help of their own.
static void print_offers(FILE *out, const struct option *option) {
    struct option_choice choice;
    for (size_t i = 0; option->offers && option_choice_at(option, i, &choice); i++) {
        size_t column = (size_t)fprintf(out, "      %s", choice.name);
        print_wrapped(out, choice.help, column, HELP_COLUMN);
    }
}

static void print_option(FILE *out, const struct option *option) {
    struct text left = {0};
    struct text right = {0};
    bool is_short = option_is_short(option);
    text_string(&left, "    ");
    if (option->letter)
        text_format(&left, "-%c%s", option->letter, is_short ? "" : " ");
    if (!option->letter || !is_short)
        option_add_name(&left, option);
    if (option->type != OPTION_FLAG)
        text_format(&left, "%s%s", is_short ? " " : "=", option_value_text(option));
    text_string(&right, option->help);
    if (option->initial)
        text_format(&right, " [%s]", option->initial);
    if (option->state == OPTION_NO_EFFECT)
        text_string(&right, " (no effect here)");
    fputs(left.bytes, out);
    print_wrapped(out, right.bytes, left.size, HELP_COLUMN);
    print_offers(out, option);
    text_free(&left);
    text_free(&right);
}

static void print_topic(enum option_topic topic) {
    size_t count;
    const struct option *const *list = option_list(&count);
    printf("\n  %s:\n", topic_title(topic));
    for (size_t i = 0; i < count; i++)
        if (list[i]->topic == topic)
            print_option(stdout, list[i]);
}

static bool has_effect(const struct option *option) {
    return option->state == OPTION_WORKS;
}

// The options that belong to tools, as far as this one takes them; `all`: also those without
// effect.
static void print_tool(const struct supervisor_tool *tool, bool all) {
    size_t count;
    const struct option *const *list = option_list(&count);
    printf("\n  Options of %s:\n", tool->name);
    for (size_t i = 0; i < count; i++)
        if (list[i]->topic == TOPIC_TOOL && option_serves(list[i], tool) &&
            (all || has_effect(list[i])))
            print_option(stdout, list[i]);
}

// The options of all tools that are used most, most used first.
static const char *const common[] = {
    "tool",         "log-file",         "quiet",          "trace-children", "num-callers",
    "suppressions", "gen-suppressions", "error-exitcode", "xml-file",       "sarif-file",
    "duration",     "verbose",
};

static void print_common(void) {
    printf("\n  Most used options of all tools:\n");
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        print_option(stdout, option_find(common[i], strlen(common[i])));
}

// A long text has been written in part before its end; that may have failed, too.
static int close_help(void) {
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}

static void print_usage(void) {
    printf("usage: quern [options] [--] program [arguments]\n"
           "       quern TOOL [options] [--] program [arguments]\n"
           "       quern VERB FILE ...\n\n"
           "Runs a program and reports what it does with memory and time. Defaults are in [ ].\n\n"
           "  Tools:\n");
    for (size_t i = 0; i < tool_count; i++) {
        const char *plain = tool_table[i]->plain_name;
        size_t column = (size_t)printf("    %s%s%s", tool_table[i]->name, plain ? ", " : "",
                                       plain ? plain : "");
        struct text help = {0};
        text_format(&help, "%s%s", tool_table[i]->help,
                    tool_table[i]->is_planned ? " (not yet)" : "");
        print_wrapped(stdout, help.bytes, column, HELP_COLUMN);
        text_free(&help);
    }
    printf("\n  Verbs, for files that tools have written (quern VERB --help shows more):\n");
    for (size_t i = 0; i < verb_count; i++) {
        size_t column = (size_t)printf("    %s %s", verb_table[i]->name, verb_table[i]->usage);
        print_wrapped(stdout, verb_table[i]->help, column, HELP_COLUMN);
    }
}

static int end_help(void) {
    printf("\n  quern TOOL --help shows a tool's own options, --help-all all options, --help-debug "
           "also those\n  that debug Quern. Quern also reads options from ~/.valgrindrc, "
           "$VALGRIND_OPTS and\n  ./.valgrindrc, and then from ~/.quernrc, $QUERN_OPTS and "
           "./.quernrc; man quern describes\n  them.\n");
    return close_help();
}

int help_short(const struct supervisor_tool *tool) {
    if (!tool) {
        print_usage();
    } else {
        printf("usage: quern %s [options] [--] program [arguments]\n\n"
               "%s: %s. Defaults are in [ ].\n",
               tool->name, tool->name, tool->help);
        if (tool->options)
            print_tool(tool, false);
    }
    print_common();
    return end_help();
}

int help_all(const struct supervisor_tool *tool, bool debugging) {
    print_usage();
    if (tool && tool->options)
        print_tool(tool, true);
    for (enum option_topic topic = TOPIC_BASIC; topic < TOPIC_DEBUGGING; topic++)
        print_topic(topic);
    if (debugging)
        print_topic(TOPIC_DEBUGGING);
    return end_help();
}

int help_dynamic(void) {
    printf("Options that a program can change while it runs (VALGRIND_CLO_CHANGE):\n");
    size_t count;
    const struct option *const *list = option_list(&count);
    for (size_t i = 0; i < count; i++)
        if (list[i]->dynamic)
            print_option(stdout, list[i]);
    return close_help();
}

int help_version(void) {
    if (names_claim_valgrind())
        printf("valgrind-" NAMES_VALGRIND_VERSION " (Quern " QUERN_VERSION ")\n");
    else
        printf("quern-" QUERN_VERSION "\n");
    return close_help();
}

// ---- verbs -------------------------------------------------------------------------------------

static void print_paragraphs(FILE *out, const char *text) {
    while (*text) {
        struct text paragraph = {0};
        size_t size = strcspn(text, "\n");
        text_add(&paragraph, text, size);
        print_wrapped(out, paragraph.bytes, 0, 0);
        text_free(&paragraph);
        text += size + (text[size] == '\n');
    }
}

static void print_list(FILE *out, const struct verb_list *list) {
    struct option_choice choice;
    fprintf(out, "\n  %s:\n", list->title);
    for (size_t i = 0; list->offers(i, &choice); i++) {
        size_t column = (size_t)fprintf(out, "    %s", choice.name);
        print_wrapped(out, choice.help, column, LIST_COLUMN);
    }
}

void help_verb(FILE *out, const struct verb *verb) {
    fprintf(out, "usage: quern %s %s\n", verb->name, verb->usage);
    if (verb->usage_other)
        fprintf(out, "       quern %s %s\n", verb->name, verb->usage_other);
    if (verb->usage_third)
        fprintf(out, "       quern %s %s\n", verb->name, verb->usage_third);
    fputc('\n', out);
    print_paragraphs(out, verb->description);
    if (verb->options)
        fputc('\n', out);
    for (const struct option *option = verb->options; option && option->name; option++)
        print_option(out, option);
    for (const struct verb_list *list = verb->lists; list && list->title; list++)
        print_list(out, list);
    const char *notice = verb->notice ? verb->notice() : NULL;
    if (notice)
        fprintf(out, "\n%s\n", notice);
}

int help_usage_error(const struct verb *verb) {
    help_verb(stderr, verb);
    return WORDS_FAILED;
}

static int run_help(const struct arguments *arguments) {
    const char *name = arguments->operands[0];
    const struct verb *verb = name ? verb_find(name) : NULL;
    const struct supervisor_tool *tool = name ? tool_find(name) : NULL;
    if (name && !verb && !tool)
        return words_fail("there is no tool or verb '%s'; quern help lists them", name);
    if (!verb || verb == &verb_help)
        return help_short(tool);
    help_verb(stdout, verb);
    return words_close(stdout, NULL) ? WORDS_DONE : WORDS_FAILED;
}

const struct verb verb_help = {
    .name = "help",
    .usage = "[TOOL|VERB]",
    .help = "show the options of a tool, or how to use a verb",
    .description = "Shows the options of a tool, or how to use a verb.",
    .run = run_help,
};
