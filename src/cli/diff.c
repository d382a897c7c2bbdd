// quern diff A B: what grew between two recordings.
#include <stdlib.h>
#include <string.h>

#include "cli/verbs.h"
#include "cli/words.h"
#include "report/heap_diff.h"

struct request {
    const char *paths[2];
    size_t path_count;
    struct heap_diff_options options;
};

static int usage(FILE *out, int status) {
    fputs("usage: quern diff [options] BEFORE AFTER\n\n"
          "Both are recordings of --tool=heap. Stacks are compared by the names of their "
          "functions.\n\n"
          "  --top=NUMBER   stacks in each list [10]\n"
          "  --by=WEIGHT    what is compared [leaked]:\n",
          out);
    for (size_t i = 0; i < heap_weight_count; i++)
        fprintf(out, "    %-11s  %s\n", heap_weights[i].name, heap_weights[i].help);
    fputs("\nStatus 2: one of them is cut off or damaged, and what they hold was compared.\n", out);
    return status;
}

static int take_top(struct request *request, const char *value) {
    char *end = NULL;
    unsigned long number = value ? strtoul(value, &end, 10) : 0;
    if (!value || *value < '0' || *value > '9' || *end || number > 1000000)
        return words_fail("--top is a number up to 1000000");
    request->options.top = number;
    return WORDS_DONE;
}

static int take_word(struct request *request, const char *word) {
    if (word[0] == '-')
        return words_fail("unknown option '%s'; quern diff --help lists them", word);
    if (request->path_count == 2)
        return words_fail("two recordings are compared; '%s' is one too many", word);
    request->paths[request->path_count++] = word;
    return WORDS_DONE;
}

static int take_words(struct request *request, char **words) {
    int status = WORDS_DONE;
    for (char **word = words; *word && !status; word++) {
        const char *value;
        if (words_value(&word, "--by", &value))
            status = words_weight(value, &request->options.weight);
        else if (words_value(&word, "--top", &value))
            status = take_top(request, value);
        else
            status = take_word(request, *word);
    }
    return status;
}

static int compare(const struct request *request) {
    struct heap_file before, after;
    int first = words_recording(request->paths[0], &before, NULL, 0);
    if (first == WORDS_FAILED)
        return WORDS_FAILED;
    int second = words_recording(request->paths[1], &after, NULL, 0);
    if (second != WORDS_FAILED) {
        heap_diff(stdout, &before, &after, &request->options);
        if (!words_close(stdout, NULL))
            second = WORDS_FAILED;
        heap_file_free(&after);
    }
    heap_file_free(&before);
    return second != WORDS_DONE ? second : first;
}

int verb_diff(char **words) {
    struct request request = {.options.top = 10};
    for (char **word = words; *word; word++)
        if (strcmp(*word, "-h") == 0 || strcmp(*word, "--help") == 0)
            return usage(stdout, WORDS_DONE);
    if (words_weight("leaked", &request.options.weight) || take_words(&request, words))
        return WORDS_FAILED;
    if (request.path_count < 2)
        return usage(stderr, WORDS_FAILED);
    return compare(&request);
}
