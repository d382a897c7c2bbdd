// Tables: sums by function, by library, by thread. Sorted and cut here, so that the page gets the
// rows it shows.
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "profile/costs/inclusive.h"
#include "report/heap/export.h"
#include "report/heap/rows.h"
#include "view/answers/answers.h"
#include "view/documents/heap_details.h"

#define ROWS      500
#define ROWS_MOST 20000

enum order { BY_SELF, BY_TOTAL, BY_NAME };

static int compare(const void *left, const void *right, void *context) {
    const struct answer_row *a = left, *b = right;
    enum order order = *(enum order *)context;
    uint64_t first = order == BY_SELF ? a->self : a->total;
    uint64_t second = order == BY_SELF ? b->self : b->total;
    if (order != BY_NAME && first != second)
        return first < second ? 1 : -1;
    int by_name = strcmp(a->name, b->name);
    return by_name ? by_name : strcmp(a->group, b->group);
}

static enum order order_of(const struct ask *ask) {
    const char *sort = ask_value(ask, "sort");
    if (sort && strcmp(sort, "name") == 0)
        return BY_NAME;
    return sort && strcmp(sort, "total") == 0 ? BY_TOTAL : BY_SELF;
}

static size_t keep_matching(struct answer_row *rows, size_t count, const char *search) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (!search || !*search || strcasestr(rows[i].name, search) ||
            strcasestr(rows[i].group, search))
            rows[kept++] = rows[i];
    return kept;
}

static void write_rows(const struct document *document, const struct ask *ask, unsigned metric,
                       struct answer_row *rows, size_t count, uint64_t total, struct json *json) {
    enum order order = order_of(ask);
    uint64_t offset = ask_number(ask, "offset", 0, UINT32_MAX);
    uint64_t most = ask_number(ask, "count", ROWS, ROWS_MOST);
    count = keep_matching(rows, count, ask_value(ask, "search"));
    qsort_r(rows, count, sizeof *rows, compare, &order);
    json_open(json, '{');
    json_string_at(json, "metric", document->metrics[metric].name);
    json_string_at(json, "unit", document->metrics[metric].unit);
    json_number_at(json, "total", total);
    json_number_at(json, "count", count);
    json_number_at(json, "offset", offset);
    json_open_at(json, "rows", '[');
    for (uint64_t i = offset; i < count && i - offset < most; i++) {
        json_open(json, '{');
        json_string_at(json, "name", rows[i].name);
        json_string_at(json, "library", rows[i].group);
        json_number_at(json, "self", rows[i].self);
        json_number_at(json, "total", rows[i].total);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_close(json, '}');
}

// ---- functions ----

static int by_place(const void *left, const void *right) {
    const struct answer_row *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    return order ? order : strcmp(a->group, b->group);
}

// Equal names of a profile are one string, so that they can be brought together unread.
static int by_string(const void *left, const void *right) {
    const struct cost_function *a = *(const struct cost_function *const *)left;
    const struct cost_function *b = *(const struct cost_function *const *)right;
    if (a->name != b->name)
        return a->name < b->name ? -1 : 1;
    return strcmp(heap_file_base(a->object), heap_file_base(b->object));
}

__attribute__((format(printf, 2, 3))) static const char *made_name(struct cost_profile *profile,
                                                                   const char *format, ...) {
    struct text text = {0};
    va_list values;
    va_start(values, format);
    text_vformat(&text, format, values);
    va_end(values);
    const char *name = costs_string(profile, text.bytes, text.size);
    text_free(&text);
    return name;
}

// Functions of one name and library are told apart by their files: what one of them costs with its
// callees may be part of what the other one does.
static void tell_apart(struct cost_profile *profile, const struct cost_function **functions,
                       struct answer_row *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        bool is_twin = (i && by_string(&functions[i - 1], &functions[i]) == 0) ||
                       (i + 1 < count && by_string(&functions[i], &functions[i + 1]) == 0);
        if (is_twin)
            rows[i].name = made_name(profile, "%s (%s)", functions[i]->name,
                                     heap_file_base(functions[i]->file));
    }
}

static size_t rows_of_costs(const struct document *document, unsigned metric,
                            struct answer_row *rows) {
    struct cost_profile *profile = document->costs;
    const struct cost_inclusive *inclusive = document->inclusive;
    const struct cost_function **functions =
        base_allocate((profile->function_count + 1) * sizeof *functions);
    size_t count = 0;
    for (uint32_t i = 0; i < profile->function_count; i++)
        if (cost_values(profile, profile->functions[i].own)[metric] ||
            cost_inclusive_of(inclusive, i)[metric])
            functions[count++] = &profile->functions[i];
    qsort(functions, count, sizeof *functions, by_string);
    for (size_t i = 0; i < count; i++) {
        uint32_t number = (uint32_t)(functions[i] - profile->functions);
        rows[i] = (struct answer_row){functions[i]->name, heap_file_base(functions[i]->object),
                                      cost_values(profile, functions[i]->own)[metric],
                                      cost_inclusive_of(inclusive, number)[metric]};
    }
    tell_apart(profile, functions, rows, count);
    free(functions);
    for (uint32_t i = 1; i <= inclusive->cycle_count; i++)
        if (cost_inclusive_cycle(inclusive, i)[metric])
            rows[count++] = (struct answer_row){made_name(profile, "<cycle %" PRIu32 ">", i), "", 0,
                                                cost_inclusive_cycle(inclusive, i)[metric]};
    return count;
}

// In no order. Costs need no tree.
static struct answer_row *gather_rows(const struct document *document, unsigned metric,
                                      const struct calltree *tree, size_t *count) {
    size_t room = document->costs
                      ? document->costs->function_count + document->inclusive->cycle_count
                      : tree->function_count;
    struct answer_row *rows = base_allocate((room + 1) * sizeof *rows);
    *count = 0;
    if (document->costs) {
        *count = rows_of_costs(document, metric, rows);
        return rows;
    }
    for (size_t i = 0; i < tree->function_count; i++) {
        const struct calltree_function *function = &tree->functions[i];
        if (function->self || function->total)
            rows[(*count)++] = (struct answer_row){function->name, function->group, function->self,
                                                   function->total};
    }
    return rows;
}

struct answer_row *answer_rows(const struct document *document, unsigned metric,
                               const struct calltree *tree, size_t *count) {
    struct answer_row *rows = gather_rows(document, metric, tree, count);
    qsort(rows, *count, sizeof *rows, by_place);
    return rows;
}

char *answer_functions(struct document *document, const struct ask *ask, struct json *json) {
    unsigned metric;
    const struct calltree *tree = NULL;
    char *problem = document->costs ? answer_choose_metric(document, ask, &metric)
                                    : answer_choose(document, ask, &metric, &tree);
    if (problem)
        return problem;
    size_t count;
    struct answer_row *rows = gather_rows(document, metric, tree, &count);
    write_rows(document, ask, metric, rows, count, document->metrics[metric].total, json);
    free(rows);
    return NULL;
}

// ---- libraries ----

struct libraries {
    struct answer_row *rows;
    uint32_t *library_of; // by function
    uint32_t *active;     // by library: how often it is on the path in hand
    size_t count;
};

static int by_group(const void *left, const void *right, void *context) {
    const struct calltree *tree = context;
    return strcmp(tree->functions[*(const uint32_t *)left].group,
                  tree->functions[*(const uint32_t *)right].group);
}

static void find_libraries(struct libraries *libraries, const struct calltree *tree) {
    size_t count = tree->function_count;
    uint32_t *order = base_allocate((count + 1) * sizeof *order);
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    qsort_r(order, count, sizeof *order, by_group, (void *)tree);
    for (size_t i = 0; i < count; i++) {
        const char *group = tree->functions[order[i]].group;
        if (!i || strcmp(group, tree->functions[order[i - 1]].group) != 0)
            libraries->rows[libraries->count++] =
                (struct answer_row){.name = *group ? group : "[unknown]", .group = ""};
        libraries->library_of[order[i]] = (uint32_t)libraries->count - 1;
    }
    free(order);
}

// A library counts once for each stack it is in.
static void sum_libraries(struct libraries *libraries, const struct calltree_node *node) {
    bool is_root = node->function == CALLTREE_ROOT;
    uint32_t library = is_root ? 0 : libraries->library_of[node->function];
    if (!is_root) {
        libraries->rows[library].self += node->self;
        if (libraries->active[library]++ == 0)
            libraries->rows[library].total += node->total;
    }
    for (uint32_t i = 0; i < node->count; i++)
        sum_libraries(libraries, node->children[i]);
    if (!is_root)
        libraries->active[library]--;
}

struct answer_row *answer_library_rows(const struct calltree *tree, size_t *count) {
    size_t room = tree->function_count + 1;
    struct libraries libraries = {
        .rows = base_allocate(room * sizeof *libraries.rows),
        .library_of = base_allocate(room * sizeof *libraries.library_of),
        .active = base_allocate(room * sizeof *libraries.active),
    };
    memset(libraries.active, 0, room * sizeof *libraries.active);
    find_libraries(&libraries, tree);
    sum_libraries(&libraries, &tree->root);
    free(libraries.library_of);
    free(libraries.active);
    *count = libraries.count;
    return libraries.rows;
}

char *answer_libraries(struct document *document, const struct ask *ask, struct json *json) {
    unsigned metric;
    const struct calltree *tree;
    char *problem = answer_choose(document, ask, &metric, &tree);
    if (problem)
        return problem;
    size_t count;
    struct answer_row *rows = answer_library_rows(tree, &count);
    write_rows(document, ask, metric, rows, count, tree->root.total, json);
    free(rows);
    return NULL;
}

// ---- threads ----

static void write_thread(const struct summary *summary, size_t thread,
                         const struct summary_site *sums, struct json *json) {
    bool is_known = thread && thread <= summary->threads;
    json_open(json, '{');
    json_number_at(json, "thread", thread);
    json_number_at(json, "tid", is_known ? (uint64_t)summary->thread_list[thread].tid : 0);
    json_string_at(json, "name", is_known ? summary->thread_list[thread].name : "(no thread)");
    for (size_t i = 0; i < heap_weight_count; i++)
        json_number_at(json, heap_weights[i].name, heap_weight_of(&heap_weights[i], sums));
    json_close(json, '}');
}

char *answer_threads(struct document *document, const struct ask *ask, struct json *json) {
    if (document->format != &document_recording)
        return base_copy("the file does not tell threads apart");
    struct heap_details *details = document_details(document);
    if (!details)
        return base_copy("the file cannot be read again");
    const struct summary *sums = &details->threads.sums;
    json_open(json, '{');
    json_open_at(json, "rows", '[');
    // Threads that never allocated have a row of zeros: the overview counts them, too.
    const struct summary *summary = &document->heap.summary;
    static const struct summary_site nothing;
    for (size_t i = 0; i < sums->site_count || i <= summary->threads; i++) {
        const struct summary_site *own = i < sums->site_count ? &sums->sites[i] : &nothing;
        if (i ? i <= summary->threads || rows_has(own) : rows_has(own))
            write_thread(summary, i, own, json);
    }
    json_close(json, ']');
    json_close(json, '}');
    return NULL;
}
