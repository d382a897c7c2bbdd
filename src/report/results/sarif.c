// SARIF 2.1.0: results with their places, stacks and code flows, as code hosts show them.
#include <inttypes.h>
#include <string.h>

#include "report/shared/json.h"
#include "report/results/results.h"

static void text_at(struct json *json, const char *name, const char *text) {
    json_open_at(json, name, '{');
    json_string_at(json, "text", text);
    json_close(json, '}');
}

// Relative below the current folder, else a file: URI; what a URI cannot hold is escaped.
static void uri_at(struct json *json, const char *path) {
    struct text uri = {0};
    path = result_relative(path);
    if (path[0] == '/')
        text_string(&uri, "file://");
    for (const unsigned char *at = (const unsigned char *)path; *at; at++) {
        if (strchr("/-._~", *at) || (*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'z') ||
            (*at >= 'A' && *at <= 'Z'))
            text_char(&uri, (char)*at);
        else
            text_format(&uri, "%%%02X", *at);
    }
    json_string_at(json, "uri", uri.bytes ? uri.bytes : "");
    text_free(&uri);
}

static void physical(struct json *json, const char *path, uint32_t line) {
    json_open_at(json, "physicalLocation", '{');
    json_open_at(json, "artifactLocation", '{');
    uri_at(json, path);
    json_close(json, '}');
    if (line) {
        json_open_at(json, "region", '{');
        json_number_at(json, "startLine", line);
        json_close(json, '}');
    }
    json_close(json, '}');
}

static void location(struct json *json, const struct result_frame *frame) {
    json_open(json, '{');
    if (frame->path)
        physical(json, frame->path, frame->line);
    if (frame->function) {
        json_open_at(json, "logicalLocations", '[');
        json_open(json, '{');
        json_string_at(json, "fullyQualifiedName", frame->function);
        json_string_at(json, "kind", "function");
        json_close(json, '}');
        json_close(json, ']');
    }
    text_at(json, "message", frame->function ? frame->function : "???");
    json_close(json, '}');
}

static const char *title_of(const struct result *result, size_t stack) {
    const char *title = result->stacks[stack].title;
    return title ? title : result->message;
}

static void stacks(struct json *json, const struct result *result) {
    json_open_at(json, "stacks", '[');
    for (size_t s = 0; s < result->stack_count; s++) {
        json_open(json, '{');
        text_at(json, "message", title_of(result, s));
        json_open_at(json, "frames", '[');
        for (size_t i = 0; i < result->stacks[s].count; i++) {
            const struct result_frame *frame = &result->stacks[s].frames[i];
            json_open(json, '{');
            json_name(json, "location");
            location(json, frame);
            if (frame->object)
                json_string_at(json, "module", frame->object);
            json_close(json, '}');
        }
        json_close(json, ']');
        json_close(json, '}');
    }
    json_close(json, ']');
}

// From the outermost function to the innermost, as it was run.
static void flows(struct json *json, const struct result *result) {
    json_open_at(json, "codeFlows", '[');
    for (size_t s = 0; s < result->stack_count; s++) {
        if (!result->stacks[s].count)
            continue;
        json_open(json, '{');
        text_at(json, "message", title_of(result, s));
        json_open_at(json, "threadFlows", '[');
        json_open(json, '{');
        json_open_at(json, "locations", '[');
        for (size_t i = result->stacks[s].count; i-- > 0;) {
            json_open(json, '{');
            json_name(json, "location");
            location(json, &result->stacks[s].frames[i]);
            json_close(json, '}');
        }
        json_close(json, ']');
        json_close(json, '}');
        json_close(json, ']');
        json_close(json, '}');
    }
    json_close(json, ']');
}

// ---- rules -------------------------------------------------------------------------------------

// The rules in use, in the order in which they are met; the number of this one.
static size_t rule_index(const struct results *results, size_t result) {
    size_t index = 0;
    for (size_t i = 0; i < results->count; i++) {
        bool is_new = true;
        for (size_t j = 0; j < i && is_new; j++)
            is_new = strcmp(results->items[j]->rule, results->items[i]->rule) != 0;
        if (strcmp(results->items[i]->rule, results->items[result]->rule) == 0)
            return index;
        index += is_new;
    }
    return index;
}

static void rules(struct json *json, const struct results *results) {
    json_open_at(json, "rules", '[');
    for (size_t i = 0, known = 0; i < results->count; i++) {
        const char *rule = results->items[i]->rule;
        if (rule_index(results, i) < known)
            continue;
        known++;
        json_open(json, '{');
        json_string_at(json, "id", rule);
        text_at(json, "shortDescription", result_rule_help(rule));
        json_close(json, '}');
    }
    json_close(json, ']');
}

// ---- the document ------------------------------------------------------------------------------

// What has no place in a source is shown with the program: code hosts refuse a file with a result
// that is nowhere.
static void place_of(struct json *json, const struct result *result,
                     const struct results_head *head) {
    const struct result_frame *place = result_place(result);
    json_open_at(json, "locations", '[');
    if (place) {
        location(json, place);
    } else if (head->words[0]) {
        json_open(json, '{');
        physical(json, head->words[0], 1);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void write_result(struct json *json, const struct results *results, size_t index,
                         const struct results_head *head) {
    static const char *const levels[] = {"error", "warning", "note"};
    const struct result *result = results->items[index];
    char number[17];
    struct text message = {0};
    text_string(&message, result->message);
    for (size_t i = 0; i < result->remark_count; i++)
        text_format(&message, "\n%s", result->remarks[i]);
    json_open(json, '{');
    json_string_at(json, "ruleId", result->rule);
    json_number_at(json, "ruleIndex", rule_index(results, index));
    json_string_at(json, "level", levels[result->level]);
    text_at(json, "message", message.bytes);
    place_of(json, result, head);
    if (result->stack_count) {
        stacks(json, result);
        flows(json, result);
    }
    snprintf(number, sizeof number, "%016" PRIx64, result->fingerprint);
    json_open_at(json, "partialFingerprints", '{');
    json_string_at(json, "quernStack/v1", number);
    json_close(json, '}');
    json_number_at(json, "occurrenceCount", result->count);
    if (results->baseline)
        json_string_at(json, "baselineState", result->known ? "unchanged" : "new");
    json_close(json, '}');
    text_free(&message);
}

void results_sarif(FILE *out, const struct results *results, const struct results_head *head) {
    struct json json = {0};
    json_open(&json, '{');
    json_string_at(&json, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
    json_string_at(&json, "version", "2.1.0");
    json_open_at(&json, "runs", '[');
    json_open(&json, '{');
    json_open_at(&json, "tool", '{');
    json_open_at(&json, "driver", '{');
    json_string_at(&json, "name", "Quern");
    json_string_at(&json, "version", head->version);
    rules(&json, results);
    json_close(&json, '}');
    json_close(&json, '}');
    json_open_at(&json, "invocations", '[');
    json_open(&json, '{');
    json_bool_at(&json, "executionSuccessful", true);
    json_number_at(&json, "exitCode", (uint64_t)head->status);
    json_open_at(&json, "arguments", '[');
    for (size_t i = 0; head->words[i]; i++)
        json_string(&json, head->words[i]);
    json_close(&json, ']');
    json_close(&json, '}');
    json_close(&json, ']');
    json_open_at(&json, "results", '[');
    for (size_t i = 0; i < results->count; i++)
        write_result(&json, results, i, head);
    json_close(&json, ']');
    json_close(&json, '}');
    json_close(&json, ']');
    json_close(&json, '}');
    fwrite(json.text.bytes, 1, json.text.size, out);
    fputc('\n', out);
    text_free(&json.text);
}
