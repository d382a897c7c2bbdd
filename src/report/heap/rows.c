#include "report/heap/rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vector.h"

void rows_text(FILE *out, const char *text, enum rows_style style) {
    const unsigned char *at = (const unsigned char *)text;
    while (*at) {
        size_t length = stack_text_printable(at);
        if (!length)
            fprintf(out, style == ROWS_JSON ? "\\\\x%02X" : "\\x%02X", *at);
        else if (style == ROWS_FOLDED && *at == ';')
            fputc(':', out);
        else if (style == ROWS_JSON && (*at == '"' || *at == '\\'))
            fprintf(out, "\\%c", *at);
        else
            fwrite(at, 1, length, out);
        at += length ? length : 1;
    }
}

void rows_json(FILE *out, const char *text) {
    fputc('"', out);
    rows_text(out, text, ROWS_JSON);
    fputc('"', out);
}

bool rows_has(const struct summary_site *site) {
    return site->allocated || site->allocated_bytes || site->live || site->peak ||
           site->mapped_bytes;
}

void rows_frames(const struct heap_file *file, uint32_t stack,
                 void (*frame)(void *context, const struct heap_place *place,
                               const struct symbol_frame *frame),
                 void *context) {
    const struct stacks_entry *entry = stacks_get(&file->summary.stacks, stack);
    size_t first;
    size_t count = heap_names_trim(file->names, entry, &first);
    for (size_t i = 0; i < count; i++) {
        const struct heap_place *place = heap_names_place(file->names, entry->pcs[first + i]);
        for (size_t j = 0; j < place->count; j++)
            frame(context, place, &place->frames[j]);
    }
    if (!count)
        frame(context, NULL, &(struct symbol_frame){.name = "[unknown]"});
    else if (entry->truncated && first + count == entry->count)
        frame(context, NULL, &(struct symbol_frame){.name = "[cut short]"});
}

// ---- folded ----

struct labels {
    char **labels;
    size_t count;
};

static void add_label(void *context, const struct heap_place *place,
                      const struct symbol_frame *frame) {
    struct labels *labels = context;
    *vector_push(labels->labels, labels->count) = symbol_frame_label(frame);
}

char *rows_folded(const struct heap_file *file, uint32_t stack) {
    struct labels labels = {0};
    char *line = NULL;
    size_t size;
    rows_frames(file, stack, add_label, &labels);
    FILE *out = open_memstream(&line, &size);
    for (size_t i = labels.count; i-- > 0;) {
        if (out && i + 1 < labels.count)
            fputc(';', out);
        if (out)
            rows_text(out, labels.labels[i], ROWS_FOLDED);
        free(labels.labels[i]);
    }
    free(labels.labels);
    if (!out || fclose(out) != 0) {
        free(line);
        return base_copy("[unknown]");
    }
    return line;
}

static int by_folded(const void *left, const void *right) {
    return strcmp(((const struct rows_line *)left)->folded,
                  ((const struct rows_line *)right)->folded);
}

size_t rows_lines_merge(struct rows_line *lines, size_t count) {
    size_t kept = 0;
    if (count)
        qsort(lines, count, sizeof *lines, by_folded);
    for (size_t i = 0; i < count; i++) {
        struct rows_line *last = kept ? &lines[kept - 1] : NULL;
        if (last && strcmp(last->folded, lines[i].folded) == 0) {
            last->value += lines[i].value;
            free(lines[i].folded);
        } else {
            lines[kept++] = lines[i];
        }
    }
    return kept;
}

struct rows_line *rows_lines(const struct heap_file *file, const struct heap_weight *weight,
                             size_t *count) {
    const struct summary *summary = &file->summary;
    struct rows_line *lines = base_allocate((summary->site_count + 1) * sizeof *lines);
    size_t all = 0;
    for (size_t i = 0; i < summary->site_count; i++) {
        uint64_t value = heap_weight_of(weight, &summary->sites[i]);
        if (value)
            lines[all++] = (struct rows_line){rows_folded(file, (uint32_t)i), value};
    }
    *count = rows_lines_merge(lines, all);
    return lines;
}

void rows_lines_free(struct rows_line *lines, size_t count) {
    for (size_t i = 0; i < count; i++)
        free(lines[i].folded);
    free(lines);
}

void rows_collapsed(FILE *out, const struct heap_export *export) {
    size_t count;
    struct rows_line *lines = rows_lines(export->file, export->weight, &count);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%s %llu\n", lines[i].folded, (unsigned long long)lines[i].value);
    rows_lines_free(lines, count);
}

// ---- stacks as text ----

struct stack_lines {
    FILE *out;
    size_t count, most;
};

static void write_line(void *context, const struct heap_place *place,
                       const struct symbol_frame *frame) {
    struct stack_lines *lines = context;
    if (lines->count++ >= lines->most)
        return;
    char *label = symbol_frame_label(frame);
    fprintf(lines->out, "   %s ", lines->count == 1 ? "at" : "by");
    stack_text_escaped(lines->out, label);
    if (frame->file && frame->line) {
        fputs(" (", lines->out);
        stack_text_escaped(lines->out, heap_file_base(frame->file));
        fprintf(lines->out, ":%u)", frame->line);
    }
    fputc('\n', lines->out);
    free(label);
}

void rows_stack(FILE *out, const struct heap_file *file, uint32_t stack, size_t callers) {
    struct stack_lines lines = {out, 0, callers};
    rows_frames(file, stack, write_line, &lines);
}
