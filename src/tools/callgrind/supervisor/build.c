#include "tools/callgrind/supervisor/build.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define UNKNOWN "???"

// What the supervisor knows of an address; looked up once.
struct place {
    uint64_t pc, address;
    const char *object, *file, *name;
    uint32_t line;
};

// ---- names -------------------------------------------------------------------------------------

static void resolve(struct counts_build *build, struct place *place) {
    struct symbol_frame frame;
    *place = (struct place){.pc = place->pc, .object = UNKNOWN, .file = UNKNOWN};
    if (!symbols_resolve(build->symbols, build->pid, place->pc, false, &frame, 1))
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

static struct place *slot_of(struct place *places, size_t room, uint64_t pc) {
    size_t at = pc * 0x9e3779b97f4a7c15ull >> 20 & (room - 1);
    while (places[at].pc && places[at].pc != pc)
        at = (at + 1) & (room - 1);
    return &places[at];
}

static void grow_places(struct counts_build *build) {
    size_t room = build->place_room ? 2 * build->place_room : 1 << 14;
    struct place *places = base_allocate(room * sizeof *places);
    memset(places, 0, room * sizeof *places);
    for (size_t i = 0; i < build->place_room; i++)
        if (build->places[i].pc)
            *slot_of(places, room, build->places[i].pc) = build->places[i];
    free(build->places);
    build->places = places;
    build->place_room = room;
}

// By value: the table may move.
static struct place place_of(struct counts_build *build, uint64_t pc) {
    static const struct place nowhere = {.object = UNKNOWN, .file = UNKNOWN};
    if (!pc)
        return nowhere;
    if (2 * build->place_count >= build->place_room)
        grow_places(build);
    struct place *place = slot_of(build->places, build->place_room, pc);
    if (!place->pc) {
        place->pc = pc;
        resolve(build, place);
        build->place_count++;
    }
    return *place;
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
    graph->functions =
        base_reallocate(graph->functions, (graph->function_count + 1) * sizeof *graph->functions);
    graph->functions[graph->function_count] =
        (struct graph_function){.object = place->object,
                                .file = place->file,
                                .name = symbols_keep(build->symbols, name),
                                .address = place->address,
                                .line = place->line};
    return graph->function_count++;
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
    if (level > 1)
        text_format(&name, "'%u", level);
    uint32_t number = add_function(build, &place, name.bytes);
    text_free(&name);
    *known = number + 1;
    return number;
}

// ---- contexts ----------------------------------------------------------------------------------

// Where the function of that name is, or is to be, in the table.
static uint32_t *context_slot(const struct counts_build *build, const struct place *place,
                              const char *name) {
    const struct graph_function *functions = build->graph->functions;
    uint32_t hash = 2166136261u;
    for (const char *c = name; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 16777619u;
    uint32_t at = hash & (build->context_room - 1);
    for (; build->contexts[at]; at = (at + 1) & (build->context_room - 1)) {
        const struct graph_function *other = &functions[build->contexts[at] - 1];
        if (strcmp(other->name, name) == 0 && strcmp(other->file, place->file) == 0 &&
            strcmp(other->object, place->object) == 0)
            break;
    }
    return &build->contexts[at];
}

static void grow_contexts(struct counts_build *build) {
    uint32_t *old = build->contexts, room = build->context_room;
    build->context_room = room ? 2 * room : 1 << 12;
    build->contexts = base_allocate(build->context_room * sizeof *build->contexts);
    memset(build->contexts, 0, build->context_room * sizeof *build->contexts);
    for (uint32_t i = 0; i < room; i++) {
        if (!old[i])
            continue;
        const struct graph_function *function = &build->graph->functions[old[i] - 1];
        struct place place = {.object = function->object, .file = function->file};
        *context_slot(build, &place, function->name) = old[i];
    }
    free(old);
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
    if (2 * build->context_count >= build->context_room)
        grow_contexts(build);
    uint32_t *slot = context_slot(build, &place, name.bytes);
    if (!*slot) {
        *slot = add_function(build, &place, name.bytes) + 1;
        build->context_count++;
    }
    text_free(&name);
    return *slot - 1;
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
    if (at + graph->event_count > build->value_room) {
        build->value_room = build->value_room ? 2 * build->value_room : 1 << 15;
        graph->values = base_reallocate(graph->values, build->value_room * sizeof *graph->values);
    }
    memset(graph->values + at, 0, graph->event_count * sizeof *graph->values);
    graph->value_count += graph->event_count;
    return at;
}

void build_value(struct counts_build *build, size_t values, enum counts_event event,
                 uint64_t amount) {
    if (build->columns[event] < COUNTS_EVENTS)
        build->graph->values[values + build->columns[event]] += amount;
}

size_t build_cost(struct counts_build *build, uint32_t function, uint64_t pc) {
    struct call_graph *graph = build->graph;
    if (graph->cost_count == build->cost_room) {
        build->cost_room = build->cost_room ? 2 * build->cost_room : 4096;
        graph->costs = base_reallocate(graph->costs, build->cost_room * sizeof *graph->costs);
    }
    size_t values = add_values(build);
    graph->costs[graph->cost_count++] =
        (struct graph_cost){.at = build_place(build, function, pc), .values = values};
    return values;
}

void build_event(struct counts_build *build, uint32_t function, uint64_t pc,
                 enum counts_event event, uint64_t amount) {
    build_value(build, build_cost(build, function, pc), event, amount);
}

size_t build_call(struct counts_build *build, uint32_t function, uint64_t pc, uint32_t callee,
                  uint64_t count) {
    struct call_graph *graph = build->graph;
    if (graph->call_count == build->call_room) {
        build->call_room = build->call_room ? 2 * build->call_room : 1024;
        graph->calls = base_reallocate(graph->calls, build->call_room * sizeof *graph->calls);
    }
    size_t values = add_values(build);
    graph->calls[graph->call_count++] = (struct graph_call){
        .at = build_place(build, function, pc), .callee = callee, .count = count, .values = values};
    return values;
}

void build_jump(struct counts_build *build, const struct graph_jump *jump) {
    struct call_graph *graph = build->graph;
    if (graph->jump_count == build->jump_room) {
        build->jump_room = build->jump_room ? 2 * build->jump_room : 1024;
        graph->jumps = base_reallocate(graph->jumps, build->jump_room * sizeof *graph->jumps);
    }
    graph->jumps[graph->jump_count++] = *jump;
}

void build_free(struct counts_build *build) {
    free(build->functions);
    free(build->contexts);
    free(build->by_function);
    free(build->first_id);
    free(build->places);
    free(build->branches);
    free(build->entries);
}
