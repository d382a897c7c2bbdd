#include "cli/print_json.h"

#include <stdlib.h>
#include <string.h>

#include "cli/words.h"
#include "view/answers.h"

static const struct {
    const char *name, *question, *invert, *help;
} views[] = {
    {"summary", "overview", "0", "what the file is, its totals and metrics"},
    {"top-down", "tree", "0", "the tree of calls from main inwards"},
    {"bottom-up", "tree", "1", "the tree of callers"},
    {"functions", "functions", "0", "sums by function"},
    {"libraries", "libraries", "0", "sums by program and library"},
    {"threads", "threads", "0", "sums by thread, of a recording"},
    {"timeline", "timeline", "0", "the heap over time, of a recording or a massif.out"},
    {"sites", "sites", "0", "the same by the stacks that hold most, of a recording"},
    {"histograms", "histograms", "0", "sizes and lifetimes of blocks, of a recording"},
    {"findings", "findings", "0", "errors and leaks with their stacks, of memcheck's XML"},
    {"diagnosis", "diagnosis", "0", "what is wrong, of a recording, as quern diagnose says it"},
    {"points", "points", "0", "program points, of a dhat.out"},
    {"costs", "costs", "0", "functions with calls, of a callgrind.out"},
};
#define VIEWS (sizeof views / sizeof *views)

void print_json_help(FILE *out) {
    fputs("\n  --json: for programs, of any file that quern view shows; --view is then one of:\n",
          out);
    for (size_t i = 0; i < VIEWS; i++)
        fprintf(out, "    %-11s %s\n", views[i].name, views[i].help);
}

static void list_views(struct text *text) {
    for (size_t i = 0; i < VIEWS; i++)
        text_format(text, "%s%s", i ? "|" : "", views[i].name);
}

struct parameters {
    const char *metric, *invert;
    char width[32], count[32];
};

static const char *parameter(void *context, const char *name) {
    const struct parameters *parameters = context;
    if (strcmp(name, "metric") == 0)
        return parameters->metric;
    if (strcmp(name, "invert") == 0)
        return parameters->invert;
    if (strcmp(name, "width") == 0)
        return parameters->width;
    return strcmp(name, "count") == 0 ? parameters->count : NULL;
}

static int print_answer(const struct print_json_request *request, size_t view) {
    struct document_window window = {request->filter->from, request->filter->to};
    struct document *document = document_open(request->path, window, NULL, NULL);
    struct parameters parameters = {.metric = request->by, .invert = views[view].invert};
    double width = request->threshold > 0 ? 100 / request->threshold : 1e9;
    snprintf(parameters.width, sizeof parameters.width, "%.0f", width < 1 ? 1 : width);
    snprintf(parameters.count, sizeof parameters.count, "%zu", request->top);
    struct ask ask = {parameter, &parameters};
    struct json json = {0};
    char *problem = document->problem ? base_copy(document->problem)
                                      : answer(document, views[view].question, &ask, &json);
    int status = WORDS_DONE;
    if (problem) {
        status = words_fail("cannot print '%s': %s", request->path, problem);
    } else {
        fwrite(json.text.bytes, 1, json.text.size, stdout);
        fputc('\n', stdout);
        if (!words_close(stdout, NULL))
            status = WORDS_FAILED;
    }
    free(problem);
    text_free(&json.text);
    document_free(document);
    return status;
}

int print_json(const struct print_json_request *request) {
    const struct heap_filter *filter = request->filter;
    if (filter->size_from || filter->size_to != UINT64_MAX || filter->life_from ||
        filter->life_to != UINT64_MAX || filter->function || filter->library)
        return words_fail("with --json, only --from and --to choose a part");
    for (size_t i = 0; i < VIEWS; i++)
        if (strcmp(views[i].name, request->view ? request->view : "summary") == 0)
            return print_answer(request, i);
    return words_refuse("view", request->view, list_views);
}
