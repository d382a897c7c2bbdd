#include "report/heap_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

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
    return site->allocated || site->allocated_bytes || site->live || site->peak;
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
    size_t count, room;
};

static void add_label(void *context, const struct heap_place *place,
                      const struct symbol_frame *frame) {
    struct labels *labels = context;
    if (labels->count == labels->room) {
        labels->room = labels->room ? labels->room * 2 : 64;
        labels->labels = base_reallocate(labels->labels, labels->room * sizeof *labels->labels);
    }
    labels->labels[labels->count++] = heap_file_label(frame);
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

struct folded {
    char *line;
    uint64_t value;
};

static int by_line(const void *left, const void *right) {
    return strcmp(((const struct folded *)left)->line, ((const struct folded *)right)->line);
}

// Sorted, and stacks that differ in addresses only are one line: the same run gives the same file.
void rows_collapsed(FILE *out, const struct heap_export *export) {
    const struct summary *summary = &export->file->summary;
    struct folded *lines = base_allocate((summary->site_count + 1) * sizeof *lines);
    size_t count = 0;
    for (size_t i = 0; i < summary->site_count; i++) {
        uint64_t value = heap_weight_of(export->weight, &summary->sites[i]);
        if (value)
            lines[count++] = (struct folded){rows_folded(export->file, (uint32_t)i), value};
    }
    qsort(lines, count, sizeof *lines, by_line);
    for (size_t i = 0; i < count; i++) {
        if (i + 1 < count && strcmp(lines[i].line, lines[i + 1].line) == 0)
            lines[i + 1].value += lines[i].value;
        else
            fprintf(out, "%s %llu\n", lines[i].line, (unsigned long long)lines[i].value);
        free(lines[i].line);
    }
    free(lines);
}
