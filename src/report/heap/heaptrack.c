// A recording as the text that heaptrack writes and heaptrack_print and heaptrack_gui read, version
// 3 of its format: lines of a letter and hexadecimal numbers. What has a name comes first: strings
// (s), places in the code (i), traces (t, a place and the trace of its caller), kinds of
// allocations (a, a size and a trace); then the events (+ and - with a kind, c with the time, R
// with pages in memory).
//
// Kinds are numbered while the recording streams by, and the events are kept in a temporary file
// until the names can be written.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/vector.h"
#include "profile/heap/kinds.h"
#include "report/heap/rows.h"

#define TIME_STEP 10 // milliseconds between two times

struct heap_events {
    FILE *file;         // NULL: could not be made
    struct kind *kinds; // of any thread
    uint32_t kind_count;
    struct map kind_map;
    uint64_t time; // as last written, milliseconds
};

// ---- while the recording streams by ----

static uint32_t kind_of(struct heap_events *events, const struct heap_block *block) {
    struct kind kind = {.size = block->size, .stack = block->stack};
    uint32_t number = kinds_find(&events->kind_map, events->kinds, sizeof kind, &kind);
    if (number != MAP_NONE)
        return number;
    *vector_push(events->kinds, events->kind_count) = kind;
    return kinds_add(&events->kind_map, &kind);
}

static void write_time(struct heap_events *events, uint64_t time) {
    if (time / 1000000 < events->time + TIME_STEP)
        return;
    events->time = time / 1000000;
    fprintf(events->file, "c %llx\n", (unsigned long long)events->time);
}

static void on_event(void *context, const struct heap_event *event) {
    struct heap_events *events = context;
    if (!events->file)
        return;
    write_time(events, event->time);
    if (event->kind == HEAP_FREED || event->kind == HEAP_RESIZED)
        fprintf(events->file, "- %x\n", kind_of(events, &event->before));
    if (event->kind == HEAP_ALLOCATED || event->kind == HEAP_RESIZED)
        fprintf(events->file, "+ %x\n", kind_of(events, event->block));
}

static void on_sample(void *context, const struct heap_sample *sample) {
    struct heap_events *events = context;
    if (events->file)
        fprintf(events->file, "R %llx\n", (unsigned long long)(sample->resident / RECORDING_PAGE));
}

static void on_end(void *context, uint64_t time) {
    struct heap_events *events = context;
    if (events->file)
        fprintf(events->file, "c %llx\n", (unsigned long long)(time / 1000000));
}

struct heap_events *heap_events_new(void) {
    struct heap_events *events = base_allocate(sizeof *events);
    *events = (struct heap_events){.file = tmpfile()};
    return events;
}

void heap_events_free(struct heap_events *events) {
    if (events->file)
        fclose(events->file);
    free(events->kinds);
    map_free(&events->kind_map);
    free(events);
}

void heap_events_sink(struct heap_events *events, struct heap_sink *sink) {
    *sink = (struct heap_sink){
        .context = events, .event = on_event, .sample = on_sample, .end = on_end};
}

// ---- names ----

struct writer {
    FILE *out;
    struct map_texts strings, places;
    uint32_t *chain; // places of the stack in hand, innermost first
    size_t count;
    uint64_t traces;
};

// Strings, places and traces count from 1 on.
static uint32_t string_of(struct writer *writer, const char *text) {
    char *line = NULL;
    size_t size;
    bool is_new;
    // What no line can hold is written as everywhere.
    FILE *out = open_memstream(&line, &size);
    if (!out)
        return 0;
    rows_text(out, text, ROWS_PLAIN);
    fclose(out);
    uint32_t number = map_texts_add(&writer->strings, line, size, &is_new) + 1;
    if (is_new)
        fprintf(writer->out, "s %zx %s\n", size, line);
    free(line);
    return number;
}

static void add_place(void *context, const struct heap_place *place,
                      const struct symbol_frame *frame) {
    struct writer *writer = context;
    char *label = symbol_frame_label(frame);
    struct text key = {0};
    bool is_new;
    text_format(&key, "%llx %s %s %u", (unsigned long long)(place ? place->address : 0), label,
                frame->file ? frame->file : "", frame->line);
    uint32_t number = map_texts_add(&writer->places, key.bytes, key.size, &is_new) + 1;
    if (is_new) {
        uint32_t module = string_of(writer, frame->object ? frame->object : "");
        uint32_t function = string_of(writer, label);
        uint32_t file = frame->file && frame->line ? string_of(writer, frame->file) : 0;
        fprintf(writer->out, "i %llx %x %x", (unsigned long long)(place ? place->address : 0),
                module, function);
        if (file)
            fprintf(writer->out, " %x %x", file, frame->line);
        fputc('\n', writer->out);
    }
    *vector_push(writer->chain, writer->count) = number;
    text_free(&key);
    free(label);
}

// The trace of a stack: from its outermost place inwards.
static uint64_t write_trace(struct writer *writer, const struct heap_file *file, uint32_t stack) {
    uint64_t parent = 0;
    writer->count = 0;
    rows_frames(file, stack, add_place, writer);
    for (size_t i = writer->count; i-- > 0;) {
        fprintf(writer->out, "t %x %llx\n", writer->chain[i], (unsigned long long)parent);
        parent = ++writer->traces;
    }
    return parent;
}

static void copy_events(FILE *out, FILE *events) {
    char buffer[65536];
    rewind(events);
    for (size_t size; (size = fread(buffer, 1, sizeof buffer, events)) > 0;)
        fwrite(buffer, 1, size, out);
}

void rows_heaptrack(FILE *out, const struct heap_export *export) {
    struct heap_events *events = export->events;
    const char *command = export->file->info.process.command;
    struct writer writer = {.out = out};
    if (!events->file) {
        errno = EIO;
        return;
    }
    fputs("v 10400 3\nX ", out);
    rows_text(out, command ? command : "(unknown)", ROWS_PLAIN);
    fprintf(out, "\nI %x %llx\n", RECORDING_PAGE, (unsigned long long)(sysconf(_SC_PHYS_PAGES)));
    uint64_t *traces = base_allocate((export->file->summary.site_count + 1) * sizeof *traces);
    memset(traces, 0, (export->file->summary.site_count + 1) * sizeof *traces);
    for (uint32_t i = 0; i < events->kind_count; i++) {
        uint32_t stack = events->kinds[i].stack;
        if (!traces[stack])
            traces[stack] = write_trace(&writer, export->file, stack);
        fprintf(out, "a %llx %llx\n", (unsigned long long)events->kinds[i].size,
                (unsigned long long)traces[stack]);
    }
    copy_events(out, events->file);
    free(traces);
    free(writer.chain);
    map_texts_free(&writer.strings);
    map_texts_free(&writer.places);
}
