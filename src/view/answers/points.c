// DHAT's program points: sums, lifetimes, accesses and stacks.
#include <stdlib.h>
#include <string.h>

#include "report/dhat/file.h"
#include "view/answers/answers.h"

#define ROWS      200
#define ROWS_MOST 3000

static const struct {
    const char *name;
    size_t offset;
} numbers[] = {
    {"tb", offsetof(struct dhat_point, tb)},   {"tbk", offsetof(struct dhat_point, tbk)},
    {"tl", offsetof(struct dhat_point, tl)},   {"mb", offsetof(struct dhat_point, mb)},
    {"mbk", offsetof(struct dhat_point, mbk)}, {"gb", offsetof(struct dhat_point, gb)},
    {"gbk", offsetof(struct dhat_point, gbk)}, {"eb", offsetof(struct dhat_point, eb)},
    {"ebk", offsetof(struct dhat_point, ebk)}, {"rb", offsetof(struct dhat_point, rb)},
    {"wb", offsetof(struct dhat_point, wb)},
};
#define NUMBERS (sizeof numbers / sizeof *numbers)

static uint64_t value_of(const struct dhat_point *point, size_t number) {
    return *(const uint64_t *)((const char *)point + numbers[number].offset);
}

// What points are sorted by; beside the numbers of the file some that are made from them.
enum { BY_LIFE = NUMBERS, BY_UNUSED };

struct sorting {
    const struct dhat_file *file;
    size_t by;
};

static double weight(const struct sorting *sorting, uint32_t index) {
    const struct dhat_point *point = &sorting->file->points[index];
    if (sorting->by == BY_LIFE) // short lives first
        return point->tbk ? -(double)point->tl / (double)point->tbk : 0;
    if (sorting->by == BY_UNUSED) // bytes that were never read or never written
        return point->rb == 0 || point->wb == 0 ? (double)point->tb : 0;
    return (double)value_of(point, sorting->by);
}

static int compare(const void *left, const void *right, void *context) {
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    double first = weight(context, a), second = weight(context, b);
    return first != second ? (first < second ? 1 : -1) : a < b ? -1 : 1;
}

static size_t order_of(const char *sort) {
    for (size_t i = 0; sort && i < NUMBERS; i++)
        if (strcmp(numbers[i].name, sort) == 0)
            return i;
    if (sort && strcmp(sort, "life") == 0)
        return BY_LIFE;
    return sort && strcmp(sort, "unused") == 0 ? BY_UNUSED : 5;
}

static bool is_wanted(const struct dhat_file *file, const struct dhat_point *point,
                      const char *search) {
    for (size_t i = 0; search && *search && i < point->fs_count; i++)
        if (strcasestr(file->frames.keys[point->fs[i]].bytes, search))
            return true;
    return !search || !*search;
}

static void add_point(const struct dhat_file *file, uint32_t index, struct json *json) {
    const struct dhat_point *point = &file->points[index];
    json_open(json, '{');
    json_number_at(json, "point", index);
    for (size_t i = 0; i < NUMBERS; i++)
        json_number_at(json, numbers[i].name, value_of(point, i));
    json_open_at(json, "frames", '[');
    for (size_t i = 0; i < point->fs_count; i++)
        json_string(json, file->frames.keys[point->fs[i]].bytes);
    json_close(json, ']');
    if (point->acc) {
        json_open_at(json, "accesses", '[');
        for (size_t i = 0; i < point->acc_count; i++)
            json_number(json, point->acc[i]);
        json_close(json, ']');
    }
    json_close(json, '}');
}

char *answer_points(struct document *document, const struct ask *ask, struct json *json) {
    const struct dhat_file *file = document->dhat;
    if (!file)
        return base_copy("the file has no program points");
    struct sorting sorting = {file, order_of(ask_value(ask, "sort"))};
    const char *search = ask_value(ask, "search");
    uint32_t *order = base_allocate((file->point_count + 1) * sizeof *order);
    size_t count = 0;
    for (uint32_t i = 0; i < file->point_count; i++)
        if (is_wanted(file, &file->points[i], search))
            order[count++] = i;
    qsort_r(order, count, sizeof *order, compare, &sorting);
    uint64_t offset = ask_number(ask, "offset", 0, UINT32_MAX);
    uint64_t most = ask_number(ask, "count", ROWS, ROWS_MOST);
    json_open(json, '{');
    json_string_at(json, "verb", file->verb);
    json_string_at(json, "unit", file->bsu ? file->bsu : "bytes");
    json_string_at(json, "blocks", file->bksu ? file->bksu : "blocks");
    json_string_at(json, "time", file->tu);
    json_bool_at(json, "lifetimes", file->bklt);
    json_bool_at(json, "accesses", file->bkacc);
    json_number_at(json, "count", count);
    json_open_at(json, "rows", '[');
    for (uint64_t i = offset; i < count && i - offset < most; i++)
        add_point(file, order[i], json);
    json_close(json, ']');
    json_close(json, '}');
    free(order);
    return NULL;
}
