// The manual page quern(1), generated at build time so that it always matches the table.
#include <stdio.h>
#include <string.h>

#include "cli/statuses.h"
#include "cli/verbs.h"
#include "config.h"
#include "report/heap/export.h"

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

static void print_option(const struct option *option) {
    printf(".TP\n.B ");
    if (option->letter)
        printf("\\-%c", option->letter);
    if (strlen(option->name) > 1) {
        printf("%s\\-\\-", option->letter ? ", " : "");
        print_roff(option->name);
    }
    if (option->type != OPTION_FLAG) {
        putchar('=');
        print_roff(option_value_text(option));
    }
    putchar('\n');
    print_roff(option->help);
    putchar('.');
    if (option->type == OPTION_SET) {
        printf(" Kinds: ");
        for (const char *c = option->choices; *c; c++)
            fputs(*c == '|' ? ", " : (char[]){*c, 0}, stdout);
        putchar('.');
    }
    if (option->initial) {
        printf(" Default: ");
        print_roff(option->initial);
        putchar('.');
    }
    if (option->state == OPTION_NOT_YET)
        printf(" Not supported yet.");
    if (option->state == OPTION_NO_EFFECT) {
        printf(" Accepted without effect: ");
        print_roff(option->why);
        putchar('.');
    }
    putchar('\n');
}

static const char head[] =
    ".SH NAME\nquern \\- run a program and tell what it does with memory and time\n"
    ".SH SYNOPSIS\n.B quern\n[\\fIoptions\\fR] [\\-\\-] \\fIprogram\\fR [\\fIarguments\\fR]\n.br\n"
    ".B quern\n\\fItool\\fR [\\fIoptions\\fR] [\\-\\-] \\fIprogram\\fR [\\fIarguments\\fR]\n.br\n"
    ".B quern\n\\fIverb\\fR \\fIfile\\fR ...\n"
    ".SH DESCRIPTION\nQuern runs an unmodified Linux x86-64 program, translating its code as it "
    "runs, and reports\nto standard error or a log. Its command line is Valgrind's.\n"
    ".SH TOOLS\n";

static const char tail[] =
    ".SH STOPPING A PROGRAM\nCtrl+C reaches the program as it would without Quern; the report "
    "comes when the program has\nended. Typed again within five seconds it ends the program: "
    "SIGTERM, five seconds later, unless\nit is being reported on, SIGKILL. On a\nterminal that a program reads character by "
    "character (an editor, a pager) it stays a command to that\nprogram.\nA signal sent to quern "
    "itself is handed on to the program. Ctrl+Z, fg and bg work as usual.\n"
    "If quern is killed, the program is killed with it.\n"
    "When the program ends while processes it started still run translated, quern ends too and\n"
    "leaves a process in the background that collects their reports.\n";

static const char files[] =
    ".SH FILES AND ENVIRONMENT\nOptions are taken from these places, in this order; later ones "
    "win, "
    "options that may be repeated\nadd up:\n.PP\n\\&~/.valgrindrc, $VALGRIND_OPTS, ./.valgrindrc, "
    "~/.quernrc, $QUERN_OPTS, ./.quernrc, the command line.\n.PP\nWith "
    "\\-\\-command\\-line\\-only=yes only the command line counts. Words are separated by "
    "white\nspace; ' and \" quote. A file is passed over, with a message, unless it is a regular "
    "file that\nbelongs to the user and is not writable by everybody. Files of the working "
    "directory "
    "are not\nread in the home directory.\n.PP\nAn option written "
    "\\-\\-\\fItool\\fR:\\fIname\\fR=\\fIvalue\\fR counts for that tool only. In files and "
    "variables, an option of\nanother tool than the one in use is passed over. What Quern does not "
    "support is an error, but for\nValgrind's files and variable: there it is passed over with a "
    "message.\n"
    ".SH SEE ALSO\n.BR valgrind (1),\n.BR gdb (1)\n";

static void print_item(const char *name, const char *help) {
    printf(".TP\n.B ");
    print_roff(name);
    putchar('\n');
    print_roff(help);
    putchar('\n');
}

static void print_verbs(void) {
    printf(".SH VERBS\nThese work on files that tools have written; "
           "\\fBquern\\fR \\fIverb\\fR \\fB\\-\\-help\\fR says more.\n");
    for (size_t i = 0; i < verb_count; i++) {
        printf(".TP\n.B %s ", verb_table[i].name);
        print_roff(verb_table[i].arguments);
        putchar('\n');
        print_roff(verb_table[i].help);
        putchar('\n');
    }
    printf(".SS Formats of export (\\-\\-as)\n");
    for (size_t i = 0; i < heap_format_count; i++)
        print_item(heap_formats[i].name, heap_formats[i].help);
    printf(".SS What stacks are weighed by (\\-\\-by)\n");
    for (size_t i = 0; i < heap_weight_count; i++)
        print_item(heap_weights[i].name, heap_weights[i].help);
}

int verb_manual(void) {
    printf(".TH QUERN 1 \"\" \"Quern " QUERN_VERSION "\" \"User Commands\"\n");
    fputs(head, stdout);
    for (size_t i = 0; i < tool_count; i++) {
        printf(".TP\n.B %s\n", tool_table[i].name);
        print_roff(tool_table[i].help);
        printf(".%s\n", tool_table[i].works ? "" : " Not supported yet.");
    }
    print_verbs();
    printf(".SH OPTIONS\n");
    for (enum option_topic topic = 0; topic < TOPIC_COUNT; topic++) {
        printf(".SS %s%s\n", topic > TOPIC_DEBUGGING ? "Tool " : "", topic_title(topic));
        for (size_t i = 0; i < option_count; i++)
            if (option_table[i].topic == topic)
                print_option(&option_table[i]);
    }
    fputs(tail, stdout);
    printf(".SH EXIT STATUS\n");
    for (size_t i = 0; i < status_count; i++)
        print_item(status_words[i].status, status_words[i].when);
    fputs(files, stdout);
    return fflush(stdout) == 0 ? 0 : 1;
}
