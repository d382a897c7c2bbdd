#include "view/answers/answers.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    char *(*give)(struct document *, const struct ask *, struct json *);
} questions[] = {
    {"overview", answer_overview},   {"tree", answer_tree},
    {"children", answer_children},   {"match", answer_match},
    {"functions", answer_functions}, {"libraries", answer_libraries},
    {"threads", answer_threads},     {"timeline", answer_timeline},
    {"sites", answer_sites},         {"histograms", answer_histograms},
    {"findings", answer_findings},   {"costs", answer_costs},
    {"calls", answer_calls},         {"source", answer_source},
    {"query", answer_query},         {"points", answer_points},
    {"diagnosis", answer_diagnosis}, {"assembly", answer_assembly},
};

const char *ask_value(const struct ask *ask, const char *name) {
    return ask && ask->value ? ask->value(ask->context, name) : NULL;
}

uint64_t ask_number(const struct ask *ask, const char *name, uint64_t initial, uint64_t most) {
    const char *text = ask_value(ask, name);
    if (!text || *text < '0' || *text > '9')
        return initial;
    char *end;
    unsigned long long number = strtoull(text, &end, 10);
    return *end ? initial : number > most ? most : number;
}

bool ask_flag(const struct ask *ask, const char *name) {
    const char *text = ask_value(ask, name);
    return text && strcmp(text, "1") == 0;
}

char *answer(struct document *document, const char *question, const struct ask *ask,
             struct json *json) {
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        if (strcmp(questions[i].name, question) != 0)
            continue;
        if (document->problem && questions[i].give != answer_overview)
            return base_copy(document->problem);
        return questions[i].give(document, ask, json);
    }
    return base_copy("there is no such question");
}

char *answer_choose_metric(const struct document *document, const struct ask *ask,
                           unsigned *metric) {
    int chosen = document_metric(document, ask_value(ask, "metric"));
    *metric = chosen < 0 ? 0 : (unsigned)chosen;
    return chosen < 0 ? base_copy("the file has no such metric") : NULL;
}

char *answer_choose(struct document *document, const struct ask *ask, unsigned *metric,
                    const struct calltree **tree) {
    char *problem = answer_choose_metric(document, ask, metric);
    if (problem)
        return problem;
    unsigned shape = (ask_flag(ask, "invert") ? CALLTREE_INVERTED : 0) |
                     (ask_flag(ask, "merge") ? CALLTREE_MERGED : 0);
    *tree = document_tree(document, *metric, shape);
    return *tree ? NULL : base_copy("the file has no stacks");
}

// ---- overview ----

static void add_views(const struct document *document, struct json *json) {
    const char *const *views = document->format->views;
    json_name(json, "views");
    json_open(json, '[');
    if (document->format->tree && document->metric_count) {
        json_string(json, "flame");
        json_string(json, "map");
        json_string(json, "tree");
        json_string(json, "functions");
        if (!document->format->tells_libraries || document->format->tells_libraries(document))
            json_string(json, "libraries");
    }
    for (; views && *views; views++)
        json_string(json, *views);
    if (document->costs && document->costs->instruction_count)
        json_string(json, "assembly");
    json_close(json, ']');
}

static void add_fact(void *context, const struct document_fact *fact) {
    struct json *json = context;
    json_open(json, '{');
    json_string_at(json, "label", fact->label);
    if (fact->text)
        json_string_at(json, "value", fact->text);
    else
        json_number_at(json, "value", fact->value);
    json_string_at(json, "unit", fact->unit);
    json_close(json, '}');
}

char *answer_overview(struct document *document, const struct ask *ask, struct json *json) {
    json_open(json, '{');
    json_string_at(json, "name", document_name(document));
    json_string_at(json, "kind", document->format ? document->format->name : NULL);
    json_string_at(json, "problem", document->problem);
    json_string_at(json, "notice", document->notice);
    json_string_at(json, "command", document->command);
    if (!document->problem) {
        json_name(json, "metrics");
        json_open(json, '[');
        for (unsigned i = 0; i < document->metric_count; i++) {
            const struct document_metric *metric = &document->metrics[i];
            json_open(json, '{');
            json_string_at(json, "name", metric->name);
            json_string_at(json, "help", metric->help);
            json_string_at(json, "unit", metric->unit);
            json_number_at(json, "total", metric->total);
            json_close(json, '}');
        }
        json_close(json, ']');
        add_views(document, json);
        json_name(json, "facts");
        json_open(json, '[');
        document->format->facts(document, &(struct document_sink){add_fact, json});
        json_close(json, ']');
    }
    json_close(json, '}');
    return NULL;
}
