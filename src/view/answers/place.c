// One place: the lines of its source with what they allocate, and its largest stacks.
#include <stdlib.h>
#include <string.h>

#include "view/answers/places.h"
#include "view/answers/source_file.h"

#define AROUND 12 // lines before and after the place
#define STACKS 8

// ---- stacks ----

struct search {
    const struct text *key; // of the place
    enum places_by by;
    struct text own;
    size_t count;
    // The largest so far, as JSON.
    struct {
        uint64_t weight;
        struct json json;
    } largest[STACKS];
};

static void write_stack(const struct place_stack *stack, struct json *json) {
    json_open(json, '{');
    for (size_t i = 0; i < PLACE_VALUES; i++)
        json_number_at(json, place_values[i], stack->values[i]);
    json_number_at(json, "at", stack->place);
    json_open_at(json, "frames", '[');
    for (size_t i = 0; i < stack->count; i++) {
        json_open(json, '{');
        places_add_frame(&stack->frames[i], json);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_close(json, '}');
}

static void look_at_stack(void *context, const struct place_stack *stack) {
    struct search *search = context;
    places_key(&stack->frames[stack->place], search->by, &search->own);
    if (strcmp(search->own.bytes, search->key->bytes) != 0)
        return;
    uint64_t weight =
        stack->values[PLACE_PEAK] ? stack->values[PLACE_PEAK] : stack->values[PLACE_TOTAL];
    size_t at = search->count < STACKS ? search->count : STACKS;
    while (at && search->largest[at - 1].weight < weight)
        at--;
    search->count++;
    if (at == STACKS)
        return;
    text_free(&search->largest[STACKS - 1].json.text);
    memmove(&search->largest[at + 1], &search->largest[at],
            (STACKS - 1 - at) * sizeof search->largest[0]);
    search->largest[at].weight = weight;
    search->largest[at].json = (struct json){0};
    write_stack(stack, &search->largest[at].json);
}

static void add_stacks(const struct document *document, const struct text *key, enum places_by by,
                       bool innermost, struct json *json) {
    struct search search = {.key = key, .by = by};
    places_visit(document, innermost, look_at_stack, &search);
    json_number_at(json, "stack_count", search.count);
    json_open_at(json, "stacks", '[');
    for (size_t i = 0; i < STACKS && i < search.count; i++) {
        json_raw(json, search.largest[i].json.text.bytes);
        text_free(&search.largest[i].json.text);
    }
    json_close(json, ']');
    text_free(&search.own);
}

// ---- source ----

// What the lines of the place's file allocate, all functions together.
static const uint64_t *values_of(const struct places *lines, const char *path, uint32_t line,
                                 uint64_t *sums) {
    memset(sums, 0, PLACE_VALUES * sizeof *sums);
    for (size_t i = 0; i < lines->count; i++) {
        const struct place *place = &lines->list[i];
        if (place->frame.line == line && place->frame.path && strcmp(place->frame.path, path) == 0)
            for (size_t j = 0; j < PLACE_VALUES; j++)
                sums[j] += place->values[j];
    }
    return sums;
}

// [line, text, value, ...]
static void add_source(const struct places *lines, const struct place_frame *frame,
                       struct json *json) {
    FILE *file = frame->path ? source_file_open(frame->path) : NULL;
    uint32_t from = frame->line > AROUND ? frame->line - AROUND : 1;
    char *text = NULL;
    size_t room = 0;
    json_bool_at(json, "found", file != NULL);
    json_open_at(json, "lines", '[');
    for (uint32_t line = 1; file && line <= frame->line + AROUND; line++) {
        uint64_t sums[PLACE_VALUES];
        if (!source_file_line(file, &text, &room))
            break;
        if (line < from)
            continue;
        values_of(lines, frame->path, line, sums);
        json_open(json, '[');
        json_number(json, line);
        json_string(json, text);
        for (size_t i = 0; i < PLACE_VALUES; i++)
            json_number(json, sums[i]);
        json_close(json, ']');
    }
    json_close(json, ']');
    if (file)
        fclose(file);
    free(text);
}

char *answer_place(struct document *document, const struct ask *ask, struct json *json) {
    enum places_by by = places_asked(ask);
    bool innermost = ask_flag(ask, "innermost");
    struct places places, lines;
    char *problem = places_make(document, by, innermost, &places);
    uint64_t number = ask_number(ask, "place", 0, UINT32_MAX);
    if (!problem && number >= places.count) {
        places_free(&places);
        problem = base_copy("there is no such place");
    }
    if (problem)
        return problem;
    free(places_make(document, PLACES_BY_LINE, innermost, &lines));
    const struct place_frame *frame = &places.list[number].frame;
    struct text key = {0};
    places_key(frame, by, &key);
    json_open(json, '{');
    json_number_at(json, "place", number);
    places_add_frame(frame, json);
    json_bool_at(json, "newer", frame->path && source_file_is_newer(frame->path, document->path));
    add_source(&lines, frame, json);
    add_stacks(document, &key, by, innermost, json);
    json_close(json, '}');
    text_free(&key);
    places_free(&places);
    places_free(&lines);
    return NULL;
}
