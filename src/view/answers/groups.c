// Sums of costs by class, file or object.
#include "view/answers/groups.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vector.h"
#include "view/answers/costs.h"

#define ROWS      200
#define ROWS_MOST 20000

enum group_by group_by(const char *name) {
    static const char *const names[] = {
        [GROUP_CLASS] = "class", [GROUP_FILE] = "file", [GROUP_OBJECT] = "object"};
    for (enum group_by by = GROUP_CLASS; name && by <= GROUP_OBJECT; by++)
        if (strcmp(names[by], name) == 0)
            return by;
    return GROUP_NONE;
}

// What stands before the last "::" of the name itself: not that of its parameters, nor within
// arguments of a template.
static size_t class_size(const char *name) {
    size_t size = 0, depth = 0;
    for (const char *at = name; *at; at++) {
        bool is_anonymous = strncmp(at, "(anonymous", 10) == 0;
        if (*at == '(' && !depth && !is_anonymous && at > name)
            break;
        if (*at == '<' || *at == '(' || *at == '{')
            depth++;
        else if ((*at == '>' && at > name && at[-1] != '-') || *at == ')' || *at == '}')
            depth -= depth > 0;
        else if (at[0] == ':' && at[1] == ':' && !depth)
            size = (size_t)(at - name);
    }
    return size;
}

const char *group_of(const struct cost_function *function, enum group_by by, size_t *size) {
    const char *text = by == GROUP_CLASS  ? function->name
                       : by == GROUP_FILE ? function->file
                                          : function->object;
    bool is_unknown = strcmp(text, "???") == 0;
    *size = by == GROUP_CLASS ? class_size(text) : is_unknown ? 0 : strlen(text);
    return text;
}

struct group {
    const char *name;
    uint64_t own;
    uint64_t functions;
};

static int by_own(const void *left, const void *right) {
    const struct group *a = left, *b = right;
    if (a->own != b->own)
        return a->own < b->own ? 1 : -1;
    return strcmp(a->name, b->name);
}

// Groups of functions that cost anything. To be freed; their names are the texts'.
static struct group *sum_up(const struct costs *costs, enum group_by by, struct map_texts *texts,
                            size_t *count) {
    struct group *groups = NULL;
    *count = 0;
    for (size_t i = 0; i < costs->profile->function_count; i++) {
        const struct cost_function *function = &costs->profile->functions[i];
        size_t size;
        const char *name = group_of(function, by, &size);
        bool is_new;
        uint32_t number = map_texts_add(texts, name, size, &is_new);
        if (is_new)
            *vector_push(groups, *count) = (struct group){.name = texts->keys[number].bytes};
        groups[number].own += cost_values(costs->profile, function->own)[costs->event];
        groups[number].functions++;
    }
    if (*count)
        qsort(groups, *count, sizeof *groups, by_own);
    return groups;
}

char *answer_groups(struct document *document, const struct ask *ask, struct json *json) {
    struct costs costs = {0};
    char *problem = costs_choose(document, ask, json, &costs);
    enum group_by by = group_by(ask_value(ask, "by"));
    if (!problem && !by)
        problem = base_copy("functions are grouped by class, file or object");
    if (problem)
        return problem;
    struct map_texts texts = {0};
    size_t count;
    struct group *groups = sum_up(&costs, by, &texts, &count);
    uint64_t offset = ask_number(ask, "offset", 0, UINT32_MAX);
    uint64_t most = ask_number(ask, "count", ROWS, ROWS_MOST);
    json_open(json, '{');
    json_number_at(json, "total", costs.profile->totals[costs.event]);
    json_number_at(json, "count", count);
    json_open_at(json, "rows", '[');
    for (uint64_t i = offset; i < count && i - offset < most; i++) {
        json_open(json, '{');
        json_string_at(json, "name", groups[i].name);
        json_number_at(json, "own", groups[i].own);
        json_number_at(json, "functions", groups[i].functions);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_close(json, '}');
    free(groups);
    map_texts_free(&texts);
    return NULL;
}
