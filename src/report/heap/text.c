#include "report/heap/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

struct writer {
    const struct summary *summary;
    struct heap_names *names;
    const struct heap_text_options *options;
    void (*line)(void *context, const char *text);
    void *context;
    struct text text;
};

char *heap_text_merges(const struct recording_merges *merges) {
    struct text text = {0};
    if (!merges->until)
        return NULL;
    text_format(&text,
                "the first %.3f s are kept in %llu steps of up to %.3f s; sums and the peak are "
                "exact, moments within a step are not known",
                (double)merges->until / 1e9, (unsigned long long)merges->steps,
                (double)merges->longest / 1e9);
    if (merges->is_too_large)
        text_string(&text, "; stacks and live blocks alone take more than --max-size");
    return text_take(&text);
}

static void end_line(struct writer *writer) {
    writer->line(writer->context, writer->text.bytes ? writer->text.bytes : "");
    text_clear(&writer->text);
}

static void write_title(struct writer *writer, const char *title) {
    const struct paint *paint = writer->options->paint;
    text_format(&writer->text, "%s%s%s", paint_code(paint, PAINT_TITLE), title,
                paint_code(paint, PAINT_PLAIN));
    end_line(writer);
}

static void add_number(struct writer *writer, uint64_t number, const char *after) {
    char digits[32];
    text_format(&writer->text, "%s%s", text_number(digits, number), after);
}

static double percent(uint64_t part, uint64_t whole) {
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

// ---- totals ----

// Memory that grew without the heap: an allocator that nobody has seen looks like that. Files and
// memory that processes share come from no allocator.
static void write_unexplained(struct writer *writer) {
    enum { MUCH = 32 << 20, PART = 8 };
    const struct summary_resident *resident = &writer->summary->resident;
    uint64_t growth = resident->peak_anonymous - resident->first_anonymous;
    uint64_t heap = writer->summary->total.peak_bytes;
    if (growth < MUCH || heap > growth / PART)
        return;
    text_string(&writer->text, "note:       private memory grew by ");
    add_number(writer, growth, " bytes, the recorded heap by ");
    add_number(writer, heap, " only. If the program has an allocator of its own,");
    end_line(writer);
    text_string(&writer->text,
                "            give it malloc's names, keep its symbols (no strip), or "
                "report its blocks with quern/heap.h");
    end_line(writer);
}

// What is not the heap, and the memory of the process as a whole.
static void write_kernels_word(struct writer *writer) {
    const struct summary_regions *regions = &writer->summary->regions;
    const struct summary_resident *resident = &writer->summary->resident;
    struct text *text = &writer->text;
    if (regions->count) {
        text_string(text, "mapped:     ");
        add_number(writer, regions->bytes, " bytes in ");
        add_number(writer, regions->count, " regions by the program itself, ");
        add_number(writer, regions->peak_bytes, " at most");
        text_format(text, ", after %.3f s", (double)regions->peak_time / 1e9);
        end_line(writer);
    }
    if (resident->samples) {
        text_string(text, "in memory:  ");
        add_number(writer, resident->peak_bytes, " bytes at most");
        text_format(text, ", after %.3f s; ", (double)resident->peak_time / 1e9);
        add_number(writer, resident->heap_peak_bytes, " at the heap's peak; ");
        add_number(writer, resident->last.minor_faults, " minor and ");
        add_number(writer, resident->last.major_faults, " major page faults");
        end_line(writer);
        write_unexplained(writer);
    }
}

static void write_totals(struct writer *writer) {
    const struct summary *summary = writer->summary;
    const struct summary_site *total = &summary->total;
    double seconds = (double)summary->time / 1e9;
    struct text *text = &writer->text;
    text_string(text, "peak:       ");
    add_number(writer, total->peak_bytes, " bytes in ");
    add_number(writer, total->peak, " blocks");
    text_format(text, ", after %.3f s", (double)summary->peak_time / 1e9);
    end_line(writer);
    text_string(text, "allocated:  ");
    add_number(writer, total->allocated_bytes, " bytes in ");
    add_number(writer, total->allocated, " blocks and ");
    add_number(writer, summary->resized, " resizes");
    if (summary->time > writer->options->from) {
        double length = (double)(summary->time - writer->options->from) / 1e9;
        text_string(text, ", ");
        add_number(writer, (uint64_t)((double)total->allocated / length), " blocks a second");
    }
    end_line(writer);
    text_string(text, "temporary:  ");
    add_number(writer, total->temporary, " blocks");
    text_format(text, " (%.1f %%)", percent(total->temporary, total->allocated));
    end_line(writer);
    text_string(text, "at the end: ");
    add_number(writer, total->live_bytes, " bytes in ");
    add_number(writer, total->live, " blocks not freed");
    text_format(text, ", after %.3f s", seconds);
    end_line(writer);
    write_kernels_word(writer);
    text_format(text, "stacks:     %.2f %% of the allocations have one that is cut short",
                percent(summary->truncated, total->allocated));
    end_line(writer);
}

// ---- lists ----

enum order { BY_PEAK, BY_COUNT, BY_TEMPORARY, BY_LEAKED, BY_MAPPED };

static uint64_t weight_of(const struct summary_site *site, enum order order) {
    switch (order) {
    case BY_PEAK:
        return site->peak_bytes;
    case BY_COUNT:
        return site->allocated;
    case BY_TEMPORARY:
        return site->temporary;
    case BY_LEAKED:
        return site->live_bytes;
    case BY_MAPPED:
        return site->mapped_bytes;
    }
    return 0;
}

static void write_site_head(struct writer *writer, const struct summary_site *site,
                            enum order order) {
    const struct summary_site *total = &writer->summary->total;
    struct text *text = &writer->text;
    bool is_bytes = order == BY_PEAK || order == BY_LEAKED || order == BY_MAPPED;
    char bar[PAINT_BAR];
    text_string(text, paint_bar(bar, writer->options->paint,
                                percent(weight_of(site, order), weight_of(total, order)) / 100));
    add_number(writer, weight_of(site, order), is_bytes ? " bytes" : " blocks");
    text_format(text, " (%.1f %%)", percent(weight_of(site, order), weight_of(total, order)));
    if (order == BY_PEAK || order == BY_LEAKED) {
        text_string(text, " in ");
        add_number(writer, order == BY_PEAK ? site->peak : site->live, " blocks");
    } else if (order == BY_COUNT) {
        text_string(text, " of ");
        add_number(writer, site->allocated_bytes, " bytes");
    } else if (order == BY_TEMPORARY) {
        text_string(text, " of ");
        add_number(writer, site->allocated, " allocated here");
    }
    end_line(writer);
}

static void write_stack(struct writer *writer, uint32_t stack) {
    const struct stacks_entry *entry = stacks_get(&writer->summary->stacks, stack);
    size_t first;
    size_t count = heap_names_trim(writer->names, entry, &first);
    size_t written = 0;
    const struct paint *paint = writer->options->paint;
    for (size_t i = 0; i < count && written < writer->options->callers; i++) {
        const struct heap_place *place = heap_names_place(writer->names, entry->pcs[first + i]);
        for (size_t j = 0; j < place->count; j++) {
            text_format(&writer->text, "   %s%s 0x%" PRIX64 ":%s %s%s%s",
                        paint_code(paint, PAINT_FAINT), written ? "by" : "at", place->address,
                        paint_code(paint, PAINT_PLAIN),
                        written ? "" : paint_code(paint, PAINT_NAME), place->texts[j],
                        written ? "" : paint_code(paint, PAINT_PLAIN));
            end_line(writer);
            written++;
        }
    }
    if (!count) {
        text_string(&writer->text, "   at ???");
        end_line(writer);
    }
}

// The heaviest stack lighter than, or as heavy but with a higher number than, the last one.
static size_t next_site(const struct summary *summary, enum order order, uint64_t weight,
                        size_t last) {
    size_t best = SIZE_MAX;
    uint64_t best_weight = 0;
    for (size_t i = 0; i < summary->site_count; i++) {
        uint64_t own = weight_of(&summary->sites[i], order);
        bool is_later = own < weight || (own == weight && (last == SIZE_MAX || i > last));
        if (is_later && own > best_weight) {
            best_weight = own;
            best = i;
        }
    }
    return best;
}

static void write_list(struct writer *writer, enum order order, const char *title) {
    if (!weight_of(&writer->summary->total, order))
        return;
    end_line(writer);
    write_title(writer, title);
    uint64_t weight = UINT64_MAX;
    size_t last = SIZE_MAX;
    for (size_t i = 0; i < writer->options->top; i++) {
        last = next_site(writer->summary, order, weight, last);
        if (last == SIZE_MAX)
            return;
        const struct summary_site *site = &writer->summary->sites[last];
        weight = weight_of(site, order);
        write_site_head(writer, site, order);
        write_stack(writer, (uint32_t)last);
    }
}

// ---- what the program said ----

static void write_scope(struct writer *writer, const struct marks_scope *scope) {
    const struct marks_count *count = &scope->count;
    add_number(writer, count->allocated, " allocations of ");
    add_number(writer, count->allocated_bytes, " bytes, ");
    if (count->allocated_bytes >= count->freed_bytes)
        add_number(writer, count->allocated_bytes - count->freed_bytes, " more held after it");
    else
        add_number(writer, count->freed_bytes - count->allocated_bytes, " less held after it");
    text_string(&writer->text, "; at most ");
    add_number(writer, scope->most, " in one of ");
    add_number(writer, scope->entered, scope->entered == 1 ? " pass" : " passes");
    text_format(&writer->text, ", %.3f s: %s", (double)scope->time / 1e9, scope->name);
    end_line(writer);
}

static void write_point(struct writer *writer, const struct marks_point *point) {
    text_format(&writer->text, "%.3f s: ", (double)point->time / 1e9);
    add_number(writer, point->live_bytes, " bytes in ");
    add_number(writer, point->live_blocks, " blocks, ");
    add_number(writer, point->allocated, " allocated so far: ");
    text_format(&writer->text, "%s%s", point->kind == HEAP_MARK_SNAPSHOT ? "snapshot " : "",
                point->name);
    end_line(writer);
}

#define TOTALS_MARKS 5 // of which write_marks makes four times as many

static void write_marks(struct writer *writer) {
    const struct marks *marks = &writer->summary->marks;
    size_t shown =
        marks->count < writer->options->top * 4 ? marks->count : writer->options->top * 4;
    if (marks->scope_count) {
        end_line(writer);
        write_title(writer, "Scopes of the program:");
    }
    for (size_t i = 0; i < marks->scope_count && i < writer->options->top * 4; i++)
        write_scope(writer, &marks->scopes[i]);
    if (marks->count) {
        end_line(writer);
        write_title(writer, "Markers of the program:");
    }
    for (size_t i = 0; i < shown; i++)
        write_point(writer, &marks->points[i]);
    if (shown < marks->count || marks->left_out) {
        add_number(writer, marks->count - shown + marks->left_out, " more are not shown");
        end_line(writer);
    }
}

void heap_text_totals(const struct summary *summary, void (*line)(void *context, const char *text),
                      void *context) {
    struct writer writer = {.summary = summary,
                            .options = &(struct heap_text_options){.top = TOTALS_MARKS},
                            .line = line,
                            .context = context};
    write_totals(&writer);
    write_marks(&writer);
    text_free(&writer.text);
}

void heap_text(const struct summary *summary, struct heap_names *names,
               const struct heap_text_options *options,
               void (*line)(void *context, const char *text), void *context) {
    struct writer writer = {
        .summary = summary, .names = names, .options = options, .line = line, .context = context};
    write_totals(&writer);
    write_marks(&writer);
    write_list(&writer, BY_PEAK, "Most bytes held at the peak:");
    write_list(&writer, BY_COUNT, "Most allocations:");
    write_list(&writer, BY_TEMPORARY, "Most temporary allocations:");
    write_list(&writer, BY_LEAKED, "Most bytes not freed in the end:");
    write_list(&writer, BY_MAPPED, "Most bytes mapped by the program itself:");
    text_free(&writer.text);
}
