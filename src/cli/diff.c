// quern diff BEFORE AFTER: what grew between two recordings, or between two times of one.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/arguments.h"
#include "cli/cost_words.h"
#include "cli/store_words.h"
#include "cli/verbs.h"
#include "cli/words.h"
#include "report/heap/diff.h"

enum { STATUS_GROWN = 3 };

struct request {
    const char *paths[2];
    size_t path_count;
    struct heap_diff_options options;
    struct heap_filter before, after; // `to` is the time
    bool has_times;
    const char *event; // of costs
    double fail_above; // percent; less than 0: never
};

// Two times: everything up to the first is compared with everything up to the second.
static int take_times(const struct arguments *arguments, struct request *request) {
    const char *value = argument_text(arguments, "between");
    if (!value)
        return WORDS_DONE;
    char *middle, *end = NULL;
    double first = strtod(value, &middle);
    double second = middle > value && *middle == '-' ? strtod(middle + 1, &end) : -1;
    if (!(first >= 0 && second > first && second < 1e9) || end == middle + 1 || *end)
        return argument_refuse(arguments, "between",
                               "give two times in seconds, the earlier one first, such as 1.5-20");
    request->before.to = (uint64_t)(first * 1e9) + 1;
    request->after.to = (uint64_t)(second * 1e9) + 1;
    request->has_times = true;
    return WORDS_DONE;
}

static int take_limit(const struct arguments *arguments, struct request *request) {
    const char *value = argument_text(arguments, "fail-above");
    if (!value)
        return WORDS_DONE;
    char *end = NULL;
    request->fail_above = strtod(value, &end);
    if (end == value || (*end && strcmp(end, "%") != 0) || !(request->fail_above >= 0))
        return argument_refuse(arguments, "fail-above", "give a percentage such as 5%");
    return WORDS_DONE;
}

// The status of a comparison with these totals.
static int judge(const struct request *request, uint64_t before, uint64_t after) {
    if (request->fail_above < 0 ||
        (double)after <= (double)before * (1 + request->fail_above / 100))
        return WORDS_DONE;
    fprintf(stderr, "quern: the total has grown by more than %g %%\n", request->fail_above);
    return STATUS_GROWN;
}

static int compare(const struct request *request) {
    struct heap_file before, after;
    const struct heap_filter *filter = request->has_times ? &request->before : NULL;
    int first = words_recording(request->paths[0], &before, filter, NULL, 0);
    if (first == WORDS_FAILED)
        return WORDS_FAILED;
    filter = request->has_times ? &request->after : NULL;
    int second = words_recording(request->paths[1], &after, filter, NULL, 0);
    if (second != WORDS_FAILED) {
        heap_diff(stdout, &before, &after, &request->options);
        if (!words_close(stdout, NULL))
            second = WORDS_FAILED;
        if (!second)
            second = judge(request, heap_weight_of(request->options.weight, &before.summary.total),
                           heap_weight_of(request->options.weight, &after.summary.total));
        heap_file_free(&after);
    }
    heap_file_free(&before);
    return second != WORDS_DONE ? second : first;
}

static int compare_costs(const struct request *request) {
    struct cost_profile *before = costs_new(), *after = costs_new();
    struct annotate_options options = {0};
    int status = cost_words_read(before, request->paths[0]);
    if (!status)
        status = cost_words_read(after, request->paths[1]);
    if (!status)
        status = cost_words_events(before, NULL, request->event, &options);
    unsigned kept = 0;
    for (unsigned i = 0; i < options.show_count; i++)
        if (costs_event(after, before->events[options.show[i]]) >= 0)
            options.show[kept++] = options.show[i];
    options.show_count = kept;
    if (!status && !kept)
        status = words_fail("the two files have no event in common");
    if (!status) {
        annotate_diff(stdout, before, after, &options, request->options.top);
        unsigned event = options.show[0];
        int other = costs_event(after, before->events[event]);
        status = words_close(stdout, NULL)
                     ? judge(request, before->totals[event], after->totals[other])
                     : WORDS_FAILED;
    }
    costs_free(before);
    costs_free(after);
    return status;
}

static int take_paths(const struct arguments *arguments, struct request *request) {
    size_t count = arguments->operand_count;
    if (count > 2)
        return words_fail("two files are compared; '%s' is one too many", arguments->operands[2]);
    if (request->has_times && count == 2)
        return words_fail("--between compares two times of one recording");
    if (!request->has_times && count < 2)
        return help_usage_error(&verb_diff);
    request->paths[0] = arguments->operands[0];
    request->paths[1] = arguments->operands[count - 1];
    return WORDS_DONE;
}

static int take_moment(const struct arguments *arguments, const char *name,
                       struct store_words *words) {
    const char *value = argument_text(arguments, name);
    time_t moment;
    char seconds[32];
    if (!store_words_moment(value ? value : "now", time(NULL), &moment))
        return argument_refuse(arguments, name,
                               "give a day (Tuesday, yesterday, 2026-11-17), a time "
                               "('2026-11-17 09:30') or how long ago (-2h)");
    snprintf(seconds, sizeof seconds, "%lld", (long long)moment);
    store_words_add(words, name, seconds);
    return WORDS_DONE;
}

static int ask_store(const struct arguments *arguments) {
    struct store_words words = {0};
    if (arguments->operand_count)
        return words_fail("with --store there are no files: --before and --after are times");
    if (!argument_given(arguments, "before"))
        return words_fail(
            "--store compares two times: give --before, and --after unless it is now");
    if (take_moment(arguments, "before", &words) || take_moment(arguments, "after", &words))
        return WORDS_FAILED;
    store_words_option(&words, arguments, "store", "store");
    store_words_option(&words, arguments, "credentials", "credentials");
    store_words_option(&words, arguments, "service", "service");
    store_words_option(&words, arguments, "top", "top");
    return store_words_run(&words, "diff");
}

static int run_diff(const struct arguments *arguments) {
    if (argument_given(arguments, "store"))
        return ask_store(arguments);
    if (!arguments->operand_count)
        return help_usage_error(&verb_diff);
    struct request request = {
        .options.top = argument_number(arguments, "top"),
        .event = argument_text(arguments, "by"),
        .fail_above = -1,
        .before = HEAP_FILTER_ALL,
        .after = HEAP_FILTER_ALL,
    };
    if (take_times(arguments, &request) || take_limit(arguments, &request) ||
        take_paths(arguments, &request))
        return WORDS_FAILED;
    if (!request.has_times && cost_words_is_one(request.paths[0]))
        return compare_costs(&request);
    if (words_weight(request.event ? request.event : "leaked", &request.options.weight))
        return WORDS_FAILED;
    // A peak that fell is a change, though nothing is left in the end before and after.
    if (!request.event && words_weight("peak", &request.options.other))
        return WORDS_FAILED;
    return compare(&request);
}

static const struct option options[] = {
    {.name = "between",
     .type = OPTION_STRING,
     .value = "SECONDS-SECONDS",
     .help = "compare two times of one recording"},
    {.name = "top",
     .type = OPTION_NUMBER,
     .most = 1000000,
     .initial = "10",
     .help = "number of stacks or functions in each list"},
    {.name = "fail-above",
     .type = OPTION_STRING,
     .value = "PERCENT",
     .help = "exit with status 3 if the total has grown by more"},
    {.name = "by",
     .type = OPTION_STRING,
     .value = "WEIGHT",
     .offers = words_offer_weights,
     .help = "what to compare; default: leaked, with the peak; for costs the first event"},
    {.name = "store",
     .type = OPTION_STRING,
     .value = "URL",
     .help = "compare what all processes in a store held at two times"},
    {.name = "before",
     .type = OPTION_STRING,
     .value = "TIME",
     .help = "the earlier time: Tuesday, yesterday, 2026-11-17, '2026-11-17 09:30', -2h"},
    {.name = "after",
     .type = OPTION_STRING,
     .value = "TIME",
     .help = "the later time; default: now"},
    {.name = "service",
     .type = OPTION_STRING,
     .value = "NAME",
     .help = "only processes of this service"},
    STORE_WORDS_CREDENTIALS,
    {0},
};

const struct verb verb_diff = {
    .name = "diff",
    .usage = "[options] BEFORE AFTER",
    .usage_other = "[options] --between=SECONDS-SECONDS FILE",
    .help = "compare two recordings, or two callgrind.out or cachegrind.out files",
    .description =
        "Compares two recordings of --tool=heap, or two times of one recording, by the "
        "functions on each stack. Compares two callgrind.out or cachegrind.out files by "
        "function; WEIGHT is then an event.\n"
        "Status 2: a file is cut off, damaged or still being written; the rest was compared.",
    .options = options,
    .usage_third = "--store=URL --before=TIME [--after=TIME] [--service=NAME]",
    .run = run_diff,
};
