// Findings: errors and leaks with all their stacks, and suppressions that match them.
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/shared/own.h"
#include "view/answers/answers.h"
#include "view/documents/findings_file.h"

#define ROWS      200
#define ROWS_MOST 5000

static void add_frames(const struct findings_section *section, struct json *json) {
    json_open_at(json, "frames", '[');
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

// The frame that a reader looks for first: the innermost of the program's own code, else the
// innermost.
static size_t own_of(const struct findings_finding *finding) {
    const struct findings_section *stack = finding->section_count ? finding->sections : NULL;
    struct own_search search = {0};
    size_t own = 0;
    for (size_t i = 0; stack && i < stack->frame_count; i++) {
        const struct findings_frame *frame = &stack->frames[i];
        struct text path = {0};
        if (frame->file)
            text_format(&path, "%s/%s", frame->directory ? frame->directory : ".", frame->file);
        if (own_search_next(&search, frame->function, path.bytes, frame->object))
            own = i;
        text_free(&path);
    }
    return own;
}

// A suppression has lines, which strings elsewhere have not.
static void add_lines(struct json *json, const char *name, char *text) {
    char *rest = NULL;
    json_open_at(json, name, '[');
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
    json_number_at(json, "where", own_of(finding));
    json_number_at(json, "bytes", finding->leaked_bytes);
    json_number_at(json, "blocks", finding->leaked_blocks);
    json_open_at(json, "sections", '[');
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
    json_open_at(json, "kinds", '[');
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

// ---- the order ----

enum order { AS_READ, BY_COUNT, BY_BYTES, BY_KIND, BY_WHAT };

struct sorting {
    const struct findings_finding *list;
    enum order order;
};

// Errors as they came, then leaks, the largest first.
static int compare_as_read(const struct findings_finding *a, const struct findings_finding *b) {
    if (a->is_leak != b->is_leak)
        return a->is_leak ? 1 : -1;
    if (a->is_leak && a->leaked_bytes != b->leaked_bytes)
        return a->leaked_bytes < b->leaked_bytes ? 1 : -1;
    return 0;
}

static int compare(const void *left, const void *right, void *context) {
    const struct sorting *sorting = context;
    uint32_t first = *(const uint32_t *)left, second = *(const uint32_t *)right;
    const struct findings_finding *a = &sorting->list[first], *b = &sorting->list[second];
    int order = 0;
    if (sorting->order == BY_COUNT)
        order = (a->count < b->count) - (a->count > b->count);
    else if (sorting->order == BY_BYTES)
        order = (a->leaked_bytes < b->leaked_bytes) - (a->leaked_bytes > b->leaked_bytes);
    else if (sorting->order == BY_KIND)
        order = strcmp(a->kind, b->kind);
    else if (sorting->order == BY_WHAT)
        order = strcmp(a->what, b->what);
    if (!order)
        order = compare_as_read(a, b);
    return order ? order : first < second ? -1 : first > second;
}

static enum order order_of(const struct ask *ask) {
    static const char *const names[] = {"", "count", "bytes", "kind", "what"};
    const char *sort = ask_value(ask, "sort");
    for (unsigned i = 0; sort && i < sizeof names / sizeof *names; i++)
        if (strcmp(sort, names[i]) == 0)
            return (enum order)i;
    return AS_READ;
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
    json_open_at(json, "rows", '[');
    uint32_t *order = base_allocate((file->count + 1) * sizeof *order);
    for (uint32_t i = 0; i < file->count; i++)
        if (is_wanted(&file->list[i], kind, search))
            order[count++] = i;
    struct sorting sorting = {file->list, order_of(ask)};
    qsort_r(order, count, sizeof *order, compare, &sorting);
    for (uint64_t i = offset; i < count && i - offset < most; i++)
        add_finding(&file->list[order[i]], order[i], json);
    free(order);
    json_close(json, ']');
    json_number_at(json, "count", count);
    json_close(json, '}');
    return NULL;
}
