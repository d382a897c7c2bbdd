#include "cli/print/json.h"

#include <stdlib.h>
#include <string.h>

#include "cli/print/views.h"
#include "cli/words.h"
#include "view/answers/answers.h"

struct parameters {
    const char *metric, *invert, *function;
    char width[32], count[32];
};

static const char *parameter(void *context, const char *name) {
    const struct parameters *parameters = context;
    if (strcmp(name, "metric") == 0)
        return parameters->metric;
    if (strcmp(name, "function") == 0)
        return parameters->function;
    if (strcmp(name, "invert") == 0)
        return parameters->invert;
    if (strcmp(name, "width") == 0)
        return parameters->width;
    return strcmp(name, "count") == 0 ? parameters->count : NULL;
}

static int print_answer(const struct print_request *request, enum print_view view) {
    struct document_window window = {request->filter->from, request->filter->to};
    struct document *document = document_open(request->path, window, NULL);
    struct parameters parameters = {.metric = request->by,
                                    .invert = print_views[view].inverted ? "1" : "0",
                                    .function = request->filter->function};
    double width = request->threshold > 0 ? 100 / request->threshold : 1e9;
    snprintf(parameters.width, sizeof parameters.width, "%.0f", width < 1 ? 1 : width);
    snprintf(parameters.count, sizeof parameters.count, "%zu", request->top);
    struct ask ask = {parameter, &parameters};
    struct json json = {0};
    char *problem = document->problem ? base_copy(document->problem)
                                      : answer(document, print_views[view].question, &ask, &json);
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

// Whether the filter has more than times and, in a view about one function, that function.
static bool filters(const struct print_request *request, enum print_view view) {
    struct heap_filter filter = *request->filter;
    struct print_request rest = *request;
    if (view == VIEW_CALLS || view == VIEW_SOURCE || view == VIEW_ASSEMBLY)
        filter.function = NULL;
    rest.filter = &filter;
    return print_request_filters(&rest);
}

int print_json(const struct print_request *request) {
    enum print_view view = print_view_find(request->view, PRINT_JSON);
    if (filters(request, view))
        return words_fail("with --json, only --from and --to choose a part");
    if (view == PRINT_VIEWS)
        return print_view_refuse(request->view, PRINT_JSON);
    return print_answer(request, view);
}
