#include "report/callgrind/cost_merge.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/vector.h"
#include "profile/costs/visit.h"
#include "report/callgrind/callgrind.h"

// What the head of a file says once, and the merged one says if all files agree.
enum fact {
    FACT_CREATOR,
    FACT_COMMAND,
    FACT_PID,
    FACT_PART,
    FACT_THREAD,
    FACT_I1,
    FACT_D1,
    FACT_LL,
    FACT_RANGE,
    FACT_TRIGGER,
    FACTS
};
static const struct {
    const char *key, *start; // of the line; how the rest begins
} fact_lines[FACTS] = {
    [FACT_CREATOR] = {"creator:", ""},
    [FACT_COMMAND] = {"cmd:", ""},
    [FACT_PID] = {"pid:", ""},
    [FACT_PART] = {"part:", ""},
    [FACT_THREAD] = {"thread:", ""},
    [FACT_I1] = {"desc:", "I1 cache:"},
    [FACT_D1] = {"desc:", "D1 cache:"},
    [FACT_LL] = {"desc:", "LL cache:"},
    [FACT_RANGE] = {"desc:", "Timerange:"},
    [FACT_TRIGGER] = {"desc:", "Trigger:"},
};

struct fact_value {
    const char *text; // of the first file that says it; "": none does
    bool differs;
    bool said; // in the file being read
};

enum kind { KIND_UNKNOWN, KIND_CALLGRIND, KIND_CACHEGRIND };
static const char *const kind_names[] = {"", "a callgrind.out", "a cachegrind.out"};

struct cost_merge {
    struct cost_profile *profile;   // strings, events and functions
    struct call_graph graph;        // of the profile's functions; without their names until the end
    struct map costs, calls, jumps; // by the graph's numbers of them
    struct graph_function *functions; // where they are entered, as far as calls say
    size_t function_room;
    uint32_t *order; // of functions, plus 1, as they come first in the files; 0: not yet
    size_t order_room;
    uint32_t ordered;
    uint64_t ranks; // given to costs, calls and jumps
    struct fact_value facts[FACTS];
    struct text more; // further lines of the first head
    uint64_t summary[COST_EVENTS];
    enum kind kind;
    const char *first; // path
    size_t file_count;
    bool lines, addresses;                       // all places so far have them
    bool some_lines, some_addresses;             // some have
    const char *without_lines, *without_address; // the first path that has none
    // Of the file being read.
    const char *path;
    bool is_callgrind, has_costs, has_summary;
    bool is_open;                 // events were told, and their sums not yet
    uint64_t before[COST_EVENTS]; // the totals of all files before
    uint64_t sums[COST_EVENTS];   // what its last lines say that its costs add up to
};

struct cost_merge *cost_merge_new(void) {
    struct cost_merge *merge = base_allocate(sizeof *merge);
    memset(merge, 0, sizeof *merge);
    merge->profile = costs_new();
    merge->lines = merge->addresses = true;
    return merge;
}

void cost_merge_free(struct cost_merge *merge) {
    map_free(&merge->costs);
    map_free(&merge->calls);
    map_free(&merge->jumps);
    costs_free(merge->profile);
    free(merge->graph.costs);
    free(merge->graph.calls);
    free(merge->graph.jumps);
    free(merge->graph.values);
    free(merge->functions);
    free(merge->order);
    text_free(&merge->more);
    free(merge);
}

// ---- tables ------------------------------------------------------------------------------------

typedef bool same_function(const struct call_graph *graph, size_t number, const void *wanted);

// The number of what is the same as wanted; it is a new one if that was the count before.
static size_t number_of(struct map *map, const struct call_graph *graph, uint64_t hash,
                        same_function *same, const void *wanted) {
    struct map_walk walk = map_walk(hash);
    for (uint32_t number; (number = map_next(map, &walk)) != MAP_NONE;)
        if (same(graph, number, wanted))
            return number;
    return map_add(map, hash);
}

static uint64_t hash_of_place(const struct graph_place *place) {
    uint64_t hash = hash_add(hash_add(1, place->function), place->line);
    return hash_add(hash_add(hash, (uint64_t)place->file), place->address);
}

// Strings are the profile's: the same text is at the same address.
static bool is_same_place(const struct graph_place *a, const struct graph_place *b) {
    return a->function == b->function && a->line == b->line && a->file == b->file &&
           a->address == b->address;
}

static bool is_same_cost(const struct call_graph *graph, size_t number, const void *wanted) {
    return is_same_place(&graph->costs[number].at, wanted);
}

static bool is_same_call(const struct call_graph *graph, size_t number, const void *wanted) {
    const struct graph_call *a = &graph->calls[number], *b = wanted;
    return a->callee == b->callee && is_same_place(&a->at, &b->at);
}

static bool is_same_jump(const struct call_graph *graph, size_t number, const void *wanted) {
    const struct graph_jump *a = &graph->jumps[number], *b = wanted;
    return a->conditional == b->conditional && a->function == b->function &&
           is_same_place(&a->at, &b->at) && is_same_place(&a->to, &b->to);
}

// ---- what is in the files ----------------------------------------------------------------------

static struct graph_place place_of(struct cost_merge *merge, const struct cost_place *place) {
    if (!place->has_line && !merge->without_lines)
        merge->without_lines = merge->path;
    if (!place->has_address && !merge->without_address)
        merge->without_address = merge->path;
    merge->lines &= place->has_line;
    merge->addresses &= place->has_address;
    merge->some_lines |= place->has_line;
    merge->some_addresses |= place->has_address;
    return (struct graph_place){place->function, place->line, place->file, place->address, 0};
}

// Readers show what is equal in the order of the file, so that stays.
static void rank_place(struct cost_merge *merge, struct graph_place *place) {
    place->rank = ++merge->ranks;
    merge->order =
        base_reach(merge->order, &merge->order_room, place->function, sizeof *merge->order);
    if (!merge->order[place->function])
        merge->order[place->function] = ++merge->ordered;
}

static size_t new_values(struct cost_merge *merge) {
    struct call_graph *graph = &merge->graph;
    size_t at = graph->value_count, size = merge->profile->event_count;
    memset(vector_extend(graph->values, graph->value_count, size), 0, size * sizeof *graph->values);
    return at;
}

static void add_values(const struct cost_merge *merge, size_t number, const uint64_t *values) {
    for (unsigned i = 0; i < merge->profile->event_count; i++)
        merge->graph.values[number + i] += values[i];
}

static void add_cost(void *context, const struct cost_place *at, const uint64_t *values) {
    struct cost_merge *merge = context;
    struct call_graph *graph = &merge->graph;
    struct graph_place place = place_of(merge, at);
    merge->has_costs = true;
    merge->is_callgrind |= *merge->profile->functions[at->function].object != 0;
    size_t number = number_of(&merge->costs, graph, hash_of_place(&place), is_same_cost, &place);
    if (number == graph->cost_count) {
        vector_push(graph->costs, graph->cost_count);
        graph->costs[number] = (struct graph_cost){place, new_values(merge)};
        rank_place(merge, &graph->costs[number].at);
    }
    add_values(merge, graph->costs[number].values, values);
    for (unsigned i = 0; i < merge->profile->event_count; i++)
        graph->totals[i] += values[i];
}

static void add_call(void *context, const struct cost_visited_call *call, const uint64_t *values) {
    struct cost_merge *merge = context;
    struct call_graph *graph = &merge->graph;
    struct graph_call wanted = {.at = place_of(merge, &call->at), .callee = call->target.function};
    merge->has_costs = merge->is_callgrind = true;
    size_t number =
        number_of(&merge->calls, graph, hash_add(hash_of_place(&wanted.at), wanted.callee),
                  is_same_call, &wanted);
    if (number == graph->call_count) {
        vector_push(graph->calls, graph->call_count);
        graph->calls[number] = wanted;
        graph->calls[number].values = new_values(merge);
        rank_place(merge, &graph->calls[number].at);
    }
    graph->calls[number].count += call->count;
    add_values(merge, graph->calls[number].values, values);
    merge->functions = base_reach(merge->functions, &merge->function_room, wanted.callee,
                                  sizeof *merge->functions);
    struct graph_function *callee = &merge->functions[wanted.callee];
    if (!callee->address && !callee->line) {
        callee->address = call->target.address;
        callee->line = call->target.line;
    }
}

static void add_jump(void *context, const struct cost_visited_jump *jump) {
    struct cost_merge *merge = context;
    struct call_graph *graph = &merge->graph;
    struct graph_jump wanted = {.at = place_of(merge, &jump->at),
                                .to = place_of(merge, &jump->target),
                                .function = jump->function,
                                .conditional = jump->conditional};
    uint64_t hash = hash_add(hash_of_place(&wanted.at), hash_of_place(&wanted.to));
    merge->has_costs = merge->is_callgrind = true;
    size_t number = number_of(&merge->jumps, graph,
                              hash_add(hash, (uint64_t)jump->function + jump->conditional),
                              is_same_jump, &wanted);
    if (number == graph->jump_count) {
        vector_push(graph->jumps, graph->jump_count);
        graph->jumps[number] = wanted;
        rank_place(merge, &graph->jumps[number].at);
    }
    graph->jumps[number].taken += jump->taken;
    graph->jumps[number].met += jump->executed;
}

// ---- heads -------------------------------------------------------------------------------------

static void add_sum(void *context, bool is_summary, const uint64_t *values) {
    struct cost_merge *merge = context;
    for (unsigned i = 0; i < merge->profile->event_count; i++) {
        if (is_summary)
            merge->summary[i] += values[i];
        if (is_summary != merge->is_callgrind)
            merge->sums[i] += values[i];
    }
    merge->has_summary |= is_summary;
}

static void add_fact(struct cost_merge *merge, enum fact fact, const char *text) {
    struct fact_value *value = &merge->facts[fact];
    size_t size = strlen(text);
    while (size && (text[size - 1] == ' ' || text[size - 1] == '\t'))
        size--;
    text = costs_string(merge->profile, text, size);
    value->differs |= value->text && value->text != text;
    if (!value->text || !*value->text)
        value->text = text;
    value->said = true;
}

static bool is_fact(struct cost_merge *merge, const char *key, const char *rest) {
    for (unsigned i = 0; i < FACTS; i++) {
        size_t size = strlen(fact_lines[i].start);
        if (strcmp(key, fact_lines[i].key) != 0 || strncmp(rest, fact_lines[i].start, size) != 0)
            continue;
        add_fact(merge, i, rest + size + strspn(rest + size, " \t"));
        return true;
    }
    return false;
}

static enum kind kind_so_far(const struct cost_merge *merge) {
    return merge->is_callgrind || !merge->facts[FACT_COMMAND].said ? KIND_CALLGRIND
                                                                   : KIND_CACHEGRIND;
}

static void add_other_kind(const struct cost_merge *merge, struct text *text) {
    text_format(text, "it is %s, and '%s' is %s", kind_names[kind_so_far(merge)], merge->first,
                kind_names[merge->kind]);
}

static const char *other_events(const struct cost_merge *merge, const char *events) {
    struct text text = {0};
    if (kind_so_far(merge) != merge->kind) {
        add_other_kind(merge, &text);
    } else {
        text_format(&text, "its events are %.*s, those of '%s' are", 400, events, merge->first);
        for (unsigned i = 0; i < merge->profile->event_count; i++)
            text_format(&text, " %s", merge->profile->events[i]);
    }
    const char *fault = costs_string(merge->profile, text.bytes, text.size);
    text_free(&text);
    return fault;
}

// NULL, or what is wrong: the files before must have counted the same.
static const char *check_events(const struct cost_merge *merge, const char *events) {
    uint64_t found = 0;
    if (!merge->file_count)
        return NULL;
    for (const char *at = events + strspn(events, " \t"); *at; at += strspn(at, " \t")) {
        size_t size = strcspn(at, " \t");
        int event = costs_event(merge->profile, costs_string(merge->profile, at, size));
        if (event < 0)
            return other_events(merge, events);
        found |= 1ull << event;
        at += size;
    }
    return found + 1 == 1ull << merge->profile->event_count ? NULL : other_events(merge, events);
}

static const char *read_head(void *context, const char *key, const char *rest) {
    struct cost_merge *merge = context;
    static const char *const callgrinds[] = {
        "version:", "creator:", "pid:", "part:", "thread:", "positions:", "event:", "totals:"};
    for (size_t i = 0; i < sizeof callgrinds / sizeof *callgrinds; i++)
        merge->is_callgrind |= strcmp(key, callgrinds[i]) == 0;
    if (strcmp(key, "events:") == 0) {
        merge->is_open = true;
        return check_events(merge, rest);
    }
    // A cachegrind.out ends with its summary, a callgrind.out with its totals.
    if (strcmp(key, "totals:") == 0 || (strcmp(key, "summary:") == 0 && !merge->is_callgrind))
        merge->is_open = false;
    else if (!is_fact(merge, key, rest) && !merge->has_costs && !merge->file_count &&
             (strcmp(key, "desc:") == 0 || strcmp(key, "event:") == 0)) {
        text_format(&merge->more, "%s ", key);
        for (; *rest; rest++)
            text_char(&merge->more, (unsigned char)*rest < ' ' ? '?' : *rest);
        text_char(&merge->more, '\n');
    }
    return NULL;
}

// ---- files -------------------------------------------------------------------------------------

static bool begins_with(const char *text, const char *start) {
    return text && strncmp(text, start, strlen(start)) == 0;
}

// Whether something is missing in the file or has been changed; only those whose writers are known
// must end as theirs do. `end` is the line that does.
static void check_end(const struct cost_merge *merge, const char *end, struct text *problem) {
    const char *creator = merge->profile->creator;
    if (merge->is_callgrind && !begins_with(creator, "callgrind-") &&
        !begins_with(creator, "quern-"))
        return;
    if (merge->is_open) {
        text_format(problem, "it is cut off: there is no line '%s' at its end", end);
        return;
    }
    for (unsigned i = 0; i < merge->profile->event_count; i++) {
        uint64_t sum = merge->graph.totals[i] - merge->before[i];
        if (sum == merge->sums[i])
            continue;
        text_format(problem, "it is damaged: its costs add up to %" PRIu64 " %s, not %" PRIu64, sum,
                    merge->profile->events[i], merge->sums[i]);
        return;
    }
}

// NULL, or what is wrong with it.
static char *end_file(struct cost_merge *merge) {
    struct text problem = {0};
    enum kind kind = kind_so_far(merge);
    if (merge->kind && merge->kind != kind)
        add_other_kind(merge, &problem);
    else
        check_end(merge, kind == KIND_CALLGRIND ? "totals:" : "summary:", &problem);
    for (unsigned i = 0; i < FACTS; i++)
        if (!merge->facts[i].said)
            add_fact(merge, i, "");
    for (unsigned i = 0; i < merge->profile->event_count && !merge->has_summary; i++)
        merge->summary[i] += merge->graph.totals[i] - merge->before[i];
    merge->kind = kind;
    merge->file_count++;
    return problem.size ? text_take(&problem) : NULL;
}

char *cost_merge_add(struct cost_merge *merge, const char *path, FILE *in) {
    static const struct cost_visitor visitor = {
        .head = read_head, .cost = add_cost, .call = add_call, .jump = add_jump, .sum = add_sum};
    merge->path = path;
    if (!merge->file_count)
        merge->first = path;
    merge->is_callgrind = merge->has_costs = merge->has_summary = merge->is_open = false;
    memcpy(merge->before, merge->graph.totals, sizeof merge->before);
    memset(merge->sums, 0, sizeof merge->sums);
    merge->profile->creator = NULL;
    for (unsigned i = 0; i < FACTS; i++)
        merge->facts[i].said = false;
    char *problem = costs_visit(merge->profile, in, &visitor, merge);
    return problem ? problem : end_file(merge);
}

char *cost_merge_remarks(const struct cost_merge *merge) {
    static const enum fact compared[] = {FACT_I1, FACT_D1, FACT_LL};
    struct text text = {0};
    if (merge->facts[FACT_COMMAND].differs)
        text_format(&text, "the files are of different commands; the sum goes by the first, '%s'\n",
                    merge->facts[FACT_COMMAND].text);
    for (unsigned i = 0; i < 3; i++)
        if (merge->facts[compared[i]].differs)
            text_format(&text, "the files are of different %.2s caches; the first is '%s'\n",
                        fact_lines[compared[i]].start, merge->facts[compared[i]].text);
    if (!merge->lines && merge->some_lines)
        text_format(&text, "lines are left out: '%s' has none\n", merge->without_lines);
    if (!merge->addresses && merge->some_addresses)
        text_format(&text, "addresses are left out: '%s' has none\n", merge->without_address);
    return text.size ? text_take(&text) : NULL;
}

// ---- the sum -----------------------------------------------------------------------------------

// A number that all files give, or 0.
static int agreed_number(const struct cost_merge *merge, enum fact fact) {
    const struct fact_value *value = &merge->facts[fact];
    long number = value->differs || !value->text ? 0 : strtol(value->text, NULL, 10);
    return number > 0 && number <= INT_MAX ? (int)number : 0;
}

static const char *first_text(const struct cost_merge *merge, enum fact fact) {
    const char *text = merge->facts[fact].text;
    return text && *text ? text : NULL;
}

static const char *agreed_text(const struct cost_merge *merge, enum fact fact) {
    return merge->facts[fact].differs ? NULL : first_text(merge, fact);
}

// Functions get the numbers by which they are written. Those that are only called come last.
static void name_functions(struct cost_merge *merge) {
    const struct cost_profile *profile = merge->profile;
    size_t count = profile->function_count;
    if (!count)
        return;
    struct graph_function *named = base_allocate(count * sizeof *named);
    merge->order = base_reach(merge->order, &merge->order_room, count - 1, sizeof *merge->order);
    merge->functions =
        base_reach(merge->functions, &merge->function_room, count - 1, sizeof *merge->functions);
    for (size_t i = 0; i < count; i++) {
        if (!merge->order[i])
            merge->order[i] = ++merge->ordered;
        named[merge->order[i] - 1] = (struct graph_function){
            profile->functions[i].object, profile->functions[i].file, profile->functions[i].name,
            merge->functions[i].address, merge->functions[i].line};
    }
    free(merge->functions);
    merge->graph.functions = merge->functions = named;
    merge->graph.function_count = merge->function_room = count;
}

static void order_place(const struct cost_merge *merge, struct graph_place *place, bool ranked) {
    place->function = merge->order[place->function] - 1;
    if (!ranked)
        place->rank = 0;
}

// Where lines or addresses are left out, several places become one, and are sorted to be found.
static void order_places(struct cost_merge *merge) {
    struct call_graph *graph = &merge->graph;
    bool ranked = merge->lines == merge->some_lines && merge->addresses == merge->some_addresses;
    for (size_t i = 0; i < graph->cost_count; i++)
        order_place(merge, &graph->costs[i].at, ranked);
    for (size_t i = 0; i < graph->call_count; i++) {
        order_place(merge, &graph->calls[i].at, ranked);
        graph->calls[i].callee = merge->order[graph->calls[i].callee] - 1;
    }
    for (size_t i = 0; i < graph->jump_count; i++)
        order_place(merge, &graph->jumps[i].at, ranked);
}

void cost_merge_write(struct cost_merge *merge, const char *creator, struct text *out) {
    struct call_graph *graph = &merge->graph;
    const char *range = agreed_text(merge, FACT_RANGE), *command = first_text(merge, FACT_COMMAND);
    const char *trigger = agreed_text(merge, FACT_TRIGGER), *by = agreed_text(merge, FACT_CREATOR);
    struct text more = {0}, count = {0};
    name_functions(merge);
    order_places(merge);
    graph->event_count = merge->profile->event_count;
    memcpy(graph->events, merge->profile->events, graph->event_count * sizeof *graph->events);
    if (range)
        text_format(&more, "desc: Timerange: %s\n", range);
    if (merge->more.size)
        text_string(&more, merge->more.bytes);
    text_format(&count, "%zu files merged", merge->file_count);
    struct callgrind_options options = {
        .lines = merge->lines,
        .instructions = merge->addresses && graph->cost_count + graph->call_count > 0,
        .compress_strings = true,
        .compress_positions = true,
        .creator = by ? by : creator,
        .command = command ? command : "",
        .pid = agreed_number(merge, FACT_PID),
        .part = (unsigned)agreed_number(merge, FACT_PART),
        .thread = agreed_number(merge, FACT_THREAD),
        .trigger = trigger || merge->file_count == 1 ? trigger : count.bytes,
        .more = more.bytes,
        .summary = merge->summary,
        .caches = {first_text(merge, FACT_I1), first_text(merge, FACT_D1),
                   first_text(merge, FACT_LL)}};
    if (merge->kind == KIND_CACHEGRIND)
        cachegrind_write(graph, &options, out);
    else
        callgrind_write(graph, &options, out);
    text_free(&more);
    text_free(&count);
}
