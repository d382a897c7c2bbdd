// callgrind_annotate and cg_annotate: their words, and their layout (report/callgrind).
#include <stdlib.h>
#include <string.h>

#include "base/option_table.h"
#include "base/vector.h"
#include "cli/arguments.h"
#include "cli/cost_words.h"
#include "cli/names/parts.h"
#include "cli/words.h"
#include "report/callgrind/annotate_listing.h"

#define COMMON_OPTIONS                                                                             \
    {STRING("show", "EVENT,...", NULL), .help = "events to show; default: all"},                   \
        {STRING("sort", "EVENT,...", NULL), .help = "events to sort by; default: all in order"},   \
        {BOOL("show-percs", "yes"), .help = "show percentages of the total"},                      \
        {BOOL("auto", "yes"), .help = "show the source lines of these functions"},                 \
        {NUMBER("context", "8", 0, 1000000), .help = "lines to show around a line with costs"}, {  \
        .name = "include", .letter = 'I', .type = OPTION_STRING, .value = "DIRECTORY",             \
        .repeats = true, .help = "search this directory for sources too"                           \
    }

static const struct option callgrind_options[] = {
    {DECIMAL("threshold", "99", 0, 100),
     .help = "show functions until they make up this percentage"},
    {BOOL("inclusive", "no"), .help = "add the costs of callees to each function"},
    {CHOICE("tree", "none|caller|calling|both", "none"),
     .help = "show the callers or callees of each function"},
    COMMON_OPTIONS,
    {0},
};
static const struct option cachegrind_options[] = {
    {DECIMAL("threshold", "0.1", 0, 20), .help = "show functions with at least this percentage"},
    {FLAG("annotate", 0), .help = "same as --auto=yes"},
    {FLAG("no-annotate", 0), .help = "same as --auto=no"},
    {FLAG("diff", 0), .help = "show the difference of two files"},
    {STRING("mod-filename", "s/OLD/NEW/", NULL), .help = "with --diff: change names of files"},
    {STRING("mod-funcname", "s/OLD/NEW/", NULL), .help = "with --diff: change names of functions"},
    COMMON_OPTIONS,
    {0},
};

static bool is_sorted_by(const struct annotate_listing *listing, unsigned event) {
    for (unsigned i = 0; i < listing->sort_count; i++)
        if (listing->sort[i] == event)
            return true;
    return false;
}

// EVENT[:PERCENTAGE],...; a percentage of its own leaves --threshold out.
static int choose_order(const struct cost_profile *profile, const char *sort, double threshold,
                        struct annotate_listing *listing) {
    bool has_own = sort && strchr(sort, ':');
    for (const char *word = sort; word && *word;) {
        size_t size = strcspn(word, ",");
        struct annotate_options one = {0};
        char *name = strndup(word, size);
        int status = cost_words_events(profile, NULL, name, &one);
        free(name);
        if (status)
            return status;
        const char *colon = memchr(word, ':', size);
        if (!is_sorted_by(listing, one.sort)) {
            listing->thresholds[listing->sort_count] = colon ? strtod(colon + 1, NULL) : 0;
            listing->sort[listing->sort_count++] = one.sort;
        }
        word += size + (word[size] == ',');
    }
    for (unsigned i = 0; !sort && i < profile->event_count; i++)
        listing->sort[listing->sort_count++] = i;
    if (!has_own)
        listing->thresholds[0] = threshold;
    return WORDS_DONE;
}

static int list(const struct arguments *arguments, struct cost_profile *profile,
                struct annotate_listing *listing, struct annotate_options *options) {
    const struct argument_values *folders = argument_items(arguments, "include");
    options->percents = argument_yes(arguments, "show-percs");
    options->sources = argument_yes(arguments, "auto") &&
                       !(listing->is_cachegrind && argument_given(arguments, "no-annotate"));
    options->context = (unsigned)argument_number(arguments, "context");
    options->directories = folders->items;
    options->directory_count = folders->count;
    listing->options = options;
    int status = cost_words_events(profile, argument_text(arguments, "show"), NULL, options);
    if (!status)
        status = choose_order(profile, argument_text(arguments, "sort"),
                              argument_decimal(arguments, "threshold"), listing);
    if (status)
        return status;
    annotate_list(stdout, profile, listing);
    return words_close(stdout, NULL) ? WORDS_DONE : WORDS_FAILED;
}

// FILE [SOURCE...]
static int run_callgrind_annotate(const struct arguments *arguments) {
    struct cost_profile *profile = costs_new();
    char *newest = arguments->operand_count ? NULL : cost_words_newest();
    const char *path = newest ? newest : arguments->operands[0];
    struct annotate_options options = {.inclusive = argument_yes(arguments, "inclusive"),
                                       .tree = argument_choice(arguments, "tree")};
    struct annotate_listing listing = {.path = path};
    if (newest)
        fprintf(stderr, "Reading data from '%s'...\n", newest);
    if (arguments->operand_count > 1) {
        listing.sources = arguments->operands + 1;
        listing.source_count = arguments->operand_count - 1;
    }
    int status = path ? cost_words_read(profile, path) : help_usage_error(arguments->verb);
    if (!status)
        status = list(arguments, profile, &listing, &options);
    costs_free(profile);
    free(newest);
    return status;
}

// The difference of the two files, as cg_diff writes it.
static int read_difference(const struct arguments *arguments, struct cost_profile *profile) {
    FILE *between = tmpfile();
    if (!between)
        return words_fail("cannot make a temporary file");
    int status = cg_diff_write(arguments, between);
    rewind(between);
    char *problem = status ? NULL : costs_read(profile, between);
    if (problem)
        status = words_fail("cannot compare the files: %s", problem);
    free(problem);
    fclose(between);
    return status;
}

// Files that add up, then sources; or two files with --diff.
static int run_cg_annotate(const struct arguments *arguments) {
    struct cost_profile *profile = costs_new();
    struct annotate_options options = {0};
    struct annotate_listing listing = {.path = arguments->operands[0], .is_cachegrind = true};
    const char **sources = NULL;
    size_t source_count = 0;
    int status = WORDS_DONE;
    bool is_difference = argument_given(arguments, "diff");
    profile->is_signed = true;
    if (is_difference)
        status = read_difference(arguments, profile);
    for (size_t i = is_difference ? 2 : 0; i < arguments->operand_count && !status; i++) {
        const char *path = arguments->operands[i];
        if (i && !cost_words_is_one(path))
            *vector_push(sources, source_count) = path;
        else
            status = cost_words_read(profile, path);
    }
    listing.sources = sources;
    listing.source_count = source_count;
    if (!status)
        status = list(arguments, profile, &listing, &options);
    free(sources);
    costs_free(profile);
    return status;
}

const struct verb verb_callgrind_annotate = {
    .name = "callgrind_annotate",
    .usage = "[options] [FILE [SOURCE...]]",
    .help = "show the costs of functions and lines, as callgrind_annotate does",
    .description = "FILE is a callgrind.out; default: the newest one here. SOURCEs are shown with "
                   "their costs. quern annotate has more views.",
    .options = callgrind_options,
    .run = run_callgrind_annotate,
};

const struct verb verb_cg_annotate = {
    .name = "cg_annotate",
    .usage = "[options] FILE... [SOURCE...]",
    .help = "show the costs of functions and lines, as cg_annotate does",
    .description = "FILE is a cachegrind.out or what cg_diff writes; several add up. SOURCEs are "
                   "shown with their costs. quern annotate has more views.",
    .options = cachegrind_options,
    .operands_least = 1,
    .run = run_cg_annotate,
};
