// A recording as a pprof profile. Inlined functions are locations of their own. The numbers of a
// stack are one sample with a value for each type.
#include <stdlib.h>
#include <string.h>

#include "report/heap/rows.h"
#include "report/shared/pprof.h"

static const struct {
    const char *name, *unit;
    const char *weight; // of --by; NULL: none
    size_t offset;
} types[] = {
    {"alloc_objects", "count", "count", offsetof(struct summary_site, allocated)},
    {"alloc_space", "bytes", "total", offsetof(struct summary_site, allocated_bytes)},
    {"temporary_objects", "count", "temporary", offsetof(struct summary_site, temporary)},
    {"peak_objects", "count", NULL, offsetof(struct summary_site, peak)},
    {"peak_space", "bytes", "peak", offsetof(struct summary_site, peak_bytes)},
    {"inuse_objects", "count", NULL, offsetof(struct summary_site, live)},
    {"inuse_space", "bytes", "leaked", offsetof(struct summary_site, live_bytes)},
};

#define TYPES (sizeof types / sizeof *types)

void rows_pprof_frame(void *profile, const struct heap_place *place,
                      const struct symbol_frame *frame) {
    char *label = symbol_frame_label(frame);
    const char *file = frame->file ? frame->file : frame->object ? frame->object : "";
    pprof_frame(profile, label, file, frame->file ? frame->line : 0);
    free(label);
}

static void add_sample(struct pprof *profile, const struct heap_export *export, uint32_t stack) {
    const char *site = (const char *)&export->file->summary.sites[stack];
    rows_frames(export->file, stack, rows_pprof_frame, profile);
    for (size_t i = 0; i < TYPES; i++)
        pprof_value(profile, *(const uint64_t *)(site + types[i].offset));
    pprof_sample(profile);
}

void rows_pprof(FILE *out, const struct heap_export *export) {
    const struct summary *summary = &export->file->summary;
    struct pprof *profile = pprof_new();
    for (size_t i = 0; i < TYPES; i++)
        pprof_type(profile, types[i].name, types[i].unit,
                   types[i].weight && strcmp(types[i].weight, export->weight->name) == 0);
    for (size_t i = 0; i < summary->site_count; i++)
        if (rows_has(&summary->sites[i]))
            add_sample(profile, export, (uint32_t)i);
    pprof_times(profile, export->file->info.process.started * 1000000000, summary->time);
    pprof_write(profile, out);
}
