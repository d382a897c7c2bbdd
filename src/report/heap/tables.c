// Tables and documents with a row for each stack: CSV (RFC 4180), JSON, speedscope.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/text.h"
#include "base/vector.h"
#include "report/heap/rows.h"

// The numbers of a row, for both tables.
static const struct column {
    const char *name;
    size_t offset;
} columns[] = {
    {"allocated_bytes", offsetof(struct summary_site, allocated_bytes)},
    {"allocated_blocks", offsetof(struct summary_site, allocated)},
    {"peak_bytes", offsetof(struct summary_site, peak_bytes)},
    {"peak_blocks", offsetof(struct summary_site, peak)},
    {"leaked_bytes", offsetof(struct summary_site, live_bytes)},
    {"leaked_blocks", offsetof(struct summary_site, live)},
    {"temporary_blocks", offsetof(struct summary_site, temporary)},
    {"mapped_bytes", offsetof(struct summary_site, mapped_bytes)},
};

#define COLUMNS (sizeof columns / sizeof *columns)

static uint64_t value_of(const struct summary_site *site, const struct column *column) {
    return *(const uint64_t *)((const char *)site + column->offset);
}

// ---- CSV ----

void rows_csv(FILE *out, const struct heap_export *export) {
    const struct summary *summary = &export->file->summary;
    fputs("stack,", out);
    for (size_t i = 0; i < COLUMNS; i++)
        fprintf(out, "%s,", columns[i].name);
    fputs("frames\r\n", out);
    for (size_t i = 0; i < summary->site_count; i++) {
        if (!rows_has(&summary->sites[i]))
            continue;
        fprintf(out, "%zu,", i);
        for (size_t j = 0; j < COLUMNS; j++)
            fprintf(out, "%" PRIu64 ",", value_of(&summary->sites[i], &columns[j]));
        char *folded = rows_folded(export->file, (uint32_t)i);
        fputc('"', out);
        for (const char *c = folded; *c; c++)
            fputs(*c == '"' ? "\"\"" : (char[]){*c, 0}, out);
        fputs("\"\r\n", out);
        free(folded);
    }
}

// ---- JSON ----

static void write_numbers(FILE *out, const struct summary_site *site) {
    for (size_t i = 0; i < COLUMNS; i++)
        fprintf(out, "%s\"%s\":%" PRIu64, i ? "," : "", columns[i].name,
                value_of(site, &columns[i]));
}

struct frames {
    FILE *out;
    size_t count;
};

static void write_frame(void *context, const struct heap_place *place,
                        const struct symbol_frame *frame) {
    struct frames *frames = context;
    FILE *out = frames->out;
    char *label = symbol_frame_label(frame);
    fputs(frames->count++ ? ",{\"function\":" : "{\"function\":", out);
    rows_json(out, label);
    free(label);
    if (place)
        fprintf(out, ",\"address\":\"0x%" PRIX64 "\"", place->address);
    if (frame->file && frame->line) {
        fputs(",\"file\":", out);
        rows_json(out, frame->file);
        fprintf(out, ",\"line\":%" PRIu32, frame->line);
    }
    if (frame->object) {
        fputs(",\"module\":", out);
        rows_json(out, frame->object);
    }
    fputs(frame->inlined ? ",\"inlined\":true}" : "}", out);
}

// The process as a whole, and its threads.
static void write_process(FILE *out, const struct summary *summary) {
    const struct summary_regions *regions = &summary->regions;
    const struct summary_resident *resident = &summary->resident;
    fprintf(out,
            "\"mapped\":{\"regions\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"peak_bytes\":%" PRIu64
            ",\"left_bytes\":%" PRIu64 "},\n",
            regions->count, regions->bytes, regions->peak_bytes, regions->live_bytes);
    fprintf(out,
            "\"resident\":{\"samples\":%" PRIu64 ",\"peak_bytes\":%" PRIu64
            ",\"peak_nanoseconds\":%" PRIu64 ",\"anonymous_peak_bytes\":%" PRIu64
            ",\"minor_faults\":%" PRIu64 ",\"major_faults\":%" PRIu64 "},\n\"threads\":[",
            resident->samples, resident->peak_bytes, resident->peak_time, resident->peak_anonymous,
            resident->last.minor_faults, resident->last.major_faults);
    for (uint64_t i = 1; i <= summary->threads; i++) {
        const struct summary_thread *thread = &summary->thread_list[i];
        fprintf(out, "%s{\"thread\":%" PRIu64 ",\"tid\":%d,\"name\":", i > 1 ? "," : "", i,
                thread->tid);
        rows_json(out, thread->name ? thread->name : "");
        fputc('}', out);
    }
    fputs("],\n", out);
}

void rows_json_file(FILE *out, const struct heap_export *export) {
    const struct summary *summary = &export->file->summary;
    const struct recording_info *info = &export->file->info;
    fputs("{\"command\":", out);
    rows_json(out, info->process.command ? info->process.command : "");
    fprintf(out, ",\"pid\":%d,\"complete\":%s,\"missed_events\":%" PRIu64, info->process.pid,
            info->is_complete && !info->damage ? "true" : "false", info->end.missed);
    fprintf(out, ",\"nanoseconds\":%" PRIu64 ",\"peak_nanoseconds\":%" PRIu64 ",\n\"totals\":{",
            summary->time, summary->peak_time);
    write_numbers(out, &summary->total);
    fprintf(out, ",\"resizes\":%" PRIu64 ",\"releases\":%" PRIu64 "},\n", summary->resized,
            summary->freed);
    write_process(out, summary);
    fputs("\"stacks\":[", out);
    const char *separator = "\n";
    for (size_t i = 0; i < summary->site_count; i++) {
        if (!rows_has(&summary->sites[i]))
            continue;
        fprintf(out, "%s{\"stack\":%zu,", separator, i);
        separator = ",\n";
        write_numbers(out, &summary->sites[i]);
        fputs(",\"frames\":[", out);
        rows_frames(export->file, (uint32_t)i, write_frame, &(struct frames){.out = out});
        fputs("]}", out);
    }
    fputs("\n]}\n", out);
}

// ---- speedscope ----

// Its frames are functions in files, numbered in the order of their first use.
struct functions {
    struct function {
        char *name;
        const char *file;
    } * list;
    size_t count;
    struct map map; // of the list
    // The stack in hand, innermost first.
    uint32_t *stack;
    size_t depth;
};

static void add_function(void *context, const struct heap_place *place,
                         const struct symbol_frame *frame) {
    struct functions *functions = context;
    char *name = symbol_frame_label(frame);
    const char *file = frame->file ? frame->file : frame->object ? frame->object : "";
    uint64_t hash = hash_add(hash_words(name, strlen(name)), hash_words(file, strlen(file)));
    struct map_walk walk = map_walk(hash);
    uint32_t number;
    while ((number = map_next(&functions->map, &walk)) != MAP_NONE &&
           (strcmp(functions->list[number].name, name) != 0 ||
            strcmp(functions->list[number].file, file) != 0))
        ;
    if (number != MAP_NONE) {
        free(name);
    } else {
        *vector_push(functions->list, functions->count) = (struct function){name, file};
        number = map_add(&functions->map, hash);
    }
    *vector_push(functions->stack, functions->depth) = number;
}

static void write_profile(FILE *out, const struct heap_export *export, struct functions *functions,
                          const struct heap_weight *weight) {
    const struct summary *summary = &export->file->summary;
    fprintf(out, "{\"type\":\"sampled\",\"name\":\"%s\",\"unit\":\"%s\",\"startValue\":0,",
            weight->help, strcmp(weight->unit, "bytes") == 0 ? "bytes" : "none");
    fprintf(out, "\"endValue\":%" PRIu64 ",\"samples\":[", heap_weight_of(weight, &summary->total));
    const char *separator = "";
    for (size_t i = 0; i < summary->site_count; i++) {
        if (!heap_weight_of(weight, &summary->sites[i]))
            continue;
        functions->depth = 0;
        rows_frames(export->file, (uint32_t)i, add_function, functions);
        fprintf(out, "%s[", separator);
        for (size_t j = functions->depth; j-- > 0;)
            fprintf(out, "%" PRIu32 "%s", functions->stack[j], j ? "," : "]");
        separator = ",\n";
    }
    fputs("],\"weights\":[", out);
    separator = "";
    for (size_t i = 0; i < summary->site_count; i++) {
        uint64_t value = heap_weight_of(weight, &summary->sites[i]);
        if (!value)
            continue;
        fprintf(out, "%s%" PRIu64, separator, value);
        separator = ",";
    }
    fputs("]}", out);
}

// One profile for each weight; the one asked for is shown first.
void rows_speedscope(FILE *out, const struct heap_export *export) {
    const char *command = export->file->info.process.command;
    struct functions functions = {0};
    fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":"
          "\"quern\",\"name\":",
          out);
    rows_json(out, command ? command : "");
    fprintf(out, ",\"activeProfileIndex\":%td,\n\"profiles\":[", export->weight - heap_weights);
    for (size_t i = 0; i < heap_weight_count; i++) {
        fputs(i ? ",\n" : "\n", out);
        write_profile(out, export, &functions, &heap_weights[i]);
    }
    fputs("],\n\"shared\":{\"frames\":[", out);
    for (size_t i = 0; i < functions.count; i++) {
        fputs(i ? ",\n{\"name\":" : "\n{\"name\":", out);
        rows_json(out, functions.list[i].name);
        if (*functions.list[i].file) {
            fputs(",\"file\":", out);
            rows_json(out, functions.list[i].file);
        }
        fputc('}', out);
        free(functions.list[i].name);
    }
    fputs("]}}\n", out);
    free(functions.list);
    map_free(&functions.map);
    free(functions.stack);
}
