#include "tools/callgrind/supervisor/build.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "base/vector.h"

#define UNKNOWN "???"

// What the supervisor knows of an address; looked up once.
struct place {
    uint64_t pc, address;
    const char *object, *file, *name;
    uint32_t line;
};

// ---- names -------------------------------------------------------------------------------------

static void resolve(struct counts_build *build, uint64_t pc, struct place *place) {
    struct symbol_frame frame;
    *place = (struct place){.pc = pc, .object = UNKNOWN, .file = UNKNOWN};
    if (!symbols_resolve(build->symbols, build->pid, pc, false, &frame, 1))
        return;
    place->address = frame.address;
    place->line = frame.line;
    place->name = frame.name;
    if (frame.object)
        place->object = frame.object;
    if (frame.file && frame.directory) {
        struct text path = {0};
        text_format(&path, "%s/%s", frame.directory, frame.file);
        place->file = symbols_keep(build->symbols, path.bytes);
        text_free(&path);
    } else if (frame.file) {
        place->file = frame.file;
    }
}

// By value: the table may move.
static struct place place_of(struct counts_build *build, uint64_t pc) {
    static const struct place nowhere = {.object = UNKNOWN, .file = UNKNOWN};
    if (!pc)
        return nowhere;
    bool is_new;
    uint32_t number = map_integers_add(&build->place_map, pc, &is_new);
    if (is_new)
        resolve(build, pc, vector_push(build->places, build->place_count));
    return build->places[number];
}

// The functions through which the C library calls main go by one name, as in stacks.
static bool is_below_main(const char *name) {
    static const char *const names[] = {"_start", "__libc_start_main", "__libc_start_main_impl",
                                        "__libc_start_call_main", "generic_start_main"};
    size_t size = strcspn(name, "@");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == size && memcmp(name, names[i], size) == 0)
            return true;
    return false;
}

// ---- the graph ---------------------------------------------------------------------------------

static bool is_hidden(const struct counts_build *build, const struct place *place) {
    return place->name && !build->source->show_below_main && is_below_main(place->name);
}

static void add_name(struct counts_build *build, const struct place *place, struct text *name) {
    if (is_hidden(build, place))
        text_string(name, "(below main)");
    else if (place->name)
        text_string(name, place->name);
    else if (place->address || place->pc)
        text_format(name, "0x%016" PRIx64, place->address ? place->address : place->pc);
    else
        text_string(name, UNKNOWN);
}

static struct place place_of_function(struct counts_build *build, uint32_t function) {
    return place_of(
        build, function && function < build->function_count ? build->function_pcs[function] : 0);
}

// A new one.
static uint32_t add_function(struct counts_build *build, const struct place *place,
                             const char *name) {
    struct call_graph *graph = build->graph;
    *vector_push(graph->functions, graph->function_count) =
        (struct graph_function){.object = place->object,
                                .file = place->file,
                                .name = symbols_keep(build->symbols, name),
                                .address = place->address,
                                .line = place->line};
    return (uint32_t)graph->function_count - 1;
}

uint32_t build_function(struct counts_build *build, uint32_t function, uint32_t level) {
    if (function >= build->function_count)
        function = 0;
    if (level < 1 || level > BUILD_LEVELS)
        level = 1;
    uint32_t *known = &build->functions[function * BUILD_LEVELS + level - 1];
    if (*known)
        return *known - 1;
    struct place place = place_of_function(build, function);
    struct text name = {0};
    add_name(build, &place, &name);
    if (level > 1 && !build->source->plain_names)
        text_format(&name, "'%u", level);
    uint32_t number = add_function(build, &place, name.bytes);
    text_free(&name);
    *known = number + 1;
    return number;
}

// ---- contexts ----------------------------------------------------------------------------------

static uint32_t find_context(const struct counts_build *build, const struct place *place,
                             const char *name, uint64_t hash) {
    struct map_walk walk = map_walk(hash);
    for (uint32_t number; (number = map_next(&build->context_map, &walk)) != MAP_NONE;) {
        const struct graph_function *other = &build->graph->functions[build->contexts[number]];
        if (strcmp(other->name, name) == 0 && strcmp(other->file, place->file) == 0 &&
            strcmp(other->object, place->object) == 0)
            return number;
    }
    return MAP_NONE;
}

// Threads have contexts of their own: the same one by name is the same.
uint32_t build_context(struct counts_build *build, const struct counts_context *context) {
    struct place place = place_of_function(build, context->function);
    struct text name = {0};
    add_name(build, &place, &name);
    if (context->level > 1)
        text_format(&name, "'%u", context->level);
    bool hidden = is_hidden(build, &place);
    for (uint32_t i = 0; i < context->caller_count && i < COUNTS_CALLERS; i++) {
        struct place caller = place_of_function(build, context->callers[i]);
        // All that is below main is one function.
        bool was_hidden = hidden;
        hidden = is_hidden(build, &caller);
        if (hidden && was_hidden)
            continue;
        text_char(&name, '\'');
        add_name(build, &caller, &name);
    }
    if (build->source->plain_names) {
        text_clear(&name);
        add_name(build, &place, &name);
    }
    uint64_t hash = hash_words(name.bytes, name.size);
    uint32_t number = find_context(build, &place, name.bytes, hash);
    if (number == MAP_NONE) {
        uint32_t function = add_function(build, &place, name.bytes);
        number = map_add(&build->context_map, hash);
        *vector_push(build->contexts, build->context_count) = function;
    }
    text_free(&name);
    return build->contexts[number];
}

struct graph_place build_place(struct counts_build *build, uint32_t function, uint64_t pc) {
    struct place place = place_of(build, pc);
    return (struct graph_place){
        .function = function, .line = place.line, .file = place.file, .address = place.address};
}

// Room for the numbers of one cost or call, all 0.
static size_t add_values(struct counts_build *build) {
    struct call_graph *graph = build->graph;
    size_t at = graph->value_count;
    uint64_t *values = vector_extend(graph->values, graph->value_count, graph->event_count);
    memset(values, 0, graph->event_count * sizeof *values);
    return at;
}

void build_value(struct counts_build *build, size_t values, enum counts_event event,
                 uint64_t amount) {
    if (build->columns[event] < COUNTS_EVENTS)
        build->graph->values[values + build->columns[event]] += amount;
}

size_t build_cost(struct counts_build *build, uint32_t function, uint64_t pc) {
    struct call_graph *graph = build->graph;
    size_t values = add_values(build);
    struct graph_place at = build_place(build, function, pc);
    *vector_push(graph->costs, graph->cost_count) = (struct graph_cost){.at = at, .values = values};
    return values;
}

void build_event(struct counts_build *build, uint32_t function, uint64_t pc,
                 enum counts_event event, uint64_t amount) {
    build_value(build, build_cost(build, function, pc), event, amount);
}

size_t build_call(struct counts_build *build, uint32_t function, uint64_t pc, uint32_t callee,
                  uint64_t count) {
    struct call_graph *graph = build->graph;
    size_t values = add_values(build);
    struct graph_place at = build_place(build, function, pc);
    *vector_push(graph->calls, graph->call_count) =
        (struct graph_call){.at = at, .callee = callee, .count = count, .values = values};
    return values;
}

void build_jump(struct counts_build *build, const struct graph_jump *jump) {
    struct call_graph *graph = build->graph;
    *vector_push(graph->jumps, graph->jump_count) = *jump;
}

void build_free(struct counts_build *build) {
    free(build->functions);
    map_free(&build->context_map);
    free(build->contexts);
    free(build->by_function);
    free(build->first_id);
    map_integers_free(&build->place_map);
    free(build->places);
    map_integers_free(&build->branch_map);
    free(build->branches);
    free(build->entries);
}
