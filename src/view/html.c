#include "view/html.h"

#include <stdlib.h>
#include <string.h>

#include "view/answers.h"
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

#define CALLS 150 // functions whose callers and callees are in the file

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
static void add(struct document *document, const char *question, const char *key,
                struct parameters *parameters, struct json *json) {
    struct json own = {0};
    struct ask ask = {parameter, parameters};
    char *problem = answer(document, question, &ask, &own);
    if (!problem) {
        json_name(json, key);
        json_raw(json, own.text.bytes);
    }
    text_free(&own.text);
    free(problem);
}

static void add_trees(struct document *document, const char *metric, struct json *json) {
    for (int shape = 0; shape < 4; shape++) {
        const char *invert = shape & 1 ? "1" : "0", *merge = shape & 2 ? "1" : "0";
        struct text key = {0};
        text_format(&key, "tree?invert=%s&merge=%s&metric=%s", invert, merge, metric);
        add(document, "tree", key.bytes,
            &(struct parameters){{"metric", "invert", "merge", "width", "nodes"},
                                 {metric, invert, merge, "1500", "6000"},
                                 5},
            json);
        text_free(&key);
    }
}

static void add_tables(struct document *document, const char *metric, struct json *json) {
    static const char *const tables[] = {"functions", "libraries"};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        struct text key = {0};
        text_format(&key, "%s?metric=%s", tables[i], metric);
        add(document, tables[i], key.bytes,
            &(struct parameters){{"metric", "count"}, {metric, "3000"}, 2}, json);
        text_free(&key);
    }
}

// The functions that cost most, each with its callers and callees.
static void add_costs(struct document *document, const char *metric, struct json *json) {
    struct parameters all = {{"metric", "count"}, {metric, "2000"}, 2};
    struct text key = {0};
    text_format(&key, "costs?metric=%s", metric);
    add(document, "costs", key.bytes, &all, json);
    text_free(&key);
    uint32_t heaviest[CALLS];
    size_t count = answer_heaviest(document, metric, heaviest, CALLS);
    for (size_t i = 0; i < count; i++) {
        char number[16];
        snprintf(number, sizeof number, "%u", heaviest[i]);
        struct parameters one = {{"metric", "function"}, {metric, number}, 2};
        text_format(&key, "calls?function=%s&metric=%s", number, metric);
        add(document, "calls", key.bytes, &one, json);
        text_free(&key);
    }
}

static void add_answers(struct document *document, struct json *json) {
    static const char *const plain[] = {"overview", "timeline", "sites",     "histograms",
                                        "threads",  "findings", "diagnosis", "points"};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        add(document, plain[i], plain[i], &(struct parameters){.count = 0}, json);
    for (unsigned i = 0; i < document->metric_count; i++) {
        add_trees(document, document->metrics[i].name, json);
        add_tables(document, document->metrics[i].name, json);
    }
    if (document->costs && document->metric_count)
        add_costs(document, document->metrics[0].name, json);
}

// ---- the file ----

static void write_file(FILE *out, const struct page_file *file) {
    fwrite(file->bytes, 1, file->size, out);
}

void html_write(FILE *out, struct document *document) {
    struct json json = {0};
    json_open(&json, '{');
    add_answers(document, &json);
    json_close(&json, '}');
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
