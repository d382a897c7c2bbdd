// Recordings of --tool=heap as documents.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "report/heap/export.h"
#include "report/heap/filter.h"
#include "report/heap/rows.h"
#include "view/documents/document.h"
#include "view/documents/heap_details.h"
#include "profile/heap/timeline.h"

#define TOLD_EVERY 100000000 // nanoseconds

static struct heap_filter filter_of(const struct document *document) {
    struct heap_filter filter = HEAP_FILTER_ALL;
    filter.from = document->window.from;
    filter.to = document->window.to;
    return filter;
}

static bool is_part(const struct document *document) {
    return document->window.from || document->window.to != UINT64_MAX;
}

// ---- while it is read ----

struct progress {
    const struct document *document;
    uint64_t told; // nanoseconds, when it was told last
};

// Samples come often enough, and far more seldom than events.
static void on_sample(void *context, const struct heap_sample *sample) {
    struct progress *progress = context;
    const struct document *document = progress->document;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    uint64_t time = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    if (time - progress->told < TOLD_EVERY)
        return;
    progress->told = time;
    struct document_so_far so_far = {document->heap.summary.total.allocated, document->timeline};
    document->watch->so_far(document->watch->context, &so_far);
}

static char *read_recording(struct document *document, int fd) {
    struct heap_filter filter = filter_of(document);
    document->timeline = base_allocate(sizeof *document->timeline);
    *document->timeline = (struct timeline){0};
    struct progress progress = {.document = document};
    struct heap_sink watch = {.context = &progress, .sample = on_sample};
    bool is_watched = document->watch && document->watch->so_far;
    char *problem = is_part(document) ? heap_filter_read(fd, &document->heap, &filter, NULL, 0)
                                      : heap_file_read_sums(fd, &document->heap, document->timeline,
                                                            is_watched ? &watch : NULL);
    if (problem)
        return problem;
    const struct recording_info *info = &document->heap.info;
    if (info->damage && !info->process.command)
        return base_copy(info->damage);
    document->command = info->process.command;
    document->notice = heap_file_notice(&document->heap);
    if (document->notice && !document->heap.summary.total.allocated) {
        struct text text = {0};
        text_format(&text, "%s: nothing of the run is left in it", document->notice);
        free(document->notice);
        document->notice = text_take(&text);
    }
    for (size_t i = 0; i < heap_weight_count; i++)
        document->metrics[document->metric_count++] = (struct document_metric){
            .name = heap_weights[i].name,
            .help = heap_weights[i].help,
            .unit = heap_weights[i].unit,
            .total = heap_weight_of(&heap_weights[i], &document->heap.summary.total),
        };
    return NULL;
}

static void free_recording(struct document *document) {
    heap_file_free(&document->heap);
    free(document->timeline);
    if (document->details)
        heap_details_free(document->details);
}

struct heap_details *document_details(struct document *document) {
    struct heap_filter filter = filter_of(document);
    pthread_mutex_lock(&document->reading);
    if (!document->details)
        document->details = heap_details_read(document->path, &document->heap, &filter);
    pthread_mutex_unlock(&document->reading);
    return document->details;
}

static struct calltree *tree_of(struct document *document, unsigned metric) {
    return rows_tree(&document->heap, &heap_weights[metric], false, DOCUMENT_NODES_MAX);
}

// The clock goes by the run: what it shows at the end of a part is not how long that took.
static void add_times(const struct document *document, const struct document_sink *sink) {
    uint64_t end = document->heap.summary.time;
    uint64_t from = document->window.from < end ? document->window.from : end;
    if (!is_part(document)) {
        document_fact(sink, "time", end, "nanoseconds");
        return;
    }
    document_fact(sink, "window from", from, "nanoseconds");
    document_fact(sink, "window to", end, "nanoseconds");
    document_fact(sink, "length of the window", end - from, "nanoseconds");
}

static void add_facts(struct document *document, const struct document_sink *sink) {
    const struct summary *summary = &document->heap.summary;
    const struct summary_site *total = &summary->total;
    document_fact(sink, "peak of the heap", total->peak_bytes, "bytes");
    document_fact(sink, "time of the peak", summary->peak_time, "nanoseconds");
    document_fact(sink, "blocks at the peak", total->peak, "blocks");
    document_fact(sink, "allocated", total->allocated_bytes, "bytes");
    document_fact(sink, "allocations", total->allocated, "blocks");
    document_fact(sink, "temporary allocations", total->temporary, "blocks");
    document_fact(sink, "resizes", summary->resized, "");
    document_fact(sink, "not freed", total->live_bytes, "bytes");
    document_fact(sink, "blocks not freed", total->live, "blocks");
    document_fact(sink, "mapped by the program itself", summary->regions.bytes, "bytes");
    document_fact(sink, "peak of resident memory", summary->resident.peak_bytes, "bytes");
    document_fact(sink, "threads", summary->threads, "");
    add_times(document, sink);
    char pid[16];
    snprintf(pid, sizeof pid, "%d", document->heap.info.process.pid);
    document_fact_text(sink, "process", pid);
}

static const char *const views[] = {"timeline",   "diagnosis", "places", "threads",
                                    "histograms", "query",     NULL};

const struct document_format document_recording = {
    .name = "recording",
    .help = "a recording of --tool=heap",
    .is_one = heap_file_is_one,
    .read = read_recording,
    .free = free_recording,
    .tree = tree_of,
    .facts = add_facts,
    .views = views,
};
