#include "view/answers/answers.h"

#include <stdlib.h>
#include <string.h>

// How a question uses the document.
enum use {
    LOCKED,     // all of it; others wait
    READ_AGAIN, // the same after a second reading of a recording, for which nobody waits
    FREE,       // nothing that needs the lock
};

static const struct {
    const char *name;
    char *(*give)(struct document *, const struct ask *, struct json *);
    enum use use;
} questions[] = {
    {"overview", answer_overview, LOCKED},   {"tree", answer_tree, LOCKED},
    {"children", answer_children, LOCKED},   {"match", answer_match, LOCKED},
    {"functions", answer_functions, LOCKED}, {"libraries", answer_libraries, LOCKED},
    {"threads", answer_threads, READ_AGAIN}, {"timeline", answer_timeline, LOCKED},
    {"sites", answer_sites, READ_AGAIN},     {"histograms", answer_histograms, READ_AGAIN},
    {"findings", answer_findings, LOCKED},   {"costs", answer_costs, LOCKED},
    {"calls", answer_calls, LOCKED},         {"source", answer_source, LOCKED},
    {"places", answer_places, LOCKED},       {"place", answer_place, LOCKED},
    {"points", answer_points, LOCKED},       {"assembly", answer_assembly, LOCKED},
    {"groups", answer_groups, LOCKED},       {"reach", answer_reach, LOCKED},
    {"query", answer_query, FREE},           {"diagnosis", answer_diagnosis, FREE},
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
        if (questions[i].use == READ_AGAIN && document->format == &document_recording)
            document_details(document);
        if (questions[i].use != FREE)
            pthread_mutex_lock(&document->lock);
        char *problem = questions[i].give(document, ask, json);
        if (questions[i].use != FREE)
            pthread_mutex_unlock(&document->lock);
        return problem;
    }
    return base_copy("there is no such question");
}

char *answer_choose_metric(struct document *document, const struct ask *ask, unsigned *metric) {
    int chosen = document_metric(document, ask_value(ask, "metric"));
    *metric = chosen < 0 ? 0 : (unsigned)chosen;
    return chosen < 0 ? base_copy("the file has no such metric") : NULL;
}

unsigned answer_shape(const struct ask *ask) {
    return (ask_flag(ask, "invert") ? CALLTREE_INVERTED : 0) |
           (ask_flag(ask, "merge") ? CALLTREE_MERGED : 0);
}

char *answer_choose(struct document *document, const struct ask *ask, unsigned *metric,
                    const struct calltree **tree) {
    char *problem = answer_choose_metric(document, ask, metric);
    if (problem)
        return problem;
    *tree = document_tree(document, *metric, answer_shape(ask));
    return *tree ? NULL : base_copy("the file has no stacks");
}

// ---- overview ----

static void add_views(const struct document *document, struct json *json) {
    const char *const *views = document->format->views;
    json_open_at(json, "views", '[');
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
    // A formula is among the metrics from then on.
    if (ask_value(ask, "metric"))
        document_metric(document, ask_value(ask, "metric"));
    json_open(json, '{');
    json_string_at(json, "name", document_name(document));
    json_string_at(json, "kind", document->format ? document->format->name : NULL);
    json_string_at(json, "problem", document->problem);
    json_string_at(json, "notice", document->notice);
    json_string_at(json, "command", document->command);
    if (!document->problem) {
        json_open_at(json, "metrics", '[');
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
        json_open_at(json, "facts", '[');
        document->format->facts(document, &(struct document_sink){add_fact, json});
        json_close(json, ']');
    }
    json_close(json, '}');
    return NULL;
}
