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

// Adds the answer, if there is one, under the key.
static void add_given(char *problem, const char *key, struct json *own, struct json *json) {
    if (!problem) {
        json_name(json, key);
        json_raw(json, own->text.bytes);
    }
    text_free(&own->text);
    free(problem);
}

static void add(struct document *document, const char *question, const char *key,
                struct parameters *parameters, struct json *json) {
    struct json own = {0};
    struct ask ask = {parameter, parameters};
    add_given(answer(document, question, &ask, &own), key, &own, json);
}

static void add_trees(struct document *document, const char *metric, const char *nodes,
                      struct json *json) {
    for (int shape = 0; shape < 4; shape++) {
        const char *invert = shape & 1 ? "1" : "0", *merge = shape & 2 ? "1" : "0";
        struct text key = {0};
        text_format(&key, "tree?invert=%s&merge=%s&metric=%s", invert, merge, metric);
        add(document, "tree", key.bytes,
            &(struct parameters){{"metric", "invert", "merge", "width", "nodes"},
                                 {metric, invert, merge, "1500", nodes},
                                 5},
            json);
        text_free(&key);
    }
}

static void add_tables(struct document *document, const char *metric, const char *count,
                       struct json *json) {
    static const char *const tables[] = {"functions", "libraries"};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        struct text key = {0};
        text_format(&key, "%s?metric=%s", tables[i], metric);
        add(document, tables[i], key.bytes,
            &(struct parameters){{"metric", "count"}, {metric, count}, 2}, json);
        text_free(&key);
    }
}

static void add_of_function(struct document *document, const char *question, const char *metric,
                            uint32_t function, struct json *json) {
    char number[16];
    struct text key = {0};
    snprintf(number, sizeof number, "%u", function);
    struct parameters one = {{"metric", "function"}, {metric, number}, 2};
    text_format(&key, "%s?function=%s&metric=%s", question, number, metric);
    add(document, question, key.bytes, &one, json);
    text_free(&key);
}

// Source is told by file, and once for each.
static void add_source(struct document *document, const char *metric, const uint32_t *functions,
                       size_t at, struct json *json) {
    const struct cost_function *known = document->costs->functions;
    for (size_t i = 0; i < at; i++)
        if (known[functions[i]].file == known[functions[at]].file)
            return;
    char number[16];
    struct text key = {0};
    snprintf(number, sizeof number, "%u", functions[at]);
    struct parameters one = {{"metric", "function"}, {metric, number}, 2};
    text_format(&key, "source?metric=%s&path=%s", metric, known[functions[at]].file);
    add(document, "source", key.bytes, &one, json);
    text_free(&key);
}

// The functions that cost most: callers and callees, source and machine code.
static void add_costs(struct document *document, const char *metric, struct json *json) {
    struct parameters all = {{"metric", "count"}, {metric, "2000"}, 2};
    struct text key = {0};
    text_format(&key, "costs?metric=%s", metric);
    add(document, "costs", key.bytes, &all, json);
    text_free(&key);
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

static void add_plain(struct document *document, const char *const *questions, struct json *json) {
    for (; *questions; questions++)
        add(document, *questions, *questions, &(struct parameters){.count = 0}, json);
}

static void add_answers(struct document *document, struct json *json) {
    static const char *const plain[] = {"overview", "timeline",  "sites",  "histograms", "threads",
                                        "findings", "diagnosis", "points", NULL};
    add_plain(document, plain, json);
    for (unsigned i = 0; i < document->metric_count; i++) {
        add_trees(document, document->metrics[i].name, TREE_NODES, json);
        add_tables(document, document->metrics[i].name, "3000", json);
        if (document->costs)
            add_costs(document, document->metrics[i].name, json);
    }
}

// ---- parts of a run ----

static void add_window(const struct document *whole, uint64_t from, uint64_t to,
                       struct json *json) {
    static const char *const plain[] = {"overview", "histograms", "threads", NULL};
    struct document_window window = {from, to};
    struct document *part = document_open(whole->path, window, NULL);
    json_open(json, '{');
    json_number_at(json, "from", from);
    json_number_at(json, "to", to);
    json_name(json, "answers");
    json_open(json, '{');
    add_plain(part, plain, json);
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

// Of a page that is a window itself there are no others.
static void add_windows(const struct document *document, struct json *json) {
    bool is_whole = !document->window.from && document->window.to == UINT64_MAX;
    json_name(json, "windows");
    json_open(json, '[');
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

static void add_diff(struct document *before, struct document *after, const char *metric,
                     const char *invert, const char *key, struct json *json) {
    struct parameters parameters = {
        {"metric", "invert", "nodes", "count"}, {metric, invert, "1500", "300"}, 4};
    struct json own = {0};
    struct ask ask = {parameter, &parameters};
    add_given(answer_diff(before, after, &ask, &own), key, &own, json);
}

static void add_diffs(struct document **documents, size_t count, struct json *json) {
    for (size_t i = 0; i < count * count; i++) {
        size_t before = i / count, after = i % count;
        for (unsigned m = 0; before != after && m < 2 * documents[before]->metric_count; m++) {
            const char *metric = documents[before]->metrics[m / 2].name;
            const char *invert = m & 1 ? "1" : "0";
            struct text key = {0};
            text_format(&key, "diff?after=%zu&file=%zu&invert=%s&metric=%s", after, before, invert,
                        metric);
            add_diff(documents[before], documents[after], metric, invert, key.bytes, json);
            text_free(&key);
        }
    }
}

// ---- the file ----

static void write_file(FILE *out, const struct page_file *file) {
    fwrite(file->bytes, 1, file->size, out);
}

// {files: [{answers, windows}], diffs}
static void add_everything(struct document **documents, size_t count, struct json *json) {
    json_open(json, '{');
    json_name(json, "files");
    json_open(json, '[');
    for (size_t i = 0; i < count; i++) {
        json_open(json, '{');
        json_name(json, "answers");
        json_open(json, '{');
        add_answers(documents[i], json);
        json_close(json, '}');
        add_windows(documents[i], json);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_name(json, "diffs");
    json_open(json, '{');
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
