#include "view/answers/places.h"

#include <stdlib.h>
#include <string.h>

#include "base/vector.h"
#include "report/dhat/file.h"
#include "report/heap/rows.h"
#include "report/results/results.h"
#include "report/shared/own.h"

#define ROWS      200
#define ROWS_MOST 20000

const char *const place_values[PLACE_VALUES] = {"peak",      "peak_blocks", "total", "count",
                                                "temporary", "leaked",      "left"};

// ---- stacks ----

static void add_frame(struct place_stack *stack, struct place_frame frame) {
    *vector_push(stack->frames, stack->count) = frame;
}

static void clear_frames(struct place_stack *stack) {
    for (size_t i = 0; i < stack->count; i++) {
        free(stack->frames[i].function);
        free(stack->frames[i].path);
        free(stack->frames[i].object);
    }
    stack->count = 0;
}

// The first own frame. A stack without one is at its innermost frame.
static size_t choose_place(const struct place_stack *stack, bool innermost) {
    struct own_search search = {0};
    size_t place = 0;
    for (size_t i = 0; !innermost && i < stack->count; i++) {
        const struct place_frame *frame = &stack->frames[i];
        if (own_search_next(&search, frame->function, frame->path, frame->object))
            place = i;
    }
    return place;
}

static char *copy_or_null(const char *text) {
    return text ? base_copy(text) : NULL;
}

static void take_frame(void *context, const struct heap_place *place,
                       const struct symbol_frame *frame) {
    add_frame(context, (struct place_frame){.function = symbol_frame_label(frame),
                                            .path = result_path(frame),
                                            .object = copy_or_null(frame->object),
                                            .line = frame->line});
}

static void take_site(const struct summary_site *site, uint64_t *values) {
    values[PLACE_PEAK] = site->peak_bytes;
    values[PLACE_BLOCKS] = site->peak;
    values[PLACE_TOTAL] = site->allocated_bytes;
    values[PLACE_COUNT] = site->allocated;
    values[PLACE_TEMPORARY] = site->temporary;
    values[PLACE_LEAKED] = site->live_bytes;
    values[PLACE_LEFT] = site->live;
}

// "0x1189: work (target.c:12)", "0x1189: ??? (in /usr/lib/libc.so.6)".
static struct place_frame parse_frame(const char *text, const char *path) {
    struct place_frame frame = {0};
    const char *name = strncmp(text, "0x", 2) == 0 ? strstr(text, ": ") : NULL;
    name = name ? name + 2 : text;
    const char *open = strrchr(name, '('), *colon = strrchr(name, ':');
    size_t size = strlen(name);
    bool has_place = open && open > name && open[-1] == ' ' && name[size - 1] == ')';
    if (has_place && strncmp(open, "(in ", 4) == 0)
        frame.object = strndup(open + 4, (size_t)(name + size - 1 - (open + 4)));
    else if (has_place && colon > open) {
        frame.line = (uint32_t)strtoul(colon + 1, NULL, 10);
        frame.path = path ? base_copy(path) : strndup(open + 1, (size_t)(colon - open - 1));
    }
    bool is_known = frame.object || frame.line;
    frame.function = strndup(name, is_known ? (size_t)(open - 1 - name) : size);
    return frame;
}

static void take_point(const struct dhat_file *file, const struct dhat_point *point,
                       struct place_stack *stack) {
    uint64_t values[PLACE_VALUES] = {
        [PLACE_PEAK] = point->gb,   [PLACE_BLOCKS] = point->gbk, [PLACE_TOTAL] = point->tb,
        [PLACE_COUNT] = point->tbk, [PLACE_LEAKED] = point->eb,  [PLACE_LEFT] = point->ebk,
    };
    memcpy(stack->values, values, sizeof values);
    for (size_t i = 0; i < point->fs_count; i++) {
        uint32_t frame = point->fs[i];
        add_frame(stack, parse_frame(file->frames.keys[frame].bytes,
                                     frame < file->path_count ? file->paths[frame] : NULL));
    }
}

bool places_visit(const struct document *document, bool innermost,
                  void (*visit)(void *context, const struct place_stack *stack), void *context) {
    bool is_heap = document->format == &document_recording;
    const struct dhat_file *dhat = document->dhat;
    const struct summary *summary = &document->heap.summary;
    size_t count = is_heap ? summary->site_count : dhat ? dhat->point_count : 0;
    struct place_stack stack = {0};
    for (size_t i = 0; i < count; i++) {
        if (is_heap && !rows_has(&summary->sites[i]))
            continue;
        clear_frames(&stack);
        if (is_heap) {
            take_site(&summary->sites[i], stack.values);
            rows_frames(&document->heap, (uint32_t)i, take_frame, &stack);
        } else {
            take_point(dhat, &dhat->points[i], &stack);
        }
        stack.place = choose_place(&stack, innermost);
        if (stack.count)
            visit(context, &stack);
    }
    clear_frames(&stack);
    free(stack.frames);
    return is_heap || dhat;
}

// ---- places ----

void places_key(const struct place_frame *frame, enum places_by by, struct text *key) {
    text_clear(key);
    if (by == PLACES_BY_LIBRARY)
        text_string(key, frame->object ? frame->object : "?");
    else if (by == PLACES_BY_FILE)
        text_string(key, frame->path ? frame->path : frame->object ? frame->object : "?");
    else
        text_format(key, "%s\n%s\n%s", frame->function, frame->path ? frame->path : "",
                    frame->object ? frame->object : "");
    if (by == PLACES_BY_LINE)
        text_format(key, "\n%u", frame->line);
}

struct making {
    struct places *places;
    enum places_by by;
    struct text key;
};

static void add_stack(void *context, const struct place_stack *stack) {
    struct making *making = context;
    struct places *places = making->places;
    const struct place_frame *frame = &stack->frames[stack->place];
    bool is_new;
    places_key(frame, making->by, &making->key);
    uint32_t number = map_texts_add(&places->keys, making->key.bytes, making->key.size, &is_new);
    if (is_new)
        *vector_push(places->list, places->count) =
            (struct place){.frame = {.function = base_copy(frame->function),
                                     .path = copy_or_null(frame->path),
                                     .object = copy_or_null(frame->object),
                                     .line = frame->line}};
    struct place *place = &places->list[number];
    place->stacks++;
    for (size_t i = 0; i < PLACE_VALUES; i++)
        place->values[i] += stack->values[i];
}

char *places_make(const struct document *document, enum places_by by, bool innermost,
                  struct places *places) {
    struct making making = {.places = places, .by = by};
    *places = (struct places){0};
    bool fine = places_visit(document, innermost, add_stack, &making);
    text_free(&making.key);
    return fine ? NULL : base_copy("the file does not say where memory was allocated");
}

void places_free(struct places *places) {
    for (size_t i = 0; i < places->count; i++) {
        free(places->list[i].frame.function);
        free(places->list[i].frame.path);
        free(places->list[i].frame.object);
    }
    free(places->list);
    map_texts_free(&places->keys);
}

// ---- the table ----

enum places_by places_asked(const struct ask *ask) {
    static const char *const names[] = {"line", "function", "file", "library"};
    const char *by = ask_value(ask, "by");
    for (size_t i = 0; by && i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], by) == 0)
            return (enum places_by)i;
    return PLACES_BY_LINE;
}

void places_add_frame(const struct place_frame *frame, struct json *json) {
    json_string_at(json, "function", frame->function);
    json_string_at(json, "path", frame->path);
    json_number_at(json, "line", frame->line);
    json_string_at(json, "library", frame->object ? heap_file_base(frame->object) : NULL);
}

struct order {
    const struct places *places;
    size_t by; // PLACE_VALUES: the name
};

static int compare(const void *left, const void *right, void *context) {
    const struct order *order = context;
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    const struct place *first = &order->places->list[a], *second = &order->places->list[b];
    if (order->by == PLACE_VALUES)
        return strcmp(first->frame.function, second->frame.function);
    uint64_t x = first->values[order->by], y = second->values[order->by];
    return x != y ? (x < y ? 1 : -1) : a < b ? -1 : a > b;
}

static bool is_wanted(const struct place_frame *frame, const char *search) {
    return !search || !*search || strcasestr(frame->function, search) ||
           (frame->path && strcasestr(frame->path, search)) ||
           (frame->object && strcasestr(frame->object, search));
}

static size_t sorted_by(const struct ask *ask) {
    const char *sort = ask_value(ask, "sort");
    if (sort && strcmp(sort, "name") == 0)
        return PLACE_VALUES;
    for (size_t i = 0; sort && i < PLACE_VALUES; i++)
        if (strcmp(place_values[i], sort) == 0)
            return i;
    return PLACE_PEAK;
}

static void add_row(const struct places *places, uint32_t number, struct json *json) {
    const struct place *place = &places->list[number];
    json_open(json, '{');
    json_number_at(json, "place", number);
    places_add_frame(&place->frame, json);
    json_bool_at(json, "own",
                 own_frame(place->frame.function, place->frame.path, place->frame.object));
    json_number_at(json, "stacks", place->stacks);
    for (size_t i = 0; i < PLACE_VALUES; i++)
        json_number_at(json, place_values[i], place->values[i]);
    json_close(json, '}');
}

char *answer_places(struct document *document, const struct ask *ask, struct json *json) {
    struct places places;
    char *problem = places_make(document, places_asked(ask), ask_flag(ask, "innermost"), &places);
    if (problem)
        return problem;
    uint32_t *rows = base_allocate((places.count + 1) * sizeof *rows);
    size_t count = 0;
    for (size_t i = 0; i < places.count; i++)
        if (is_wanted(&places.list[i].frame, ask_value(ask, "search")))
            rows[count++] = (uint32_t)i;
    struct order order = {&places, sorted_by(ask)};
    qsort_r(rows, count, sizeof *rows, compare, &order);
    uint64_t offset = ask_number(ask, "offset", 0, UINT32_MAX);
    uint64_t most = ask_number(ask, "count", ROWS, ROWS_MOST);
    json_open(json, '{');
    json_bool_at(json, "temporary", document->format == &document_recording);
    json_number_at(json, "count", count);
    json_open_at(json, "rows", '[');
    for (uint64_t i = offset; i < count && i - offset < most; i++)
        add_row(&places, rows[i], json);
    json_close(json, ']');
    json_close(json, '}');
    free(rows);
    places_free(&places);
    return NULL;
}
