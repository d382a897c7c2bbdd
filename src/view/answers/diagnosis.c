// What is wrong with a program's memory, as quern diagnose says it.
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "report/diagnose/diagnose.h"
#include "view/answers/answers.h"

static void add_diagnosis(const struct diagnosis *diagnosis, struct json *json) {
    json_open(json, '{');
    json_string_at(json, "word", diagnosis_word(diagnosis->kind));
    json_string_at(json, "title", diagnosis_title(diagnosis->kind));
    json_string_at(json, "certainty", diagnosis_certainty(diagnosis->certainty));
    json_string_at(json, "evidence", diagnosis->evidence);
    json_string_at(json, "advice", diagnosis_advice(diagnosis->kind));
    json_number_at(json, "bytes", diagnosis->bytes);
    json_name(json, "frames");
    json_open(json, '[');
    for (size_t i = 0; i < diagnosis->frame_count; i++)
        json_string(json, diagnosis->frames[i].function);
    json_close(json, ']');
    json_close(json, '}');
}

static void add_all(const struct diagnoses *diagnoses, struct json *json) {
    json_open(json, '{');
    json_name(json, "rows");
    json_open(json, '[');
    for (size_t i = 0; i < diagnoses->count; i++)
        add_diagnosis(&diagnoses->items[i], json);
    json_close(json, ']');
    json_close(json, '}');
}

char *answer_diagnosis(struct document *document, const struct ask *ask, struct json *json) {
    struct diagnoses diagnoses = {0};
    char *problem = NULL;
    if (document->format == &document_dhat) {
        diagnose_dhat(document->dhat, &diagnoses);
    } else if (document->format != &document_recording) {
        return base_copy("only recordings and dhat.out files can be diagnosed");
    } else if (document->window.from || document->window.to != UINT64_MAX) {
        return base_copy("a diagnosis is of the whole run");
    } else {
        int fd = open(document->path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return base_copy("the file cannot be read again");
        problem = diagnose(fd, &document->heap, &diagnoses);
        close(fd);
    }
    if (!problem)
        add_all(&diagnoses, json);
    diagnoses_free(&diagnoses);
    return problem;
}
