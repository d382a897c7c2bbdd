// The manual page quern(1), generated at build time from the tables of options and verbs.
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/options/check.h"
#include "cli/statuses.h"
#include "cli/verbs.h"
#include "config.h"

// Text for roff: backslashes and hyphens escaped, no line that starts with a control character.
static void print_roff(const char *text) {
    if (*text == '.' || *text == '\'')
        fputs("\\&", stdout);
    for (; *text; text++) {
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
    }
}

static void print_item(const char *name, const char *help) {
    printf(".TP\n.B ");
    print_roff(name);
    putchar('\n');
    print_roff(help);
    putchar('\n');
}

// Text in paragraphs, separated by newlines.
static void print_paragraphs(const char *text) {
    while (*text) {
        struct text paragraph = {0};
        size_t size = strcspn(text, "\n");
        text_add(&paragraph, text, size);
        printf(".PP\n");
        print_roff(paragraph.bytes);
        putchar('\n');
        text_free(&paragraph);
        text += size + (text[size] == '\n');
    }
}

static void print_choices(const struct option *option) {
    struct option_choice choice;
    printf(" Kinds: ");
    for (size_t i = 0; option_choice_at(option, i, &choice); i++)
        printf("%s%.*s", i ? ", " : "", (int)choice.size, choice.name);
    putchar('.');
}

// The values that the option offers with help of their own.
static void print_offers(const struct option *option) {
    struct option_choice choice;
    printf(".RS\n");
    for (size_t i = 0; option_choice_at(option, i, &choice); i++)
        print_item(choice.name, choice.help);
    printf(".RE\n");
}

static void print_option(const struct option *option) {
    bool is_short = option_is_short(option);
    printf(".TP\n.B ");
    if (option->letter)
        printf("\\-%c%s", option->letter, is_short ? "" : ", ");
    if (!option->letter || !is_short) {
        fputs(is_short ? "\\-" : "\\-\\-", stdout);
        print_roff(option->name);
    }
    if (option->type != OPTION_FLAG) {
        putchar(is_short ? ' ' : '=');
        print_roff(option_value_text(option));
    }
    putchar('\n');
    print_roff(option->help);
    putchar('.');
    if (option->type == OPTION_SET)
        print_choices(option);
    if (option->initial) {
        printf(" Default: ");
        print_roff(option->initial);
        putchar('.');
    }
    if (option->state == OPTION_NO_EFFECT) {
        printf(" Accepted without effect: ");
        print_roff(option->why);
        putchar('.');
    }
    putchar('\n');
    if (option->offers)
        print_offers(option);
}

static const char head[] =
    ".SH NAME\nquern \\- run a program and report what it does with memory and time\n"
    ".SH SYNOPSIS\n.B quern\n[\\fIoptions\\fR] [\\-\\-] \\fIprogram\\fR [\\fIarguments\\fR]\n.br\n"
    ".B quern\n\\fItool\\fR [\\fIoptions\\fR] [\\-\\-] \\fIprogram\\fR [\\fIarguments\\fR]\n.br\n"
    ".B quern\n\\fIverb\\fR \\fIfile\\fR ...\n"
    ".SH DESCRIPTION\nQuern runs an unmodified Linux x86-64 program and reports on it to standard "
    "error or to a log.\nSome tools translate the program's code as it runs; others let it run "
    "natively.\nQuern accepts Valgrind's command line.\n"
    ".SH TOOLS\n";

static const char tail[] =
    ".SH STOPPING A PROGRAM\nCtrl+C reaches the program as it would without Quern. The report "
    "follows when the program has\nended. A second Ctrl+C within five seconds ends the program: "
    "quern sends SIGTERM, and after five\nmore seconds SIGKILL, unless the report is being "
    "written.\nIf the program reads the terminal character by character, as an editor or a pager "
    "does, Ctrl+C\nis only a key for that program.\n.PP\n"
    "\\-\\-duration sends SIGINT, SIGTERM and SIGKILL, five seconds apart, until the program has "
    "ended.\n.PP\n"
    "quern forwards signals that it receives to the program. Ctrl+Z, fg and bg work as usual.\n"
    "If quern is killed, the program is killed too.\n.PP\n"
    "If the program ends while processes that it started still run translated, quern ends too.\n"
    "A process in the background then collects their reports.\n";

static const char files[] =
    ".SH FILES AND ENVIRONMENT\nQuern reads options from these places, in this order:\n.PP\n"
    "\\&~/.valgrindrc, $VALGRIND_OPTS, ./.valgrindrc, "
    "~/.quernrc, $QUERN_OPTS, ./.quernrc, the command line.\n.PP\n"
    "A later value replaces an earlier one; values of options that may be repeated accumulate.\n"
    "\\-\\-command\\-line\\-only=yes skips files and variables.\nWhite space separates "
    "words; ' and \" quote.\n.PP\nQuern reads a file only if it is a regular file, belongs to the "
    "user and is not writable by\neverybody; else it prints a message and ignores the file.\n"
    "In the home directory, the files are read once.\n.PP\n"
    "An option written \\-\\-\\fItool\\fR:\\fIname\\fR=\\fIvalue\\fR applies to that tool only.\n"
    "In files and variables, Quern ignores options of other tools than the one in use.\n"
    "An option that Quern does not support is an error. In Valgrind's files and variable, it "
    "prints\na message and ignores the option.\n"
    ".SH SEE ALSO\n.BR valgrind (1),\n.BR gdb (1)\n";

static void print_verb(const struct verb *verb) {
    printf(".SS quern %s ", verb->name);
    print_roff(verb->usage);
    putchar('\n');
    print_paragraphs(verb->description);
    for (const struct option *option = verb->options; option && option->name; option++)
        print_option(option);
    for (const struct verb_list *list = verb->lists; list && list->title; list++) {
        struct option_choice choice;
        printf(".PP\n");
        print_roff(list->title);
        printf(":\n");
        for (size_t i = 0; list->offers(i, &choice); i++)
            print_item(choice.name, choice.help);
    }
}

int generate_manual(void) {
    printf(".TH QUERN 1 \"\" \"Quern " QUERN_VERSION "\" \"User Commands\"\n");
    fputs(head, stdout);
    for (size_t i = 0; i < tool_count; i++) {
        printf(".TP\n.B %s\n", tool_table[i]->name);
        if (tool_table[i]->plain_name)
            printf("(or\n.BR %s )\n", tool_table[i]->plain_name);
        print_roff(tool_table[i]->help);
        printf(".%s\n", tool_table[i]->is_planned ? " Not supported yet." : "");
    }
    printf(".SH VERBS\nVerbs work on files that tools have written, and on runs.\n");
    for (size_t i = 0; i < verb_count; i++)
        print_verb(verb_table[i]);
    printf(".SH OPTIONS\n");
    size_t count;
    const struct option *const *list = option_list(&count);
    for (enum option_topic topic = TOPIC_BASIC; topic < TOPIC_COUNT; topic++) {
        printf(".SS %s\n", topic_title(topic));
        for (size_t i = 0; i < count; i++)
            if (list[i]->topic == topic)
                print_option(list[i]);
    }
    for (size_t i = 0; i < tool_count; i++) {
        if (tool_table[i]->options)
            printf(".SS Tool %s\n", tool_table[i]->name);
        for (const struct option *o = tool_table[i]->options; o && o->name; o++)
            print_option(o);
    }
    fputs(tail, stdout);
    printf(".SH EXIT STATUS\n");
    for (size_t i = 0; i < status_count; i++)
        print_item(status_words[i].status, status_words[i].when);
    fputs(files, stdout);
    return fflush(stdout) == 0 ? 0 : 1;
}
