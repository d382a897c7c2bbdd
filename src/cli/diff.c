// quern diff A B: what grew between two recordings, or between two moments of one.
#include <stdlib.h>
#include <string.h>

#include "cli/cost_words.h"
#include "cli/verbs.h"
#include "cli/words.h"
#include "report/heap/diff.h"

enum { STATUS_GROWN = 3 };

struct request {
    const char *paths[2];
    size_t path_count;
    struct heap_diff_options options;
    struct heap_filter before, after; // `to` is the moment
    bool has_moments;
    const char *event; // of costs
    double fail_above; // percent; less than 0: never
};

static int usage(FILE *out, int status) {
    fputs("usage: quern diff [options] BEFORE AFTER\n"
          "       quern diff [options] --between=SECONDS-SECONDS FILE\n\n"
          "Two recordings, or two moments of one, are compared: recordings of --tool=heap. Stacks "
          "are compared by the names of their "
          "functions. Or two callgrind.out or cachegrind.out files, whose functions are "
          "compared.\n\n"
          "  --top=NUMBER   stacks in each list [10]\n"
          "  --by=WEIGHT    what is compared [leaked]:\n",
          out);
    for (size_t i = 0; i < heap_weight_count; i++)
        fprintf(out, "    %-11s  %s\n", heap_weights[i].name, heap_weights[i].help);
    fputs("  --by=EVENT     the event that decides, of costs [the first]\n", out);
    fputs("  --fail-above=PERCENT  status 3 if the whole has grown by more\n", out);
    fputs("\nStatus 2: one of them is cut off or damaged, and what they hold was compared.\n", out);
    return status;
}

// Two moments: everything up to the first beside everything up to the second.
static int take_moments(struct request *request, const char *value) {
    char *middle, *end = NULL;
    double first = value ? strtod(value, &middle) : -1;
    double second = value && middle > value && *middle == '-' ? strtod(middle + 1, &end) : -1;
    if (!(first >= 0 && second > first && second < 1e9) || end == middle + 1 || *end)
        return words_fail("--between is two moments in seconds, the earlier one first: 1.5-20");
    request->before.to = (uint64_t)(first * 1e9) + 1;
    request->after.to = (uint64_t)(second * 1e9) + 1;
    request->has_moments = true;
    return WORDS_DONE;
}

static int take_limit(struct request *request, const char *value) {
    char *end = NULL;
    request->fail_above = value ? strtod(value, &end) : -1;
    if (!value || end == value || (*end && strcmp(end, "%") != 0) || !(request->fail_above >= 0))
        return words_fail("--fail-above is a share in percent: 5%%");
    return WORDS_DONE;
}

// The status of a comparison of which the whole has changed like this.
static int judge(const struct request *request, uint64_t before, uint64_t after) {
    if (request->fail_above < 0 ||
        (double)after <= (double)before * (1 + request->fail_above / 100))
        return WORDS_DONE;
    fprintf(stderr, "quern: grown by more than %g %%\n", request->fail_above);
    return STATUS_GROWN;
}

static int take_word(struct request *request, const char *word) {
    if (word[0] == '-')
        return words_fail("unknown option '%s'; quern diff --help lists them", word);
    if (request->path_count == 2)
        return words_fail("two recordings are compared; '%s' is one too many", word);
    request->paths[request->path_count++] = word;
    return WORDS_DONE;
}

static int take_by(struct request *request, const char *value) {
    request->event = value;
    return value ? WORDS_DONE : words_weight(NULL, &request->options.weight);
}

static int take_words(struct request *request, char **words) {
    int status = WORDS_DONE;
    for (char **word = words; *word && !status; word++) {
        const char *value;
        if (words_value(&word, "--by", &value))
            status = take_by(request, value);
        else if (words_value(&word, "--top", &value))
            status = words_whole("--top", value, 0, 1000000, &request->options.top);
        else if (words_value(&word, "--fail-above", &value))
            status = take_limit(request, value);
        else if (words_value(&word, "--between", &value))
            status = take_moments(request, value);
        else
            status = take_word(request, *word);
    }
    return status;
}

static int compare(const struct request *request) {
    struct heap_file before, after;
    const struct heap_filter *filter = request->has_moments ? &request->before : NULL;
    int first = words_recording(request->paths[0], &before, filter, NULL, 0);
    if (first == WORDS_FAILED)
        return WORDS_FAILED;
    filter = request->has_moments ? &request->after : NULL;
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
        status = words_fail("the two have no event in common");
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

int verb_diff(char **words) {
    struct request request = {
        .options.top = 10, .fail_above = -1, .before = HEAP_FILTER_ALL, .after = HEAP_FILTER_ALL};
    if (words_ask_help(words))
        return usage(stdout, WORDS_DONE);
    if (take_words(&request, words))
        return WORDS_FAILED;
    bool costs = request.path_count == 2 && cost_words_is_one(request.paths[0]);
    if (!costs && words_weight(request.event ? request.event : "leaked", &request.options.weight))
        return WORDS_FAILED;
    if (request.has_moments && request.path_count == 1)
        request.paths[request.path_count++] = request.paths[0];
    else if (request.has_moments)
        return words_fail("--between compares two moments of one recording");
    if (request.path_count < 2)
        return usage(stderr, WORDS_FAILED);
    if (costs)
        return compare_costs(&request);
    return compare(&request);
}
