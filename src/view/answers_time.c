// What happened when: the heap over time, by site, and histograms of sizes and lifetimes.
#include <stdlib.h>

#include "report/heap_rows.h"
#include "view/answers.h"
#include "view/heap_details.h"
#include "view/timeline.h"

// ---- the heap over time ----

static void add_massif(const struct massif_file *file, struct json *json) {
    static const char *const kinds[] = {"empty", "detailed", "peak"};
    json_string_at(json, "unit", file->time_unit);
    json_name(json, "points");
    json_open(json, '[');
    for (size_t i = 0; i < file->snapshot_count; i++) {
        const struct massif_file_snapshot *snapshot = &file->snapshots[i];
        json_open(json, '{');
        json_number_at(json, "time", snapshot->time);
        json_number_at(json, "heap", snapshot->heap);
        json_number_at(json, "extra", snapshot->extra);
        json_number_at(json, "stacks", snapshot->stacks);
        json_number_at(json, "number", snapshot->number);
        json_string_at(json, "kind", kinds[snapshot->kind]);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void add_recording(const struct document *document, struct json *json) {
    const struct view_timeline *timeline = document->timeline;
    json_string_at(json, "unit", "nanoseconds");
    json_number_at(json, "end", timeline->end);
    json_number_at(json, "peak", document->heap.summary.peak_time);
    json_name(json, "points");
    json_open(json, '[');
    for (size_t i = 0; i < timeline->count; i++) {
        const struct view_timeline_step *step = &timeline->steps[i];
        uint64_t time = timeline->length * (i + 1);
        json_open(json, '{');
        json_number_at(json, "time", time < timeline->end ? time : timeline->end);
        json_number_at(json, "most", step->most);
        json_number_at(json, "heap", step->last);
        if (step->resident)
            json_number_at(json, "resident", step->resident);
        json_close(json, '}');
    }
    json_close(json, ']');
}

char *answer_timeline(struct document *document, const struct ask *ask, struct json *json) {
    if (!document_has_view(document, "timeline"))
        return base_copy("the file says nothing of time");
    json_open(json, '{');
    if (document->format == &document_massif)
        add_massif(&document->massif, json);
    else
        add_recording(document, json);
    json_close(json, '}');
    return NULL;
}

// ---- by site ----

struct label {
    struct json *json;
};

static void add_frame(void *context, const struct heap_place *place,
                      const struct symbol_frame *frame) {
    struct label *label = context;
    char *name = heap_file_label(frame);
    json_string(label->json, name);
    free(name);
}

char *answer_sites(struct document *document, const struct ask *ask, struct json *json) {
    struct heap_details *details =
        document->format == &document_recording ? document_details(document) : NULL;
    if (!details)
        return base_copy("the file does not say who held what when");
    json_open(json, '{');
    json_number_at(json, "end", details->end);
    json_name(json, "sites");
    json_open(json, '[');
    for (size_t i = 0; i < details->site_count; i++) {
        json_open(json, '{');
        json_number_at(json, "stack", details->sites[i]);
        json_number_at(json, "peak", document->heap.summary.sites[details->sites[i]].peak_bytes);
        json_name(json, "frames");
        json_open(json, '[');
        rows_frames(&document->heap, details->sites[i], add_frame, &(struct label){json});
        json_close(json, ']');
        json_close(json, '}');
    }
    json_close(json, ']');
    // In the order of the sites, what all others hold last.
    json_name(json, "steps");
    json_open(json, '[');
    for (size_t i = 0; i < HEAP_DETAILS_STEPS; i++) {
        json_open(json, '[');
        for (size_t j = 0; j < details->site_count; j++)
            json_number(json, details->steps[i][j]);
        json_number(json, details->steps[i][HEAP_DETAILS_SITES]);
        json_close(json, ']');
    }
    json_close(json, ']');
    json_close(json, '}');
    return NULL;
}

// ---- histograms ----

static void add_bins(struct json *json, const char *name, const struct heap_details_bin *bins,
                     uint64_t unit) {
    size_t last = HEAP_DETAILS_POWERS;
    while (last && !bins[last].blocks)
        last--;
    json_name(json, name);
    json_open(json, '[');
    for (size_t i = 0; i <= last; i++) {
        json_open(json, '{');
        json_number_at(json, "from", i ? (1ull << (i - 1)) * unit : 0);
        json_number_at(json, "to", i < 64 ? (1ull << i) * unit : UINT64_MAX);
        json_number_at(json, "blocks", bins[i].blocks);
        json_number_at(json, "bytes", bins[i].bytes);
        json_close(json, '}');
    }
    json_close(json, ']');
}

char *answer_histograms(struct document *document, const struct ask *ask, struct json *json) {
    struct heap_details *details =
        document->format == &document_recording ? document_details(document) : NULL;
    if (!details)
        return base_copy("the file does not tell blocks apart");
    json_open(json, '{');
    add_bins(json, "sizes", details->sizes, 1);
    add_bins(json, "lifetimes", details->lives, RECORDING_TIME_UNIT);
    json_close(json, '}');
    return NULL;
}
