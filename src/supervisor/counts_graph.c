#include "supervisor/counts_graph.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text.h"
#include "supervisor/counts_base.h"
#include "symbols/guard.h"
#include "wire/call_counts.h"

#define UNKNOWN "???"

enum { OWN_AREA = 4 };

// What the supervisor knows of an address; looked up once.
struct place {
    uint64_t pc, address;
    const char *object, *file, *name;
    uint32_t line;
};

struct report {
    const struct counts_source *source;
    struct symbols *symbols;
    int pid;
    bool sound;
    // The file, as far as it is the same for all threads. Numbers are within bounds.
    const struct counts_header *header;
    const struct counts_id *ids;
    const uint8_t *lengths;
    const uint64_t *function_pcs;
    uint32_t id_count, length_count, function_count, thread_count;
    uint32_t thread; // being read

    struct counts_result *result;
    struct call_graph *graph;
    unsigned columns[COUNTS_EVENTS]; // of the graph, by event; COUNTS_EVENTS: not counted
    size_t cost_room, call_room, value_room;
    uint32_t *functions;  // number in the graph + 1, by function and level
    struct place *places; // hash table by pc
    size_t place_count, place_room;
};

// ---- names -------------------------------------------------------------------------------------

static void resolve(struct report *report, struct place *place) {
    struct symbol_frame frame;
    *place = (struct place){.pc = place->pc, .object = UNKNOWN, .file = UNKNOWN};
    if (!symbols_resolve(report->symbols, report->pid, place->pc, false, &frame, 1))
        return;
    place->address = frame.address;
    place->line = frame.line;
    place->name = frame.name;
    if (frame.object)
        place->object = frame.object;
    if (frame.file && frame.directory) {
        struct text path = {0};
        text_format(&path, "%s/%s", frame.directory, frame.file);
        place->file = symbols_keep(report->symbols, path.bytes);
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

static void grow_places(struct report *report) {
    size_t room = report->place_room ? 2 * report->place_room : 1 << 14;
    struct place *places = base_allocate(room * sizeof *places);
    memset(places, 0, room * sizeof *places);
    for (size_t i = 0; i < report->place_room; i++)
        if (report->places[i].pc)
            *slot_of(places, room, report->places[i].pc) = report->places[i];
    free(report->places);
    report->places = places;
    report->place_room = room;
}

// By value: the table may move.
static struct place place_of(struct report *report, uint64_t pc) {
    static const struct place nowhere = {.object = UNKNOWN, .file = UNKNOWN};
    if (!pc)
        return nowhere;
    if (2 * report->place_count >= report->place_room)
        grow_places(report);
    struct place *place = slot_of(report->places, report->place_room, pc);
    if (!place->pc) {
        place->pc = pc;
        resolve(report, place);
        report->place_count++;
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

// The function's number in the graph. Without a symbol it is named by its address.
static uint32_t function_of(struct report *report, uint32_t function, uint32_t level) {
    if (function >= report->function_count)
        function = 0;
    if (level < 1 || level > COUNTS_LEVELS)
        level = 1;
    uint32_t *known = &report->functions[function * COUNTS_LEVELS + level - 1];
    if (*known)
        return *known - 1;
    struct place place = place_of(report, function ? report->function_pcs[function] : 0);
    struct text name = {0};
    if (place.name && !report->source->show_below_main && is_below_main(place.name))
        text_string(&name, "(below main)");
    else if (place.name)
        text_string(&name, place.name);
    else if (place.address || place.pc)
        text_format(&name, "0x%016" PRIx64, place.address ? place.address : place.pc);
    else
        text_string(&name, UNKNOWN);
    if (level > 1)
        text_format(&name, "'%u", level);
    struct call_graph *graph = report->graph;
    graph->functions =
        base_reallocate(graph->functions, (graph->function_count + 1) * sizeof *graph->functions);
    graph->functions[graph->function_count] =
        (struct graph_function){.object = place.object,
                                .file = place.file,
                                .name = symbols_keep(report->symbols, name.bytes),
                                .address = place.address,
                                .line = place.line};
    text_free(&name);
    *known = ++graph->function_count;
    return *known - 1;
}

static struct graph_place graph_place(struct report *report, uint32_t function, uint64_t pc) {
    struct place place = place_of(report, pc);
    return (struct graph_place){
        .function = function, .line = place.line, .file = place.file, .address = place.address};
}

// Room for the numbers of one cost or call, all 0.
static size_t add_values(struct report *report) {
    struct call_graph *graph = report->graph;
    size_t at = graph->value_count;
    if (at + graph->event_count > report->value_room) {
        report->value_room = report->value_room ? 2 * report->value_room : 1 << 15;
        graph->values = base_reallocate(graph->values, report->value_room * sizeof *graph->values);
    }
    memset(graph->values + at, 0, graph->event_count * sizeof *graph->values);
    graph->value_count += graph->event_count;
    return at;
}

static void add_value(struct report *report, size_t values, enum counts_event event,
                      uint64_t amount) {
    if (report->columns[event] < COUNTS_EVENTS)
        report->graph->values[values + report->columns[event]] += amount;
}

// The numbers of a new cost.
static size_t add_cost(struct report *report, uint32_t function, uint64_t pc) {
    struct call_graph *graph = report->graph;
    if (graph->cost_count == report->cost_room) {
        report->cost_room = report->cost_room ? 2 * report->cost_room : 4096;
        graph->costs = base_reallocate(graph->costs, report->cost_room * sizeof *graph->costs);
    }
    size_t values = add_values(report);
    graph->costs[graph->cost_count++] =
        (struct graph_cost){.at = graph_place(report, function, pc), .values = values};
    return values;
}

static void add_event(struct report *report, uint32_t function, uint64_t pc,
                      enum counts_event event, uint64_t amount) {
    add_value(report, add_cost(report, function, pc), event, amount);
}

// The numbers of a new call.
static size_t add_call(struct report *report, uint32_t function, uint64_t pc,
                       const struct counts_edge *edge) {
    struct call_graph *graph = report->graph;
    if (graph->call_count == report->call_room) {
        report->call_room = report->call_room ? 2 * report->call_room : 1024;
        graph->calls = base_reallocate(graph->calls, report->call_room * sizeof *graph->calls);
    }
    size_t values = add_values(report);
    graph->calls[graph->call_count++] =
        (struct graph_call){.at = graph_place(report, function, pc),
                            .callee = function_of(report, edge->function, edge->level),
                            .count = edge->calls,
                            .values = values};
    return values;
}

// ---- the file ----------------------------------------------------------------------------------

// Whose costs the counters of an area are, for code that belongs to `own`.
static uint32_t context_of(struct report *report, const struct counts_thread *thread, uint32_t area,
                           uint32_t own) {
    if (area < OWN_AREA || area >= COUNTS_AREAS)
        return function_of(report, own, area + 1);
    return function_of(report, thread->area[area].function, thread->area[area].level);
}

static void read_run(struct report *report, const struct counts_id *id, uint32_t function,
                     uint64_t times) {
    uint64_t pc = id->pc;
    uint32_t first = id->lengths;
    if (first > report->length_count || id->count > report->length_count - first)
        return;
    for (unsigned i = 0; i < id->count; i++) {
        uint8_t byte = report->lengths[first + i];
        size_t values = add_cost(report, function, pc);
        add_value(report, values, COUNTS_IR, times);
        add_value(report, values, COUNTS_DR, times * counts_reads(byte));
        add_value(report, values, COUNTS_DW, times * counts_writes(byte));
        pc += counts_length(byte);
    }
}

// A counter of an area. Areas 0 and 1 are told apart for functions that recurse, and only since.
static uint64_t counter_of(const struct counts_thread *thread, uint32_t area, uint32_t id,
                           uint32_t function) {
    const uint8_t *recurses = (const uint8_t *)thread + COUNTS_AT_RECURSES;
    const uint64_t *counters = (const void *)((const uint8_t *)thread + COUNTS_AT_COUNTERS);
    const uint64_t *own = counters + (uint64_t)area * COUNTS_IDS;
    const uint64_t *moved = counters + (uint64_t)COUNTS_MOVED_AREA * COUNTS_IDS;
    uint32_t level = area & ~COUNTS_SKIPPED;
    if (level > 1)
        return own[id];
    if (area != level)
        moved += (uint64_t)COUNTS_SKIPPED * COUNTS_IDS;
    if (function >= COUNTS_FUNCTIONS || !recurses[function])
        return level ? 0 : own[id] + own[id + COUNTS_IDS];
    return level ? own[id] - moved[id] : own[id] + moved[id];
}

// All costs of one area.
static void read_area(struct report *report, const struct counts_thread *thread, uint32_t area) {
    struct counts_base *base = report->source->base;
    for (uint32_t i = 1; i < report->id_count; i++) {
        const struct counts_id *id = &report->ids[i];
        uint32_t skipped = area + COUNTS_SKIPPED;
        uint64_t here = counts_base_counter(base, report->thread, area, i,
                                            counter_of(thread, area, i, id->function));
        uint64_t beyond = counts_base_counter(base, report->thread, skipped, i,
                                              counter_of(thread, skipped, i, id->function));
        uint32_t function = here || beyond ? context_of(report, thread, area, id->function) : 0;
        if (here && id->kind == COUNTS_RUN)
            read_run(report, id, function, here);
        else if (here && id->kind == COUNTS_REPEAT)
            add_event(report, function, id->pc, COUNTS_IR, here);
        else if (here && id->kind == COUNTS_EVENT && id->count < COUNTS_EVENTS)
            add_event(report, function, id->pc, id->count, here);
        if (beyond)
            add_event(report, function, id->pc, COUNTS_IR, beyond);
    }
}

// What calls that have not returned have cost so far, added to their edges' costs. Frames below a
// marker have stood still since the signal.
static void close_frames(const uint8_t *part, const uint64_t totals[COUNTS_EVENTS],
                         uint64_t (*costs)[COUNTS_EVENTS], uint32_t edge_count) {
    const struct counts_frame *frames = (const struct counts_frame *)(part + COUNTS_AT_FRAMES) + 1;
    const uint64_t(*events)[COUNTS_EVENTS] = (const void *)(part + COUNTS_AT_FRAME_EVENTS);
    uint64_t now[COUNTS_EVENTS];
    uint32_t count = 0;
    memcpy(now, totals, sizeof now);
    while (count < COUNTS_FRAMES && frames[count].sp)
        count++;
    for (uint32_t i = count; i-- > 0;) {
        for (unsigned e = 0; e < COUNTS_EVENTS; e++) {
            uint64_t entered = e == COUNTS_IR ? frames[i].entered : events[i][e];
            if (frames[i].marker)
                now[e] = entered;
            else if (frames[i].edge <= edge_count)
                costs[frames[i].edge][e] += now[e] - entered;
        }
    }
}

// What the costs of a thread, from a number on, add up to.
static void sum_up(const struct report *report, size_t first, uint64_t totals[COUNTS_EVENTS]) {
    const struct call_graph *graph = report->graph;
    memset(totals, 0, COUNTS_EVENTS * sizeof *totals);
    for (size_t i = first; i < graph->cost_count; i++)
        for (unsigned e = 0; e < COUNTS_EVENTS; e++)
            if (report->columns[e] < COUNTS_EVENTS)
                totals[e] += graph->values[graph->costs[i].values + report->columns[e]];
}

// Calls while nothing was collected leave no cost.
static bool is_nought(const uint64_t costs[COUNTS_EVENTS]) {
    for (unsigned e = 0; e < COUNTS_EVENTS; e++)
        if (costs[e])
            return false;
    return true;
}

static void read_calls(struct report *report, const uint8_t *part,
                       const uint64_t totals[COUNTS_EVENTS]) {
    const struct counts_thread *thread = (const struct counts_thread *)part;
    const struct counts_edge *edges = (const struct counts_edge *)(part + COUNTS_AT_EDGES);
    const uint64_t(*events)[COUNTS_EVENTS] = (const void *)(part + COUNTS_AT_EDGE_EVENTS);
    uint32_t count = thread->edges < COUNTS_EDGES ? thread->edges : COUNTS_EDGES - 1;
    uint64_t(*costs)[COUNTS_EVENTS] = base_allocate((count + 1) * sizeof *costs);
    for (uint32_t i = 0; i <= count; i++) {
        if (report->graph->event_count > 1)
            memcpy(costs[i], events[i], sizeof costs[i]);
        else
            memset(costs[i], 0, sizeof costs[i]);
        costs[i][COUNTS_IR] = edges[i].cost;
    }
    close_frames(part, totals, costs, count);
    for (uint32_t i = 1; i <= count; i++) {
        struct counts_edge edge = edges[i];
        edge.calls =
            counts_base_edge(report->source->base, report->thread, i, COUNTS_EVENTS, edge.calls);
        for (unsigned e = 0; e < COUNTS_EVENTS; e++)
            costs[i][e] = counts_base_edge(report->source->base, report->thread, i, e, costs[i][e]);
        if (edge.site >= report->id_count || (!edge.calls && !report->source->base) ||
            is_nought(costs[i]))
            continue;
        const struct counts_id *site = &report->ids[edge.site];
        size_t values = add_call(report, context_of(report, thread, edges[i].area, site->function),
                                 site->pc, &edges[i]);
        for (unsigned e = 0; e < COUNTS_EVENTS; e++)
            add_value(report, values, e, costs[i][e]);
    }
    free(costs);
}

static void read_thread(struct report *report, const uint8_t *part) {
    const struct counts_thread *thread = (const struct counts_thread *)part;
    size_t first = report->graph->cost_count;
    uint64_t totals[COUNTS_EVENTS];
    read_area(report, thread, 0);
    read_area(report, thread, 1);
    for (uint32_t area = OWN_AREA;
         area < thread->areas && area + COUNTS_SKIPPED < COUNTS_MOVED_AREA; area++)
        if (!(area & COUNTS_SKIPPED))
            read_area(report, thread, area);
    sum_up(report, first, totals);
    for (unsigned e = 0; e < COUNTS_EVENTS; e++)
        if (report->columns[e] < COUNTS_EVENTS)
            report->graph->totals[report->columns[e]] += totals[e];
    for (unsigned e = 0; e < COUNTS_EVENTS; e++)
        totals[e] = counts_base_total(report->source->base, report->thread, e, totals[e]);
    read_calls(report, part, totals);
}

static const char *const event_names[COUNTS_EVENTS] = {
    "Ir",   "Dr", "Dw",  "I1mr", "D1mr", "D1mw",     "ILmr",    "DLmr",
    "DLmw", "Bc", "Bcm", "Bi",   "Bim",  "sysCount", "sysTime", "sysCpuTime"};

// The order in which each tool's file has them.
static void choose_columns(struct report *report, uint32_t counted) {
    static const uint8_t by_cache[COUNTS_EVENTS] = {
        COUNTS_IR,  COUNTS_I1MR,      COUNTS_ILMR,     COUNTS_DR,          COUNTS_D1MR, COUNTS_DLMR,
        COUNTS_DW,  COUNTS_D1MW,      COUNTS_DLMW,     COUNTS_BC,          COUNTS_BCM,  COUNTS_BI,
        COUNTS_BIM, COUNTS_SYS_COUNT, COUNTS_SYS_TIME, COUNTS_SYS_CPU_TIME};
    struct call_graph *graph = report->graph;
    for (unsigned i = 0; i < COUNTS_EVENTS; i++) {
        unsigned event = report->source->cachegrind ? by_cache[i] : i;
        report->columns[event] = COUNTS_EVENTS;
        if (counted & 1u << event) {
            report->columns[event] = graph->event_count;
            graph->events[graph->event_count++] = event_names[event];
        }
    }
}

static uint32_t at_most(uint32_t number, uint32_t most) {
    return number < most ? number : most;
}

static bool is_sound(int fd) {
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && seals & F_SEAL_SHRINK && fstat(fd, &st) == 0 &&
           (uint64_t)st.st_size >= COUNTS_SIZE;
}

static bool read_file(struct report *report) {
    int fd = report->source->file;
    if (!is_sound(fd))
        return false;
    uint8_t *shared = mmap(NULL, COUNTS_AT_THREADS, PROT_READ, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED)
        return false;
    report->header = (const struct counts_header *)shared;
    report->ids = (const struct counts_id *)(shared + COUNTS_AT_IDS);
    report->lengths = shared + COUNTS_AT_LENGTHS;
    report->function_pcs = (const uint64_t *)(shared + COUNTS_AT_FUNCTIONS);
    report->result->incomplete = report->header->incomplete != 0;
    memcpy(report->result->caches, report->header->caches, sizeof report->result->caches);
    choose_columns(report, report->header->events | 1u << COUNTS_IR);
    report->id_count = at_most(report->header->ids, COUNTS_IDS);
    report->length_count = at_most(report->header->lengths, COUNTS_LENGTHS);
    report->function_count = at_most(report->header->functions, COUNTS_FUNCTIONS);
    report->thread_count = at_most(report->header->threads, COUNTS_THREADS);
    size_t size = (report->function_count + 1ul) * COUNTS_LEVELS * sizeof *report->functions;
    report->functions = base_allocate(size);
    memset(report->functions, 0, size);
    for (uint32_t i = 0; i < report->thread_count; i++) {
        if (report->source->thread >= 0 && (uint32_t)report->source->thread != i)
            continue;
        report->thread = i;
        uint8_t *part = mmap(NULL, COUNTS_THREAD_SIZE, PROT_READ, MAP_SHARED, fd,
                             (off_t)(COUNTS_AT_THREADS + i * COUNTS_THREAD_SIZE));
        if (part == MAP_FAILED)
            continue;
        read_thread(report, part);
        munmap(part, COUNTS_THREAD_SIZE);
    }
    munmap(shared, COUNTS_AT_THREADS);
    return true;
}

static void read_guarded(void *context) {
    struct report *report = context;
    report->sound = read_file(report);
}

void counts_graph_answer(const struct counts_source *source) {
    if (!is_sound(source->file))
        return;
    struct counts_header *header =
        mmap(NULL, sizeof *header, PROT_READ | PROT_WRITE, MAP_SHARED, source->file, 0);
    if (header == MAP_FAILED)
        return;
    __atomic_add_fetch(&header->answers, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &header->answers, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    munmap(header, sizeof *header);
}

uint32_t counts_graph_threads(const struct counts_source *source) {
    struct counts_header header;
    if (!is_sound(source->file) ||
        pread(source->file, &header, sizeof header, 0) != (ssize_t)sizeof header)
        return 0;
    return at_most(header.threads, COUNTS_THREADS);
}

bool counts_graph_read(const struct counts_source *source, struct counts_result *result) {
    struct report report = {.source = source,
                            .symbols = source->symbols,
                            .pid = source->pid,
                            .result = result,
                            .graph = &result->graph};
    *result = (struct counts_result){0};
    // Names are asked for thousands of times: one guard around all of them is cheaper.
    bool read = guard_run(read_guarded, &report);
    free(report.functions);
    free(report.places);
    return read && report.sound;
}

void counts_graph_free(struct counts_result *result) {
    free(result->graph.functions);
    free(result->graph.costs);
    free(result->graph.calls);
    free(result->graph.values);
}
