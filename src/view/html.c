#include "view/html.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "profile/heap/timeline.h"
#include "view/answers/answers.h"
#include "view/page.h"

#define HEAD                                                                                       \
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"                      \
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"                   \
    "<title>Quern</title>\n"

#define BODY                                                                                       \
    "<body>\n<div id=\"app\"></div>\n<noscript>This page needs JavaScript; quern print shows the " \
    "same in a terminal.</noscript>\n"

const char html_served[] =
    HEAD "<link rel=\"stylesheet\" href=\"page.css\">\n"
         "<link rel=\"icon\" href=\"data:,\">\n"
         "<script src=\"page.js\" defer></script>\n</head>\n" BODY "</body>\n</html>\n";

#define CALLS        150 // functions whose callers and callees are in the file
#define SOURCES      40  // functions with most of their own whose source and code are in the file
#define TREE_NODES   "6000"
#define WINDOW_NODES "800"

// ---- the questions ----

// The questions whose answers are in the file. The page learns this table from the file (add_keys),
// so it asks for answers by the keys under which they are written here.
static const struct kept {
    const char *question;
    const char *keys[5]; // parameters that distinguish its answers, NULL-terminated
    bool in_windows;     // there are answers about a part of the run too
} kept[] = {
    {"overview", {NULL}, true},
    {"timeline", {NULL}, false},
    {"sites", {NULL}, false},
    {"histograms", {NULL}, true},
    {"threads", {NULL}, true},
    {"findings", {NULL}, false},
    {"diagnosis", {NULL}, false},
    {"points", {NULL}, false},
    {"places", {"by", "innermost"}, true},
    {"tree", {"invert", "merge", "metric"}, true},
    {"functions", {"metric"}, true},
    {"libraries", {"metric"}, true},
    {"costs", {"metric"}, false},
    {"calls", {"function", "metric"}, false},
    {"source", {"metric", "path"}, false},
    {"assembly", {"function", "metric"}, false},
    {"diff", {"after", "file", "invert", "metric"}, false},
};
static const size_t kept_count = sizeof kept / sizeof *kept;

struct parameters {
    const char *names[6], *values[6];
    size_t count;
};

static const char *parameter(void *context, const char *name) {
    const struct parameters *parameters = context;
    for (size_t i = 0; i < parameters->count; i++)
        if (strcmp(parameters->names[i], name) == 0)
            return parameters->values[i];
    return NULL;
}

// The key of an answer: "functions?metric=Ir".
static void add_key(struct text *key, const char *question, struct parameters *parameters) {
    const struct kept *one = kept;
    while (strcmp(one->question, question) != 0)
        one++;
    text_string(key, question);
    for (size_t i = 0; one->keys[i]; i++)
        text_format(key, "%c%s=%s", i ? '&' : '?', one->keys[i],
                    parameter(parameters, one->keys[i]));
}

// Adds the answer under its key, unless there was a problem. Frees both.
static void add_answer(char *problem, const char *question, struct parameters *parameters,
                       struct json *own, struct json *json) {
    if (!problem) {
        struct text key = {0};
        add_key(&key, question, parameters);
        json_name(json, key.bytes);
        json_raw(json, own->text.bytes);
        text_free(&key);
    }
    text_free(&own->text);
    free(problem);
}

static void add(struct document *document, const char *question, struct parameters *parameters,
                struct json *json) {
    struct json own = {0};
    struct ask ask = {parameter, parameters};
    add_answer(answer(document, question, &ask, &own), question, parameters, &own, json);
}

static void add_trees(struct document *document, const char *metric, const char *nodes,
                      struct json *json) {
    for (int shape = 0; shape < 4; shape++) {
        const char *invert = shape & 1 ? "1" : "0", *merge = shape & 2 ? "1" : "0";
        add(document, "tree",
            &(struct parameters){{"metric", "invert", "merge", "width", "nodes"},
                                 {metric, invert, merge, "1500", nodes},
                                 5},
            json);
    }
}

static void add_tables(struct document *document, const char *metric, const char *count,
                       struct json *json) {
    struct parameters parameters = {{"metric", "count"}, {metric, count}, 2};
    add(document, "functions", &parameters, json);
    add(document, "libraries", &parameters, json);
}

static void add_places(struct document *document, const char *count, struct json *json) {
    static const char *const by[] = {"line", "function", "file", "library"};
    for (size_t i = 0; i < 8 && document_has_view(document, "places"); i++)
        add(document, "places",
            &(struct parameters){
                {"by", "innermost", "count"}, {by[i / 2], i % 2 ? "1" : "0", count}, 3},
            json);
}

// `path` is a part of the key of source; other questions ignore it.
static void add_of_function(struct document *document, const char *question, const char *metric,
                            uint32_t function, struct json *json) {
    char number[16];
    snprintf(number, sizeof number, "%u", function);
    bool is_cycle = function >= document->costs->function_count;
    const char *path = is_cycle ? "" : document->costs->functions[function].file;
    add(document, question,
        &(struct parameters){{"metric", "function", "path"}, {metric, number, path}, 3}, json);
}

// Source is kept by file, once for each.
static void add_source(struct document *document, const char *metric, const uint32_t *functions,
                       size_t at, struct json *json) {
    const struct cost_function *known = document->costs->functions;
    for (size_t i = 0; i < at; i++)
        if (known[functions[i]].file == known[functions[at]].file)
            return;
    add_of_function(document, "source", metric, functions[at], json);
}

// The functions that cost most: callers and callees, source and machine code.
static void add_costs(struct document *document, const char *metric, struct json *json) {
    add(document, "costs", &(struct parameters){{"metric", "count"}, {metric, "2000"}, 2}, json);
    uint32_t heaviest[CALLS];
    size_t count = answer_heaviest(document, metric, false, heaviest, CALLS);
    for (size_t i = 0; document->costs->has_calls && i < count; i++)
        add_of_function(document, "calls", metric, heaviest[i], json);
    count = answer_heaviest(document, metric, true, heaviest, SOURCES);
    for (size_t i = 0; i < count; i++) {
        add_source(document, metric, heaviest, i, json);
        add_of_function(document, "assembly", metric, heaviest[i], json);
    }
}

// The questions without parameters.
static void add_plain(struct document *document, bool is_window, struct json *json) {
    for (size_t i = 0; i < kept_count; i++)
        if (!kept[i].keys[0] && (kept[i].in_windows || !is_window))
            add(document, kept[i].question, &(struct parameters){.count = 0}, json);
}

static void add_answers(struct document *document, struct json *json) {
    add_plain(document, false, json);
    add_places(document, "2000", json);
    for (unsigned i = 0; i < document->metric_count; i++) {
        add_trees(document, document->metrics[i].name, TREE_NODES, json);
        add_tables(document, document->metrics[i].name, "3000", json);
        if (document->costs)
            add_costs(document, document->metrics[i].name, json);
    }
}

// {question: {keys: [name], in_windows}}
static void add_keys(struct json *json) {
    json_open(json, '{');
    for (size_t i = 0; i < kept_count; i++) {
        json_open_at(json, kept[i].question, '{');
        json_open_at(json, "keys", '[');
        for (size_t j = 0; kept[i].keys[j]; j++)
            json_string(json, kept[i].keys[j]);
        json_close(json, ']');
        json_name(json, "in_windows");
        json_raw(json, kept[i].in_windows ? "true" : "false");
        json_close(json, '}');
    }
    json_close(json, '}');
}

// ---- parts of a run ----

static void add_window(const struct document *whole, uint64_t from, uint64_t to,
                       struct json *json) {
    struct document_window window = {from, to};
    struct document *part = document_open(whole->path, window, NULL);
    json_open(json, '{');
    json_number_at(json, "from", from);
    json_number_at(json, "to", to);
    json_open_at(json, "answers", '{');
    add_plain(part, true, json);
    add_places(part, "300", json);
    for (unsigned i = 0; i < part->metric_count; i++) {
        add_trees(part, part->metrics[i].name, WINDOW_NODES, json);
        add_tables(part, part->metrics[i].name, "300", json);
    }
    json_close(json, '}');
    json_close(json, '}');
    document_free(part);
}

static bool is_small(const struct document *document) {
    struct stat status;
    return stat(document->path, &status) == 0 && (uint64_t)status.st_size <= HTML_WINDOWS_SIZE;
}

// A page about a part of a run has no further parts.
static void add_windows(const struct document *document, struct json *json) {
    bool is_whole = !document->window.from && document->window.to == UINT64_MAX;
    json_open_at(json, "windows", '[');
    if (is_whole && document->format == &document_recording && is_small(document)) {
        uint64_t end = document->timeline->end;
        for (uint64_t i = 0; i < HTML_WINDOWS && end >= HTML_WINDOWS; i++)
            add_window(document, end / HTML_WINDOWS * i,
                       i + 1 == HTML_WINDOWS ? end + 1 : end / HTML_WINDOWS * (i + 1), json);
    }
    for (size_t i = 0; is_whole && i < document->massif.snapshot_count; i++)
        if (document->massif.snapshots[i].kind != MASSIF_FILE_EMPTY)
            add_window(document, document->massif.snapshots[i].time,
                       document->massif.snapshots[i].time + 1, json);
    json_close(json, ']');
}

// ---- each with each other ----

static void add_diff(struct document **documents, size_t before, size_t after, const char *metric,
                     const char *invert, struct json *json) {
    char numbers[2][24];
    snprintf(numbers[0], sizeof numbers[0], "%zu", before);
    snprintf(numbers[1], sizeof numbers[1], "%zu", after);
    struct parameters parameters = {{"metric", "invert", "nodes", "count", "file", "after"},
                                    {metric, invert, "1500", "300", numbers[0], numbers[1]},
                                    6};
    struct json own = {0};
    struct ask ask = {parameter, &parameters};
    char *problem = answer_diff(documents[before], documents[after], &ask, &own);
    add_answer(problem, "diff", &parameters, &own, json);
}

static void add_diffs(struct document **documents, size_t count, struct json *json) {
    for (size_t i = 0; i < count * count; i++) {
        size_t before = i / count, after = i % count;
        for (unsigned m = 0; before != after && m < 2 * documents[before]->metric_count; m++)
            add_diff(documents, before, after, documents[before]->metrics[m / 2].name,
                     m & 1 ? "1" : "0", json);
    }
}

// ---- the file ----

static void write_file(FILE *out, const struct page_file *file) {
    fwrite(file->bytes, 1, file->size, out);
}

// {questions, files: [{answers, windows}], diffs}
static void add_everything(struct document **documents, size_t count, struct json *json) {
    json_open(json, '{');
    json_name(json, "questions");
    add_keys(json);
    json_open_at(json, "files", '[');
    for (size_t i = 0; i < count; i++) {
        json_open(json, '{');
        json_open_at(json, "answers", '{');
        add_answers(documents[i], json);
        json_close(json, '}');
        add_windows(documents[i], json);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_open_at(json, "diffs", '{');
    add_diffs(documents, count, json);
    json_close(json, '}');
    json_close(json, '}');
}

void html_write(FILE *out, struct document **documents, size_t count) {
    struct json json = {0};
    add_everything(documents, count, &json);
    fprintf(out,
            HEAD "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                 "script-src %s; style-src %s; img-src data:; base-uri 'none'; form-action "
                 "'none'\">\n<link rel=\"icon\" href=\"data:,\">\n<style>",
            page_script_hash, page_style_hash);
    write_file(out, &page_style);
    fputs("</style>\n</head>\n" BODY "<script type=\"application/json\" id=\"answers\">", out);
    fwrite(json.text.bytes, 1, json.text.size, out);
    fputs("</script>\n<script>", out);
    write_file(out, &page_script);
    fputs("</script>\n</body>\n</html>\n", out);
    text_free(&json.text);
}
