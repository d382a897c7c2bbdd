// What is wrong with a program's memory, as quern diagnose says it.
#include <stdlib.h>

#include "report/diagnose/diagnose.h"
#include "view/answers/answers.h"

// The program's own function and line.
static void add_place(const struct diagnosis *diagnosis, struct json *json) {
    if (diagnosis->own >= diagnosis->frame_count)
        return;
    const struct result_frame *frame = &diagnosis->frames[diagnosis->own];
    struct text place = {0};
    text_string(&place, frame->function ? frame->function : "???");
    if (frame->path && frame->line)
        text_format(&place, " (%s:%u)", heap_file_base(frame->path), frame->line);
    json_string_at(json, "place", place.bytes);
    text_free(&place);
}

static void add_diagnosis(const struct diagnosis *diagnosis, struct json *json) {
    json_open(json, '{');
    json_string_at(json, "word", diagnosis_word(diagnosis->kind));
    json_string_at(json, "title", diagnosis_title(diagnosis->kind));
    json_string_at(json, "certainty", diagnosis_certainty(diagnosis->certainty));
    json_string_at(json, "evidence", diagnosis->evidence);
    json_string_at(json, "advice", diagnosis_advice(diagnosis->kind));
    json_string_at(json, "holder", diagnosis->holder);
    json_number_at(json, "bytes", diagnosis->bytes);
    add_place(diagnosis, json);
    json_open_at(json, "frames", '[');
    for (size_t i = 0; i < diagnosis->frame_count; i++)
        json_string(json, diagnosis->frames[i].function);
    json_close(json, ']');
    json_close(json, '}');
}

static void add_all(const struct diagnoses *diagnoses, struct json *json) {
    json_open(json, '{');
    json_open_at(json, "rows", '[');
    for (size_t i = 0; i < diagnoses->count; i++)
        add_diagnosis(&diagnoses->items[i], json);
    json_close(json, ']');
    json_close(json, '}');
}

char *answer_diagnosis(struct document *document, const struct ask *ask, struct json *json) {
    char *problem = NULL;
    if (document->format != &document_dhat && document->format != &document_recording)
        return base_copy("only recordings and dhat.out files can be diagnosed");
    if (document->window.from || document->window.to != UINT64_MAX)
        return base_copy("a diagnosis is of the whole run");
    const struct diagnoses *diagnoses = document_diagnoses(document, &problem);
    if (diagnoses)
        add_all(diagnoses, json);
    return problem;
}
