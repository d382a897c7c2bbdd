// Findings: errors and leaks with all their stacks, and suppressions that match them.
#include <stdlib.h>
#include <string.h>

#include "view/answers/answers.h"
#include "view/documents/findings_file.h"

#define ROWS      200
#define ROWS_MOST 5000

static void add_frames(const struct findings_section *section, struct json *json) {
    json_name(json, "frames");
    json_open(json, '[');
    for (size_t i = 0; i < section->frame_count; i++) {
        const struct findings_frame *frame = &section->frames[i];
        json_open(json, '{');
        json_string_at(json, "address", frame->address);
        json_string_at(json, "function", frame->function);
        json_string_at(json, "object", frame->object);
        json_string_at(json, "directory", frame->directory);
        json_string_at(json, "file", frame->file);
        json_number_at(json, "line", frame->line);
        json_close(json, '}');
    }
    json_close(json, ']');
}

// A suppression has lines, which strings elsewhere have not.
static void add_lines(struct json *json, const char *name, char *text) {
    char *rest = NULL;
    json_name(json, name);
    json_open(json, '[');
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        json_string(json, line);
    json_close(json, ']');
}

static void add_finding(const struct findings_finding *finding, size_t index, struct json *json) {
    json_open(json, '{');
    json_number_at(json, "index", index);
    json_string_at(json, "kind", finding->kind);
    json_string_at(json, "what", finding->what);
    json_string_at(json, "thread", finding->thread);
    json_number_at(json, "count", finding->count);
    json_bool_at(json, "leak", finding->is_leak);
    json_number_at(json, "bytes", finding->leaked_bytes);
    json_number_at(json, "blocks", finding->leaked_blocks);
    json_name(json, "sections");
    json_open(json, '[');
    for (size_t i = 0; i < finding->section_count; i++) {
        json_open(json, '{');
        json_string_at(json, "text", finding->sections[i].text);
        add_frames(&finding->sections[i], json);
        json_close(json, '}');
    }
    json_close(json, ']');
    char *suppression = findings_suppression(finding);
    add_lines(json, "suppression", suppression);
    free(suppression);
    json_close(json, '}');
}

static bool has_function(const struct findings_finding *finding, const char *search) {
    for (size_t i = 0; i < finding->section_count; i++)
        for (size_t j = 0; j < finding->sections[i].frame_count; j++) {
            const struct findings_frame *frame = &finding->sections[i].frames[j];
            if ((frame->function && strcasestr(frame->function, search)) ||
                (frame->file && strcasestr(frame->file, search)) ||
                (frame->object && strcasestr(frame->object, search)))
                return true;
        }
    return false;
}

static bool is_wanted(const struct findings_finding *finding, const char *kind,
                      const char *search) {
    if (kind && *kind && strcmp(finding->kind, kind) != 0)
        return false;
    return !search || !*search || strcasestr(finding->what, search) ||
           has_function(finding, search);
}

// How many there are of each kind, in the order of their first one.
static void add_kinds(const struct findings_file *file, struct json *json) {
    json_name(json, "kinds");
    json_open(json, '[');
    for (size_t i = 0; i < file->count; i++) {
        uint64_t count = 0;
        bool is_first = true;
        for (size_t j = 0; j < file->count; j++) {
            bool same = strcmp(file->list[j].kind, file->list[i].kind) == 0;
            is_first &= !same || j >= i;
            count += same;
            if (!is_first)
                break;
        }
        if (!is_first)
            continue;
        json_open(json, '{');
        json_string_at(json, "kind", file->list[i].kind);
        json_number_at(json, "count", count);
        json_close(json, '}');
    }
    json_close(json, ']');
}

char *answer_findings(struct document *document, const struct ask *ask, struct json *json) {
    const struct findings_file *file = document->findings;
    if (!file)
        return base_copy("the file holds no findings");
    const char *kind = ask_value(ask, "kind"), *search = ask_value(ask, "search");
    uint64_t offset = ask_number(ask, "offset", 0, UINT32_MAX), count = 0;
    uint64_t most = ask_number(ask, "count", ROWS, ROWS_MOST);
    json_open(json, '{');
    add_kinds(file, json);
    json_name(json, "rows");
    json_open(json, '[');
    for (size_t i = 0; i < file->count; i++) {
        if (!is_wanted(&file->list[i], kind, search))
            continue;
        if (count >= offset && count - offset < most)
            add_finding(&file->list[i], i, json);
        count++;
    }
    json_close(json, ']');
    json_number_at(json, "count", count);
    json_close(json, '}');
    return NULL;
}
