#include "tools/callgrind/supervisor/event_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// Numbers stand in three columns: all, and reads and writes (or conditional and indirect ones).
struct layout {
    struct text *out;
    unsigned width[3];
    bool wide; // cachegrind leaves more room
};

struct sum {
    uint64_t all, first, second;
};

static unsigned width_of(uint64_t number) {
    struct text text = {0};
    text_commas(&text, number);
    unsigned width = text.size;
    text_free(&text);
    return width;
}

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static uint64_t total_of(const struct call_graph *graph, const char *event) {
    for (unsigned i = 0; i < graph->event_count; i++)
        if (strcmp(graph->events[i], event) == 0)
            return graph->totals[i];
    return 0;
}

static struct sum sum_of(const struct call_graph *graph, const char *first, const char *second) {
    uint64_t a = total_of(graph, first), b = total_of(graph, second);
    return (struct sum){a + b, a, b};
}

static void add_number(struct layout *layout, unsigned column, uint64_t number) {
    struct text text = {0};
    text_commas(&text, number);
    text_format(layout->out, "%*s", (int)layout->width[column], text.bytes);
    text_free(&text);
}

static void add_rate(struct layout *layout, unsigned column, int digits, uint64_t part,
                     uint64_t whole) {
    char rate[32];
    snprintf(rate, sizeof rate, "%.*f%%", digits, whole ? 100.0 * (double)part / (double)whole : 0);
    text_format(layout->out, "%*s", (int)layout->width[column] + 1, rate);
}

static void single(struct layout *layout, const char *label, uint64_t number) {
    text_format(layout->out, "%-14s ", label);
    add_number(layout, 0, number);
    text_char(layout->out, '\n');
}

static void single_rate(struct layout *layout, const char *label, uint64_t part, uint64_t whole) {
    text_format(layout->out, "%-14s ", label);
    add_rate(layout, 0, 2, part, whole);
    text_char(layout->out, '\n');
}

static void triple(struct layout *layout, const char *label, struct sum sum, const char *first,
                   const char *second) {
    text_format(layout->out, "%-14s ", label);
    add_number(layout, 0, sum.all);
    text_string(layout->out, "  (");
    add_number(layout, 1, sum.first);
    text_string(layout->out, first);
    add_number(layout, 2, sum.second);
    text_string(layout->out, second);
}

static void triple_rate(struct layout *layout, const char *label, struct sum parts,
                        struct sum wholes, const char *first, const char *second) {
    text_format(layout->out, "%-14s ", label);
    add_rate(layout, 0, 1, parts.all, wholes.all);
    text_string(layout->out, " (");
    add_rate(layout, 1, 1, parts.first, wholes.first);
    text_string(layout->out, first);
    add_rate(layout, 2, 1, parts.second, wholes.second);
    text_string(layout->out, second);
}

static void cache_lines(const struct call_graph *graph, struct layout *layout) {
    uint64_t code = total_of(graph, "Ir");
    uint64_t code_first = total_of(graph, "I1mr"), code_last = total_of(graph, "ILmr");
    struct sum data = sum_of(graph, "Dr", "Dw");
    struct sum first = sum_of(graph, "D1mr", "D1mw"), last = sum_of(graph, "DLmr", "DLmw");
    const char *numbers = layout->wide ? " rd   + " : " rd + ";
    const char *rates = layout->wide ? "     + " : "   + ";
    single(layout, "I1  misses:", code_first);
    single(layout, "LLi misses:", code_last);
    single_rate(layout, "I1  miss rate:", code_first, code);
    single_rate(layout, "LLi miss rate:", code_last, code);
    text_char(layout->out, '\n');
    triple(layout, "D   refs:", data, numbers, " wr)\n");
    triple(layout, "D1  misses:", first, numbers, " wr)\n");
    triple(layout, "LLd misses:", last, numbers, " wr)\n");
    triple_rate(layout, "D1  miss rate:", first, data, rates, "  )\n");
    triple_rate(layout, "LLd miss rate:", last, data, rates, "  )\n");
    text_char(layout->out, '\n');
    struct sum uses = {first.all + code_first, first.first + code_first, first.second};
    struct sum misses = {last.all + code_last, last.first + code_last, last.second};
    struct sum all = {data.all + code, data.first + code, data.second};
    triple(layout, "LL refs:", uses, numbers, " wr)\n");
    triple(layout, "LL misses:", misses, numbers, " wr)\n");
    triple_rate(layout, "LL miss rate:", misses, all, rates, "  )\n");
}

void event_text(const struct call_graph *graph, bool cachegrind, struct text *out) {
    struct sum data = sum_of(graph, "Dr", "Dw"), branches = sum_of(graph, "Bc", "Bi");
    struct sum wrong = sum_of(graph, "Bcm", "Bim");
    struct layout layout = {
        .out = out,
        .width = {width_of(larger(larger(total_of(graph, "Ir"), data.all), branches.all)),
                  width_of(larger(data.first, branches.first)),
                  width_of(larger(data.second, branches.second))},
        .wide = cachegrind};
    if (!cachegrind) {
        text_string(out, "Events    :");
        for (unsigned i = 0; i < graph->event_count; i++)
            text_format(out, " %s", graph->events[i]);
        text_string(out, "\nCollected :");
        for (unsigned i = 0; i < graph->event_count; i++)
            text_format(out, " %" PRIu64, graph->totals[i]);
        text_string(out, "\n\n");
    }
    single(&layout, "I   refs:", total_of(graph, "Ir"));
    bool has_caches = false, has_branches = false;
    for (unsigned i = 0; i < graph->event_count; i++) {
        has_caches |= strcmp(graph->events[i], "I1mr") == 0;
        has_branches |= strcmp(graph->events[i], "Bc") == 0;
    }
    if (has_caches)
        cache_lines(graph, &layout);
    if (has_branches) {
        text_char(out, '\n');
        triple(&layout, "Branches:", branches, " cond + ", " ind)\n");
        triple(&layout, "Mispredicts:", wrong, " cond + ", " ind)\n");
        triple_rate(&layout, "Mispred rate:", wrong, branches, "     + ", "   )\n");
    }
    out->bytes[--out->size] = 0; // the last line's end
}
