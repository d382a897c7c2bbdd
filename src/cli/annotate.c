// quern annotate FILE...: costs of functions and lines from callgrind.out and cachegrind.out files.
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/arguments.h"
#include "cli/cost_words.h"
#include "cli/verbs.h"
#include "cli/words.h"
#include "report/callgrind/annotate.h"

struct request {
    const char *const *paths;
    size_t path_count;
    const char *show, *sort;
    const char *out;
    struct annotate_options options;
};

static int annotate_all(struct request *request) {
    struct cost_profile *profile = costs_new();
    struct annotate_options *options = &request->options;
    int status = WORDS_DONE;
    for (size_t i = 0; i < request->path_count && !status; i++)
        status = cost_words_read(profile, request->paths[i]);
    if (!status)
        status = cost_words_events(profile, request->show, request->sort, options);
    if (!status && options->assembly && !profile->instruction_count)
        status = words_fail("'%s' has no costs of instructions; record it with --dump-instr=yes",
                            request->paths[0]);
    if (!status) {
        FILE *out = words_output(request->out, request->paths[0]);
        if (out)
            annotate(out, profile, options);
        if (!out || !words_close(out, request->out))
            status = WORDS_FAILED;
    }
    costs_free(profile);
    return status;
}

static int run_annotate(const struct arguments *arguments) {
    const struct argument_values *directories = argument_items(arguments, "I");
    struct request request = {
        .paths = arguments->operands,
        .path_count = arguments->operand_count,
        .show = argument_text(arguments, "show"),
        .sort = argument_text(arguments, "sort"),
        .out = argument_text(arguments, "o"),
        .options = {.inclusive = argument_yes(arguments, "inclusive"),
                    .tree = argument_choice(arguments, "tree"),
                    .threshold = argument_decimal(arguments, "threshold"),
                    .percents = argument_yes(arguments, "show-percs"),
                    .sources = argument_yes(arguments, "auto"),
                    .assembly = argument_yes(arguments, "asm"),
                    .context = (unsigned)argument_number(arguments, "context"),
                    .directories = directories->items,
                    .directory_count = directories->count},
    };
    if (request.path_count)
        return annotate_all(&request);
    char *newest = cost_words_newest();
    if (!newest)
        return help_usage_error(&verb_annotate);
    fprintf(stderr, "quern: the newest file here is '%s'\n", newest);
    request.paths = (const char *const[]){newest};
    request.path_count = 1;
    int status = annotate_all(&request);
    free(newest);
    return status;
}

static const struct option options[] = {
    {.name = "inclusive",
     .type = OPTION_BOOL,
     .choices = "no|yes",
     .initial = "no",
     .help = "add the costs of callees to each function"},
    {.name = "tree",
     .type = OPTION_CHOICE,
     .choices = "none|caller|calling|both", // the order of enum annotate_tree
     .initial = "none",
     .help = "show the callers or callees of each function"},
    {.name = "sort",
     .type = OPTION_STRING,
     .value = "EVENT",
     .help = "event to sort by; default: the first"},
    {.name = "show",
     .type = OPTION_STRING,
     .value = "EVENT,...",
     .help = "events to show; default: all"},
    {.name = "threshold",
     .type = OPTION_DECIMAL,
     .value = "PERCENT",
     .most = 100,
     .initial = "99",
     .help = "show the functions that make up this share of the cost"},
    {.name = "show-percs",
     .type = OPTION_BOOL,
     .choices = "no|yes",
     .initial = "yes",
     .help = "show percentages of the total"},
    {.name = "auto",
     .type = OPTION_BOOL,
     .choices = "no|yes",
     .initial = "no",
     .help = "show the source lines of these functions"},
    {.name = "asm",
     .type = OPTION_BOOL,
     .choices = "no|yes",
     .initial = "no",
     .help = "show their instructions, calls and jumps; needs --dump-instr=yes"},
    {.name = "context",
     .type = OPTION_NUMBER,
     .most = 1000000,
     .initial = "8",
     .help = "lines to show around a line with costs"},
    {.name = "I",
     .letter = 'I',
     .type = OPTION_STRING,
     .value = "DIRECTORY",
     .repeats = true,
     .help = "search this directory for sources too"},
    {.name = "o",
     .letter = 'o',
     .type = OPTION_STRING,
     .value = "OUT",
     .help = "write to this file; default: standard output"},
    {0},
};

const struct verb verb_annotate = {
    .name = "annotate",
    .usage = "[options] [FILE...]",
    .help = "show the costs of functions and lines in a callgrind.out or cachegrind.out",
    .description = "FILE is a callgrind.out or cachegrind.out of Quern or Valgrind. The costs of "
                   "several files are added. Without a FILE, the newest callgrind.out.* or "
                   "cachegrind.out.* in this directory is used.",
    .options = options,
    .run = run_annotate,
};
