#include "report/callgrind/callgrind.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"

static const char *const cache_names[3] = {"I1", "D1", "LL"};

// The three spaces of numbers that stand for names.
enum name_space { NAMES_OBJECT, NAMES_FILE, NAMES_FUNCTION, NAME_SPACES };

struct writer {
    struct text *out;
    const struct call_graph *graph;
    const struct callgrind_options *options;
    struct map_texts names[NAME_SPACES]; // numbered from 1 in the file
    // What the reader believes at this point of the file.
    const char *object, *file;
    uint64_t address;
    uint32_t line;
};

// ---- order -------------------------------------------------------------------------------------

static int compare_numbers(uint64_t a, uint64_t b) {
    return a < b ? -1 : a > b;
}

static int compare_places(const struct graph_place *a, const struct graph_place *b) {
    int order = compare_numbers(a->function, b->function);
    if (!order)
        order = compare_numbers(a->rank, b->rank);
    if (!order && a->file != b->file)
        order = strcmp(a->file, b->file);
    if (!order)
        order = compare_numbers(a->line, b->line);
    return order ? order : compare_numbers(a->address, b->address);
}

static int compare_costs(const void *a, const void *b) {
    return compare_places(&((const struct graph_cost *)a)->at, &((const struct graph_cost *)b)->at);
}

static int compare_calls(const void *a, const void *b) {
    const struct graph_call *x = a, *y = b;
    int order = compare_places(&x->at, &y->at);
    return order ? order : compare_numbers(x->callee, y->callee);
}

static int compare_jumps(const void *a, const void *b) {
    const struct graph_jump *x = a, *y = b;
    int order = compare_places(&x->at, &y->at);
    if (!order)
        order = compare_places(&x->to, &y->to);
    if (!order)
        order = compare_numbers(x->conditional, y->conditional);
    return order ? order : strcmp(x->function ? x->function : "", y->function ? y->function : "");
}

static void coarsen(struct graph_place *place, const struct callgrind_options *options) {
    if (!options->instructions)
        place->address = 0;
    if (!options->lines)
        place->line = 0;
}

static void add_values(struct call_graph *graph, size_t to, size_t from) {
    for (unsigned i = 0; i < graph->event_count; i++)
        graph->values[to + i] += graph->values[from + i];
}

// Those that were never taken are left out, and those to places of which nothing is known.
static void merge_jumps(struct call_graph *graph, const struct callgrind_options *options) {
    size_t kept = 0, count = 0;
    for (size_t i = 0; i < graph->jump_count; i++) {
        coarsen(&graph->jumps[i].at, options);
        coarsen(&graph->jumps[i].to, options);
    }
    if (graph->jump_count)
        qsort(graph->jumps, graph->jump_count, sizeof *graph->jumps, compare_jumps);
    for (size_t i = 0; i < graph->jump_count; i++) {
        struct graph_jump *last = kept ? &graph->jumps[kept - 1] : NULL;
        if (last && compare_jumps(last, &graph->jumps[i]) == 0) {
            last->taken += graph->jumps[i].taken;
            last->met += graph->jumps[i].met;
        } else {
            graph->jumps[kept++] = graph->jumps[i];
        }
    }
    for (size_t i = 0; i < kept; i++)
        if (graph->jumps[i].taken && (options->instructions || graph->jumps[i].to.line))
            graph->jumps[count++] = graph->jumps[i];
    graph->jump_count = count;
}

// Sorts and adds up what is at the same place.
static void merge(struct call_graph *graph, const struct callgrind_options *options) {
    size_t kept = 0;
    for (size_t i = 0; i < graph->cost_count; i++)
        coarsen(&graph->costs[i].at, options);
    for (size_t i = 0; i < graph->call_count; i++)
        coarsen(&graph->calls[i].at, options);
    if (graph->cost_count)
        qsort(graph->costs, graph->cost_count, sizeof *graph->costs, compare_costs);
    for (size_t i = 0; i < graph->cost_count; i++) {
        if (kept && compare_costs(&graph->costs[kept - 1], &graph->costs[i]) == 0)
            add_values(graph, graph->costs[kept - 1].values, graph->costs[i].values);
        else
            graph->costs[kept++] = graph->costs[i];
    }
    graph->cost_count = kept;
    kept = 0;
    if (graph->call_count)
        qsort(graph->calls, graph->call_count, sizeof *graph->calls, compare_calls);
    for (size_t i = 0; i < graph->call_count; i++) {
        struct graph_call *last = kept ? &graph->calls[kept - 1] : NULL;
        if (last && compare_calls(last, &graph->calls[i]) == 0) {
            last->count += graph->calls[i].count;
            add_values(graph, last->values, graph->calls[i].values);
        } else {
            graph->calls[kept++] = graph->calls[i];
        }
    }
    graph->call_count = kept;
    merge_jumps(graph, options);
}

// ---- names and positions -----------------------------------------------------------------------

// A name is data of the target's: no line of it may pass for one of ours.
static void add_name(struct text *out, const char *text) {
    for (; *text; text++)
        text_char(out, (uint8_t)*text < ' ' ? '?' : *text);
}

static void write_name(struct writer *writer, const char *key, enum name_space space,
                       const char *text) {
    text_string(writer->out, key);
    // Behind a number, nothing would mean what was said before.
    if (writer->options->compress_strings && *text) {
        bool is_new;
        uint32_t number = map_texts_add(&writer->names[space], text, strlen(text), &is_new);
        text_format(writer->out, "(%u)", number + 1);
        if (is_new)
            text_char(writer->out, ' ');
        else
            text = "";
    }
    add_name(writer->out, text);
    text_char(writer->out, '\n');
}

static void write_number(struct writer *writer, uint64_t value, uint64_t before, bool hex) {
    int64_t step = (int64_t)(value - before);
    if (writer->options->compress_positions && step == 0)
        text_string(writer->out, "* ");
    else if (writer->options->compress_positions && step > -1000 && step < 1000)
        text_format(writer->out, "%+" PRId64 " ", step);
    else
        text_format(writer->out, hex ? "0x%" PRIx64 " " : "%" PRIu64 " ", value);
}

static void write_position(struct writer *writer, uint64_t address, uint32_t line) {
    if (writer->options->instructions)
        write_number(writer, address, writer->address, true);
    // Without lines and instructions there is still one column: line 0.
    if (writer->options->lines || !writer->options->instructions)
        write_number(writer, line, writer->line, false);
}

// Noughts at the end might be left out, but callgrind_annotate adds up lines and warns of columns
// that it has not met.
static void write_line(struct writer *writer, const struct graph_place *place, size_t values) {
    const uint64_t *numbers = writer->graph->values + values;
    unsigned count = writer->graph->event_count;
    write_position(writer, place->address, place->line);
    writer->address = place->address;
    writer->line = place->line;
    for (unsigned i = 0; i < count; i++)
        text_format(writer->out, i ? " %" PRIu64 : "%" PRIu64, numbers[i]);
    text_char(writer->out, '\n');
}

// ---- body --------------------------------------------------------------------------------------

static void enter_file(struct writer *writer, const char *file, const char *own) {
    if (writer->file == file || strcmp(writer->file, file) == 0)
        return;
    write_name(writer, strcmp(file, own) == 0 ? "fe=" : "fi=", NAMES_FILE, file);
    writer->file = file;
}

static void write_call(struct writer *writer, const struct graph_call *call) {
    const struct graph_function *callee = &writer->graph->functions[call->callee];
    bool lines = writer->options->lines;
    if (strcmp(callee->object, writer->object) != 0)
        write_name(writer, "cob=", NAMES_OBJECT, callee->object);
    if (strcmp(callee->file, writer->file) != 0)
        write_name(writer, "cfi=", NAMES_FILE, callee->file);
    write_name(writer, "cfn=", NAMES_FUNCTION, callee->name);
    text_format(writer->out, "calls=%" PRIu64 " ", call->count);
    write_position(writer, callee->address, lines ? callee->line : 0);
    writer->out->bytes[writer->out->size - 1] = '\n';
    write_line(writer, &call->at, call->values);
}

static void write_jump(struct writer *writer, const struct graph_jump *jump) {
    if (strcmp(jump->to.file, writer->file) != 0)
        write_name(writer, "jfi=", NAMES_FILE, jump->to.file);
    if (jump->function)
        write_name(writer, "jfn=", NAMES_FUNCTION, jump->function);
    if (jump->conditional)
        text_format(writer->out, "jcnd=%" PRIu64 "/%" PRIu64 " ", jump->taken, jump->met);
    else
        text_format(writer->out, "jump=%" PRIu64 " ", jump->taken);
    write_position(writer, jump->to.address, jump->to.line);
    writer->out->bytes[writer->out->size - 1] = '\n';
    write_position(writer, jump->at.address, jump->at.line);
    writer->out->bytes[writer->out->size - 1] = '\n';
    writer->address = jump->at.address;
    writer->line = jump->at.line;
}

static void begin_function(struct writer *writer, const struct graph_function *function) {
    text_char(writer->out, '\n');
    if (!writer->object || strcmp(writer->object, function->object) != 0)
        write_name(writer, "ob=", NAMES_OBJECT, function->object);
    write_name(writer, "fl=", NAMES_FILE, function->file);
    write_name(writer, "fn=", NAMES_FUNCTION, function->name);
    writer->object = function->object;
    writer->file = function->file;
}

// NULL: there is none.
static const struct graph_place *first_of(const struct graph_place *a,
                                          const struct graph_place *b) {
    return !a || (b && compare_places(a, b) > 0) ? b : a;
}

// Costs, calls and jumps are all sorted by function and place: one walk over them.
static void write_body(struct writer *writer) {
    const struct call_graph *graph = writer->graph;
    uint32_t current = UINT32_MAX;
    size_t cost = 0, call = 0, jump = 0;
    for (;;) {
        const struct graph_place *costs = cost < graph->cost_count ? &graph->costs[cost].at : NULL;
        const struct graph_place *calls = call < graph->call_count ? &graph->calls[call].at : NULL;
        const struct graph_place *jumps = jump < graph->jump_count ? &graph->jumps[jump].at : NULL;
        const struct graph_place *at = first_of(first_of(costs, calls), jumps);
        if (!at)
            return;
        const struct graph_function *function = &graph->functions[at->function];
        if (at->function != current)
            begin_function(writer, function);
        current = at->function;
        enter_file(writer, at->file, function->file);
        if (at == costs)
            write_line(writer, at, graph->costs[cost++].values);
        else if (at == calls)
            write_call(writer, &graph->calls[call++]);
        else
            write_jump(writer, &graph->jumps[jump++]);
    }
}

static void write_sums(const struct writer *writer, const char *key, const uint64_t *sums) {
    text_string(writer->out, key);
    for (unsigned i = 0; i < writer->graph->event_count; i++)
        text_format(writer->out, " %" PRIu64, sums[i]);
    text_char(writer->out, '\n');
}

static void write_summary(const struct writer *writer) {
    const uint64_t *summary = writer->options->summary;
    write_sums(writer, "summary:", summary ? summary : writer->graph->totals);
}

static void write_events(const struct writer *writer, const char *end) {
    text_string(writer->out, "events:");
    for (unsigned i = 0; i < writer->graph->event_count; i++)
        text_format(writer->out, " %s", writer->graph->events[i]);
    text_string(writer->out, end);
}

// Who ran what: not repeated in further parts.
static void write_origin(const struct writer *writer) {
    const struct callgrind_options *options = writer->options;
    struct text *out = writer->out;
    text_format(out, "# callgrind format\nversion: 1\ncreator: ");
    add_name(out, options->creator);
    if (options->pid)
        text_format(out, "\npid: %d", options->pid);
    text_string(out, "\ncmd: ");
    add_name(out, options->command);
}

static void write_header(const struct writer *writer) {
    const struct callgrind_options *options = writer->options;
    struct text *out = writer->out;
    if (!options->continues)
        write_origin(writer);
    text_char(out, '\n');
    if (options->part)
        text_format(out, "part: %u\n", options->part);
    if (options->thread)
        text_format(out, "thread: %d\n", options->thread);
    text_string(out, "\n\n");
    for (unsigned i = 0; i < 3; i++) {
        text_format(out, "desc: %s cache: ", cache_names[i]);
        add_name(out, options->caches[i] ? options->caches[i] : "");
        text_char(out, '\n');
    }
    if (options->trigger) {
        text_string(out, "\ndesc: Trigger: ");
        add_name(out, options->trigger);
        text_char(out, '\n');
    }
    if (options->more)
        text_string(out, options->more);
    text_string(out, "\npositions:");
    if (options->instructions)
        text_string(out, " instr");
    if (options->lines || !options->instructions)
        text_string(out, " line");
    text_char(out, '\n');
    for (unsigned i = 0; i < writer->graph->event_count; i++)
        if (writer->graph->titles[i])
            text_format(out, "event: %s : %s\n", writer->graph->events[i],
                        writer->graph->titles[i]);
    write_events(writer, "\n");
    write_summary(writer);
    text_char(out, '\n');
}

// ---- cachegrind.out ----------------------------------------------------------------------------

void cachegrind_write(struct call_graph *graph, const struct callgrind_options *options,
                      struct text *out) {
    struct writer writer = {.out = out, .graph = graph, .options = options};
    merge(graph, options);
    for (unsigned i = 0; i < 3; i++) {
        if (!options->caches[i])
            continue;
        text_format(out, "desc: %s cache:         ", cache_names[i]);
        add_name(out, options->caches[i]);
        text_char(out, '\n');
    }
    if (options->more)
        text_string(out, options->more);
    text_string(out, "cmd: ");
    add_name(out, options->command);
    text_char(out, '\n');
    // cg_merge takes files whose lines are the same, and Valgrind's ends with a space here.
    const char *last = graph->event_count ? graph->events[graph->event_count - 1] : "";
    write_events(&writer, strcmp(last, "DLmw") == 0 ? " \n" : "\n");
    const char *file = NULL;
    uint32_t function = UINT32_MAX;
    for (size_t i = 0; i < graph->cost_count; i++) {
        const struct graph_place *at = &graph->costs[i].at;
        bool other = !file || strcmp(at->file, file) != 0;
        if (other) {
            text_string(out, "fl=");
            add_name(out, at->file);
            text_char(out, '\n');
        }
        if (other || at->function != function) {
            text_string(out, "fn=");
            add_name(out, graph->functions[at->function].name);
            text_char(out, '\n');
        }
        file = at->file;
        function = at->function;
        text_format(out, "%u", at->line);
        for (unsigned j = 0; j < graph->event_count; j++)
            text_format(out, " %" PRIu64, graph->values[graph->costs[i].values + j]);
        text_char(out, '\n');
    }
    write_summary(&writer);
}

// ---- callgrind.out -----------------------------------------------------------------------------

void callgrind_write(struct call_graph *graph, const struct callgrind_options *options,
                     struct text *out) {
    struct writer writer = {
        .out = out, .graph = graph, .options = options, .object = options->continues ? NULL : ""};
    merge(graph, options);
    write_header(&writer);
    write_body(&writer);
    text_char(out, '\n');
    write_sums(&writer, "totals:", graph->totals);
    for (int space = 0; space < NAME_SPACES; space++)
        map_texts_free(&writer.names[space]);
}
