// heaptrack_print: its words, its lists, and the files that it writes.
#include <string.h>

#include "base/option_table.h"
#include "cli/arguments.h"
#include "cli/names/parts.h"
#include "cli/words.h"
#include "report/heap/heaptrack_print.h"

#define SWITCH(n, l, i)                                                                            \
    .name = n, .letter = l, .type = OPTION_CHOICE, .choices = "0|1", .initial = i, .since = "0.1"
#define LETTERED(n, l, v, i)                                                                       \
    .name = n, .letter = l, .type = OPTION_STRING, .value = v, .initial = i, .since = "0.1"

static const struct option options[] = {
    {LETTERED("file", 'f', "FILE", NULL), .help = "the recording; also without -f"},
    {LETTERED("diff", 'd', "FILE", NULL), .help = "show what has grown since this recording"},
    {SWITCH("print-allocators", 'a', "1"), .help = "stacks with most allocations"},
    {SWITCH("print-peaks", 'p', "1"), .help = "stacks that held most at the peak"},
    {SWITCH("print-temporary", 'T', "1"), .help = "stacks with most temporary allocations"},
    {SWITCH("print-leaks", 'l', "0"), .help = "stacks of what was not freed"},
    {SWITCH("shorten-templates", 't', "1"), .help = "accepted for heaptrack; no effect"},
    {SWITCH("merge-backtraces", 'm', "1"), .help = "accepted for heaptrack; no effect"},
    {NUMBER("peak-limit", "10", 0, 1000000), .letter = 'n', .help = "number of places in a list"},
    {NUMBER("sub-peak-limit", "5", 0, 1000000), .letter = 's', .help = "stacks of each place"},
    {LETTERED("print-flamegraph", 'F', "FILE", NULL), .help = "write stacks for flamegraph.pl"},
    {CHOICE("flamegraph-cost-type", "allocations|temporary|leaked|peak", "allocations"),
     .help = "what these stacks count"},
    {LETTERED("print-massif", 'M', "FILE", NULL), .help = "write a massif.out"},
    {STRING("massif-threshold", "PERCENT", NULL), .help = "accepted for heaptrack; no effect"},
    {STRING("massif-detailed-freq", "N", NULL), .help = "accepted for heaptrack; no effect"},
    {STRING("filter-bt-function", "NAME", NULL), .help = "only stacks with this function"},
    {FLAG("disable-embedded-suppressions", 0), .help = "accepted for heaptrack; no effect"},
    {FLAG("disable-builtin-suppressions", 0), .help = "accepted for heaptrack; no effect"},
    {0},
};

static bool is_on(const struct arguments *arguments, const char *name) {
    return strcmp(argument_text(arguments, name), "1") == 0;
}

static int print(const struct arguments *arguments, const char *path) {
    struct heap_file file;
    struct heaptrack_print wanted = {.allocations = is_on(arguments, "print-allocators"),
                                     .peaks = is_on(arguments, "print-peaks"),
                                     .temporary = is_on(arguments, "print-temporary"),
                                     .leaks = is_on(arguments, "print-leaks"),
                                     .places = argument_number(arguments, "peak-limit"),
                                     .stacks = argument_number(arguments, "sub-peak-limit"),
                                     .function = argument_text(arguments, "filter-bt-function")};
    printf("reading file \"%s\" - please wait, this might take some time...\n", path);
    int status = words_recording(path, &file, NULL, NULL, 0);
    if (status == WORDS_FAILED)
        return status;
    printf("Debuggee command was: %s\nfinished reading file, now analyzing data:\n\n",
           file.info.process.command ? file.info.process.command : "<unknown command line>");
    heaptrack_print(stdout, &file, &wanted);
    heap_file_free(&file);
    return words_close(stdout, NULL) ? status : WORDS_FAILED;
}

static int export(const char *path, const char *format, const char *weight, const char *out) {
    char *words[] = {(char *)path,   "--as", (char *)format, "--by",
                     (char *)weight, "-o",   (char *)out,    NULL};
    return verb_start(&verb_export, words);
}

static int run_heaptrack_print(const struct arguments *arguments) {
    static const char *const weights[] = {"count", "temporary", "leaked", "peak"};
    const char *path = argument_text(arguments, "file");
    const char *before = argument_text(arguments, "diff");
    const char *folded = argument_text(arguments, "print-flamegraph");
    const char *massif = argument_text(arguments, "print-massif");
    if (!path && arguments->operand_count)
        path = arguments->operands[0];
    if (!path)
        return help_usage_error(arguments->verb);
    if (before)
        return verb_start(&verb_diff, (char *[]){(char *)before, (char *)path, NULL});
    int status = print(arguments, path);
    if (folded && status != WORDS_FAILED)
        status = export(path, "collapsed",
                        weights[argument_choice(arguments, "flamegraph-cost-type")], folded);
    if (massif && status != WORDS_FAILED)
        status = export(path, "massif", "peak", massif);
    return status;
}

const struct verb verb_heaptrack_print = {
    .name = "heaptrack_print",
    .usage = "[options] [-f] FILE",
    .help = "print a recording as heaptrack_print does",
    .description = "FILE is a recording of --tool=heap. quern print has more views.",
    .options = options,
    .run = run_heaptrack_print,
};
