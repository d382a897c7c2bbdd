// What happened when: the heap over time, by site, and histograms of sizes and lifetimes.
#include <stdlib.h>
#include <string.h>

#include "report/heap/rows.h"
#include "report/results/results.h"
#include "report/shared/own.h"
#include "view/answers/answers.h"
#include "view/documents/heap_details.h"
#include "profile/heap/timeline.h"

#define MARKS_MOST 1000 // that are told

// ---- the heap over time ----

static void add_massif(const struct massif_file *file, struct json *json) {
    static const char *const kinds[] = {"empty", "detailed", "peak"};
    json_string_at(json, "unit", file->time_unit);
    json_open_at(json, "points", '[');
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

// What the program has said about itself.
static void add_marks(const struct marks *marks, struct json *json) {
    json_open_at(json, "marks", '[');
    for (size_t i = 0; i < marks->count && i < MARKS_MOST; i++) {
        const struct marks_point *point = &marks->points[i];
        json_open(json, '{');
        json_number_at(json, "time", point->time);
        json_string_at(json, "kind", point->kind == HEAP_MARK_SNAPSHOT ? "snapshot" : "marker");
        json_string_at(json, "name", point->name);
        json_number_at(json, "heap", point->live_bytes);
        json_number_at(json, "blocks", point->live_blocks);
        json_number_at(json, "thread", point->thread);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_number_at(json, "marks_count", marks->count + marks->left_out);
    json_open_at(json, "scopes", '[');
    for (size_t i = 0; i < marks->scope_count && i < MARKS_MOST; i++) {
        const struct marks_scope *scope = &marks->scopes[i];
        json_open(json, '{');
        json_string_at(json, "name", scope->name);
        json_number_at(json, "entered", scope->entered);
        json_number_at(json, "time", scope->time);
        json_number_at(json, "blocks", scope->count.allocated);
        json_number_at(json, "bytes", scope->count.allocated_bytes);
        json_number_at(json, "freed", scope->count.freed_bytes);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void add_recording(const struct document *document, struct json *json) {
    const struct timeline *timeline = document->timeline;
    json_string_at(json, "unit", "nanoseconds");
    json_number_at(json, "end", timeline->end);
    json_number_at(json, "peak", document->heap.summary.peak_time);
    json_open_at(json, "points", '[');
    for (size_t i = 0; i < timeline->count; i++) {
        const struct timeline_step *step = &timeline->steps[i];
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
    add_marks(&document->heap.summary.marks, json);
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
    struct own_search search;
    size_t count, own; // the first own frame, or SIZE_MAX
    char *place;       // its line
};

static void add_frame(void *context, const struct heap_place *place,
                      const struct symbol_frame *frame) {
    struct label *label = context;
    char *name = symbol_frame_label(frame), *path = result_path(frame);
    json_string(label->json, name);
    if (own_search_next(&label->search, name, path, frame->object)) {
        struct text text = {0};
        free(label->place);
        if (frame->line)
            text_format(&text, "%s:%u", heap_file_base(frame->file), frame->line);
        label->own = label->count;
        label->place = frame->line ? text_take(&text) : NULL;
    }
    label->count++;
    free(path);
    free(name);
}

// Of a massif.out: the first functions below the root of each detailed snapshot, by their text
// behind the address.
struct massif_site {
    const char *text;
    uint64_t most;
};

#define MASSIF_SITES 4096 // that are told apart

// What stands behind the address; NULL: it is no function, but what lies below the threshold.
static const char *site_of(const struct massif_file_node *node) {
    const char *text = node->text + strspn(node->text, " ");
    const char *colon = strncmp(text, "0x", 2) == 0 ? strstr(text, ": ") : NULL;
    return colon ? colon + 2 : NULL;
}

static size_t skip_tree(const struct massif_file *file, size_t node) {
    size_t left = 1;
    for (; left && node < file->node_count; node++)
        left += file->nodes[node].children - 1;
    return node;
}

static struct massif_site *find_site(struct massif_site *sites, size_t count, const char *text) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(sites[i].text, text) == 0)
            return &sites[i];
    return NULL;
}

// Adds what each site holds in a snapshot to values; NULL: notes the sites and the most of each.
static void visit_sites(const struct massif_file *file, const struct massif_file_snapshot *snapshot,
                        struct massif_site *sites, size_t *count, uint64_t *values) {
    const struct massif_file_node *root = &file->nodes[snapshot->first_node];
    size_t node = snapshot->first_node + 1;
    for (size_t i = 0; i < root->children && node < file->node_count; i++) {
        const struct massif_file_node *child = &file->nodes[node];
        const char *text = site_of(child);
        struct massif_site *site = text ? find_site(sites, *count, text) : NULL;
        if (!values && !site && text && *count < MASSIF_SITES) {
            site = &sites[(*count)++];
            *site = (struct massif_site){.text = text};
        }
        if (!values && site && child->bytes > site->most)
            site->most = child->bytes;
        if (values)
            values[site ? (size_t)(site - sites) : *count] += child->bytes;
        node = skip_tree(file, node);
    }
}

static int by_most(const void *left, const void *right) {
    const struct massif_site *a = left, *b = right;
    return a->most < b->most ? 1 : a->most > b->most ? -1 : strcmp(a->text, b->text);
}

static void add_massif_steps(const struct massif_file *file, struct massif_site *sites,
                             size_t count, struct json *json) {
    json_open_at(json, "times", '[');
    for (size_t i = 0; i < file->snapshot_count; i++)
        if (file->snapshots[i].kind != MASSIF_FILE_EMPTY)
            json_number(json, file->snapshots[i].time);
    json_close(json, ']');
    json_open_at(json, "steps", '[');
    for (size_t i = 0; i < file->snapshot_count; i++) {
        uint64_t values[HEAP_DETAILS_SITES + 1] = {0};
        if (file->snapshots[i].kind == MASSIF_FILE_EMPTY)
            continue;
        visit_sites(file, &file->snapshots[i], sites, &count, values);
        json_open(json, '[');
        for (size_t j = 0; j <= count; j++)
            json_number(json, values[j]);
        json_close(json, ']');
    }
    json_close(json, ']');
}

static char *massif_sites(const struct massif_file *file, struct json *json) {
    struct massif_site *sites = base_allocate(MASSIF_SITES * sizeof *sites);
    size_t count = 0;
    for (size_t i = 0; i < file->snapshot_count; i++)
        if (file->snapshots[i].kind != MASSIF_FILE_EMPTY)
            visit_sites(file, &file->snapshots[i], sites, &count, NULL);
    if (count)
        qsort(sites, count, sizeof *sites, by_most);
    count = count < HEAP_DETAILS_SITES ? count : HEAP_DETAILS_SITES;
    json_open(json, '{');
    json_open_at(json, "sites", '[');
    for (size_t i = 0; i < count; i++) {
        json_open(json, '{');
        json_number_at(json, "stack", i);
        json_number_at(json, "peak", sites[i].most);
        json_open_at(json, "frames", '[');
        json_string(json, sites[i].text);
        json_close(json, ']');
        json_close(json, '}');
    }
    json_close(json, ']');
    add_massif_steps(file, sites, count, json);
    json_close(json, '}');
    free(sites);
    return count ? NULL : base_copy("there is no detailed snapshot, and so nothing by site");
}

char *answer_sites(struct document *document, const struct ask *ask, struct json *json) {
    if (document->format == &document_massif)
        return massif_sites(&document->massif, json);
    struct heap_details *details =
        document->format == &document_recording ? document_details(document) : NULL;
    if (!details)
        return base_copy("the file does not say who held what when");
    json_open(json, '{');
    json_number_at(json, "end", details->end);
    json_open_at(json, "sites", '[');
    for (size_t i = 0; i < details->site_count; i++) {
        json_open(json, '{');
        json_number_at(json, "stack", details->sites[i]);
        json_number_at(json, "peak", document->heap.summary.sites[details->sites[i]].peak_bytes);
        json_open_at(json, "frames", '[');
        struct label label = {.json = json, .own = SIZE_MAX};
        rows_frames(&document->heap, details->sites[i], add_frame, &label);
        json_close(json, ']');
        if (label.own != SIZE_MAX) {
            json_number_at(json, "own", label.own);
            json_string_at(json, "place", label.place);
        }
        free(label.place);
        json_close(json, '}');
    }
    json_close(json, ']');
    // In the order of the sites, what all others hold last.
    json_open_at(json, "steps", '[');
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
    json_open_at(json, name, '[');
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
    add_bins(json, "lifetimes", details->lives, RECORDING_TIME_SHARED);
    json_close(json, '}');
    return NULL;
}
