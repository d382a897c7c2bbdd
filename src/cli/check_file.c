#include "cli/check_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "view/documents/document.h"
#include "view/documents/findings_file.h"

// ---- numbers -----------------------------------------------------------------------------------

static char *read_recording(struct document *document, const struct check_needs *needs,
                            struct check_file *file) {
    const struct summary_site *total = &document->heap.summary.total;
    budget_number(&file->numbers, BUDGET_PEAK, total->peak_bytes);
    budget_number(&file->numbers, BUDGET_LEAKED, total->live_bytes);
    budget_number(&file->numbers, BUDGET_ALLOCATIONS, total->allocated);
    file->is_diagnosed = true;
    if (!needs->growth && !needs->diagnosis)
        return NULL;
    int fd = open(document->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return base_copy(strerror(errno));
    char *problem = diagnose(fd, &document->heap, &file->diagnoses);
    close(fd);
    budget_number(&file->numbers, BUDGET_GROWTH, (uint64_t)(60 * diagnoses_rate(&file->diagnoses)));
    if (!needs->diagnosis)
        diagnoses_free(&file->diagnoses);
    return problem;
}

static void read_dhat(const struct dhat_file *from, const struct check_needs *needs,
                      struct check_file *file) {
    struct dhat_point sum = {0};
    if (strcmp(from->mode, "heap") != 0)
        return;
    for (size_t i = 0; i < from->point_count; i++) {
        sum.gb += from->points[i].gb;
        sum.eb += from->points[i].eb;
        sum.tbk += from->points[i].tbk;
    }
    if (from->bklt) {
        budget_number(&file->numbers, BUDGET_PEAK, sum.gb);
        budget_number(&file->numbers, BUDGET_LEAKED, sum.eb);
    }
    budget_number(&file->numbers, BUDGET_ALLOCATIONS, sum.tbk);
    file->is_diagnosed = from->bkacc;
    if (needs->diagnosis)
        diagnose_dhat(from, &file->diagnoses);
}

// ---- errors and leaks --------------------------------------------------------------------------

static char *copy_or_null(const char *text) {
    return text ? base_copy(text) : NULL;
}

static char *path_of(const struct findings_frame *frame) {
    if (!frame->file || frame->file[0] == '/' || !frame->directory)
        return copy_or_null(frame->file);
    struct text path = {0};
    text_format(&path, "%s/%s", frame->directory, frame->file);
    return text_take(&path);
}

static void add_section(const struct findings_section *section, bool first, struct results *results,
                        struct result *result) {
    struct result_frame *frames = base_allocate((section->frame_count + 1) * sizeof *frames);
    for (size_t i = 0; i < section->frame_count; i++) {
        const struct findings_frame *from = &section->frames[i];
        frames[i] = (struct result_frame){
            .function = copy_or_null(from->function),
            .object = copy_or_null(from->object),
            .path = path_of(from),
            .line = from->line,
            .address = from->address ? strtoull(from->address, NULL, 16) : 0,
        };
    }
    if (!first && section->text)
        results_add_remark(result, section->text);
    if (first || section->frame_count)
        results_add_stack(results, result, first ? NULL : section->text, frames,
                          section->frame_count);
    else
        free(frames);
}

// By default memcheck counts these as errors.
static bool is_error(const struct findings_finding *finding) {
    return !finding->is_leak || !finding->kind ||
           strcmp(finding->kind, "Leak_DefinitelyLost") == 0 ||
           strcmp(finding->kind, "Leak_PossiblyLost") == 0;
}

static void add_finding(const struct findings_finding *finding, int pid, struct results *results) {
    enum result_level level = !finding->is_leak   ? RESULT_ERROR
                              : is_error(finding) ? RESULT_WARNING
                                                  : RESULT_NOTE;
    struct text message = {0};
    text_string(&message, finding->what ? finding->what : "");
    char *record = strstr(message.bytes, " in loss record ");
    if (record)
        *record = 0;
    const char *rule = result_rule(finding->kind ? finding->kind : "");
    struct result *result = results_add(results, rule, level, message.bytes, pid);
    text_free(&message);
    result->fails = is_error(finding);
    result->count = finding->count;
    for (size_t i = 0; i < finding->section_count; i++)
        add_section(&finding->sections[i], i == 0, results, result);
    result->suppression = findings_suppression(finding);
}

static void read_findings(const struct findings_file *from, struct results *results,
                          struct check_file *file) {
    uint64_t lost = 0;
    int pid = from->pid ? atoi(from->pid) : 0;
    for (size_t i = 0; i < from->count; i++) {
        const struct findings_finding *finding = &from->list[i];
        if (finding->is_leak && (!finding->kind || strcmp(finding->kind, "Leak_StillReachable")))
            lost += finding->own_bytes;
        add_finding(finding, pid, results);
    }
    file->found = from->count;
    budget_number(&file->numbers, BUDGET_LEAKED, lost);
}

// ---- all of them -------------------------------------------------------------------------------

char *check_file_read(const char *path, const struct check_needs *needs, struct results *results,
                      struct check_file *file) {
    struct document *document = document_open(path, DOCUMENT_WINDOW_ALL, NULL);
    char *problem = document->problem ? base_copy(document->problem) : NULL;
    *file = (struct check_file){0};
    if (!problem) {
        file->notice = copy_or_null(document->notice);
        if (document->format == &document_recording)
            problem = read_recording(document, needs, file);
        else if (document->format == &document_massif)
            budgets_massif(&file->numbers, &document->massif);
        else if (document->dhat)
            read_dhat(document->dhat, needs, file);
        else if (document->findings)
            read_findings(document->findings, results, file);
        else
            problem = base_copy("it has neither heap numbers nor findings; give a recording, "
                                "a massif.out, a dhat.out or XML of memcheck");
    }
    document_free(document);
    return problem;
}

void check_file_free(struct check_file *file) {
    diagnoses_free(&file->diagnoses);
    free(file->notice);
}
