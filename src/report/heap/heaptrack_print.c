#include "report/heap/heaptrack_print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/vector.h"
#include "report/heap/rows.h"

// A frame as it is shown, and the lines below it.
struct frame {
    char *text;   // "FUNCTION\nat FILE:LINE\n"
    char *object; // shown behind the last of the frames at one address
    bool is_last; // of these
    bool is_main;
};

// The stacks that begin with the same frame.
struct place {
    char *first; // the frame's lines
    uint32_t *stacks;
    size_t count;
    struct summary_site sum;
};

struct printer {
    FILE *out;
    const struct heap_file *file;
    const struct heaptrack_print *wanted;
    struct place *places;
    size_t count;
};

// ---- frames ------------------------------------------------------------------------------------

struct frames {
    struct frame *at;
    size_t count;
    const struct heap_place *place; // of the last one
};

static void add_frame(void *context, const struct heap_place *place,
                      const struct symbol_frame *frame) {
    struct frames *frames = context;
    struct text text = {0};
    char *label = symbol_frame_label(frame);
    if (frames->count && frames->place != place)
        frames->at[frames->count - 1].is_last = true;
    if (frame->name)
        text_string(&text, label);
    else
        text_format(&text, "0x%llx", (unsigned long long)(place ? place->address : 0));
    text_char(&text, '\n');
    if (frame->file && frame->line)
        text_format(&text, "at %s:%u\n", frame->file, frame->line);
    frames->place = place;
    *vector_push(frames->at, frames->count) =
        (struct frame){.text = text_take(&text),
                       .object = base_copy(frame->object ? frame->object : ""),
                       .is_main = strcmp(label, "main") == 0};
    free(label);
}

static struct frames frames_of(const struct printer *printer, uint32_t stack) {
    struct frames frames = {0};
    rows_frames(printer->file, stack, add_frame, &frames);
    if (frames.count)
        frames.at[frames.count - 1].is_last = true;
    return frames;
}

static void free_frames(struct frames *frames) {
    for (size_t i = 0; i < frames->count; i++) {
        free(frames->at[i].text);
        free(frames->at[i].object);
    }
    free(frames->at);
}

// The function, then what is known of it, two columns further right.
static void print_frame(FILE *out, const struct frame *frame, int indent, bool shows_object) {
    const char *line = frame->text;
    for (int at = indent; *line; at = indent + 2) {
        size_t size = strcspn(line, "\n");
        fprintf(out, "%*s", at, "");
        for (size_t i = 0; i < size; i++)
            fputc((unsigned char)line[i] < ' ' ? '?' : line[i], out);
        fputc('\n', out);
        line += size + 1;
    }
    if (shows_object && *frame->object)
        fprintf(out, "%*sin %s\n", indent + 2, "", frame->object);
}

// The stack without its first frame, up to main.
static void print_callers(const struct printer *printer, uint32_t stack) {
    struct frames frames = frames_of(printer, stack);
    for (size_t i = 1; i < frames.count; i++) {
        print_frame(printer->out, &frames.at[i], 4, frames.at[i].is_last);
        if (frames.at[i].is_main)
            break;
    }
    free_frames(&frames);
}

// ---- places ------------------------------------------------------------------------------------

static void add_site(struct summary_site *to, const struct summary_site *site) {
    to->allocated += site->allocated;
    to->temporary += site->temporary;
    to->peak_bytes += site->peak_bytes;
    to->live_bytes += site->live_bytes;
}

static bool has_function(const struct frames *frames, const char *function) {
    for (size_t i = 0; i < frames->count; i++)
        if (strstr(frames->at[i].text, function))
            return true;
    return false;
}

static int compare_texts(const void *left, const void *right) {
    return strcmp(((const struct place *)left)->first, ((const struct place *)right)->first);
}

// Each stack as a place of its own first; equal ones become one.
static void gather_places(struct printer *printer) {
    const struct summary *summary = &printer->file->summary;
    for (size_t i = 0; i < summary->site_count; i++) {
        if (!rows_has(&summary->sites[i]))
            continue;
        struct frames frames = frames_of(printer, (uint32_t)i);
        const char *only = printer->wanted->function;
        if (frames.count && (!only || has_function(&frames, only))) {
            struct place place = {.first = base_copy(frames.at[0].text), .sum = summary->sites[i]};
            *vector_push(place.stacks, place.count) = (uint32_t)i;
            *vector_push(printer->places, printer->count) = place;
        }
        free_frames(&frames);
    }
    size_t kept = 0;
    if (printer->count)
        qsort(printer->places, printer->count, sizeof *printer->places, compare_texts);
    for (size_t i = 0; i < printer->count; i++) {
        struct place *last = kept ? &printer->places[kept - 1] : NULL;
        struct place *place = &printer->places[i];
        if (!last || strcmp(last->first, place->first) != 0) {
            printer->places[kept++] = *place;
            continue;
        }
        add_site(&last->sum, &place->sum);
        *vector_push(last->stacks, last->count) = place->stacks[0];
        free(place->stacks);
        free(place->first);
    }
    printer->count = kept;
}

// ---- lists -------------------------------------------------------------------------------------

struct list {
    const char *title;
    size_t offset; // in struct summary_site: what it is sorted by
    bool is_bytes;
    void (*print)(const struct printer *printer, const struct summary_site *site, bool is_stack);
};

static uint64_t weight_of(const struct list *list, const struct summary_site *site) {
    return *(const uint64_t *)((const char *)site + list->offset);
}

// 72.70K: thousands, as heaptrack counts.
static const char *bytes_text(char text[32], uint64_t bytes) {
    static const char units[] = "BKMGTPE";
    double value = (double)bytes;
    unsigned unit = 0;
    while (value >= 1000 && units[unit + 1]) {
        value /= 1000;
        unit++;
    }
    snprintf(text, 32, unit ? "%.2f%c" : "%.0f%c", value, units[unit]);
    return text;
}

static void print_calls(const struct printer *printer, const struct summary_site *site,
                        bool is_stack) {
    char text[32];
    fprintf(printer->out, "%" PRIu64 " calls %swith %s peak consumption from%s\n", site->allocated,
            is_stack ? "" : "to allocation functions ", bytes_text(text, site->peak_bytes),
            is_stack ? ":" : "");
}

static void print_peak(const struct printer *printer, const struct summary_site *site,
                       bool is_stack) {
    char text[32];
    fprintf(printer->out, "%s %sconsumed over %" PRIu64 " calls from%s\n",
            bytes_text(text, site->peak_bytes), is_stack ? "" : "peak memory ", site->allocated,
            is_stack ? ":" : "");
}

static void print_leak(const struct printer *printer, const struct summary_site *site,
                       bool is_stack) {
    char text[32];
    fprintf(printer->out, "%s leaked over %" PRIu64 " calls from%s\n",
            bytes_text(text, site->live_bytes), site->allocated, is_stack ? ":" : "");
}

static void print_temporary(const struct printer *printer, const struct summary_site *site,
                            bool is_stack) {
    double percent =
        site->allocated ? 100.0 * (double)site->temporary / (double)site->allocated : 0;
    fprintf(printer->out,
            "%" PRIu64 " temporary allocations of %" PRIu64
            " allocations in total (%.2f%%) from%s\n",
            site->temporary, site->allocated, percent, is_stack ? ":" : "");
}

static const struct list lists[] = {
    {"MOST CALLS TO ALLOCATION FUNCTIONS", offsetof(struct summary_site, allocated), false,
     print_calls},
    {"PEAK MEMORY CONSUMERS", offsetof(struct summary_site, peak_bytes), true, print_peak},
    {"MEMORY LEAKS", offsetof(struct summary_site, live_bytes), true, print_leak},
    {"MOST TEMPORARY ALLOCATIONS", offsetof(struct summary_site, temporary), false,
     print_temporary},
};

struct order {
    const struct list *list;
    const struct summary_site *sites;
};

static int compare_weights(uint64_t a, uint64_t b) {
    return (a < b) - (a > b);
}

static int compare_places(const void *left, const void *right, void *context) {
    const struct order *order = context;
    const struct place *a = left, *b = right;
    int result = compare_weights(weight_of(order->list, &a->sum), weight_of(order->list, &b->sum));
    return result ? result : strcmp(a->first, b->first);
}

static int compare_stacks(const void *left, const void *right, void *context) {
    const struct order *order = context;
    const uint32_t *a = left, *b = right;
    int result = compare_weights(weight_of(order->list, &order->sites[*a]),
                                 weight_of(order->list, &order->sites[*b]));
    return result ? result : (*a > *b) - (*a < *b);
}

static void print_place(const struct printer *printer, const struct order *order,
                        struct place *place) {
    struct summary_site rest = {0};
    size_t left = 0;
    qsort_r(place->stacks, place->count, sizeof *place->stacks, compare_stacks, (void *)order);
    order->list->print(printer, &place->sum, false);
    struct frames frames = frames_of(printer, place->stacks[0]);
    print_frame(printer->out, &frames.at[0], 0, frames.at[0].is_last);
    free_frames(&frames);
    for (size_t i = 0; i < place->count; i++) {
        const struct summary_site *site = &order->sites[place->stacks[i]];
        if (!weight_of(order->list, site))
            break;
        if (i >= printer->wanted->stacks) {
            add_site(&rest, site);
            left++;
            continue;
        }
        order->list->print(printer, site, true);
        print_callers(printer, place->stacks[i]);
    }
    uint64_t more = weight_of(order->list, &rest);
    char bytes[32];
    if (left && order->list->is_bytes)
        fprintf(printer->out, "  and %s from %zu other places\n", bytes_text(bytes, more), left);
    else if (left)
        fprintf(printer->out, "  and %" PRIu64 " from %zu other places\n", more, left);
    fputc('\n', printer->out);
}

static void print_list(const struct printer *printer, const struct list *list) {
    struct order order = {list, printer->file->summary.sites};
    fprintf(printer->out, "%s\n", list->title);
    if (printer->count)
        qsort_r(printer->places, printer->count, sizeof *printer->places, compare_places, &order);
    for (size_t i = 0; i < printer->count && i < printer->wanted->places; i++) {
        if (!weight_of(list, &printer->places[i].sum))
            break;
        print_place(printer, &order, &printer->places[i]);
    }
    fputc('\n', printer->out);
}

static void print_totals(const struct printer *printer) {
    const struct summary *summary = &printer->file->summary;
    double seconds = (double)summary->time / 1e9;
    double by_second = seconds > 0 ? 1 / seconds : 0;
    char text[32];
    FILE *out = printer->out;
    fprintf(out, "total runtime: %.2fs.\n", seconds);
    fprintf(out, "calls to allocation functions: %" PRIu64 " (%.0f/s)\n", summary->total.allocated,
            (double)summary->total.allocated * by_second);
    fprintf(out, "temporary memory allocations: %" PRIu64 " (%.0f/s)\n", summary->total.temporary,
            (double)summary->total.temporary * by_second);
    fprintf(out, "peak heap memory consumption: %s\n", bytes_text(text, summary->total.peak_bytes));
    fprintf(out, "peak RSS (including heaptrack overhead): %s\n",
            bytes_text(text, summary->resident.peak_bytes));
    fprintf(out, "total memory leaked: %s\n", bytes_text(text, summary->total.live_bytes));
}

void heaptrack_print(FILE *out, const struct heap_file *file,
                     const struct heaptrack_print *wanted) {
    struct printer printer = {.out = out, .file = file, .wanted = wanted};
    const bool chosen[] = {wanted->allocations, wanted->peaks, wanted->leaks, wanted->temporary};
    gather_places(&printer);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (chosen[i])
            print_list(&printer, &lists[i]);
    print_totals(&printer);
    for (size_t i = 0; i < printer.count; i++) {
        free(printer.places[i].stacks);
        free(printer.places[i].first);
    }
    free(printer.places);
}
