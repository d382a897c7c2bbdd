#include "tools/callgrind/supervisor/graph.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/text.h"
#include "tools/callgrind/supervisor/base.h"
#include "tools/callgrind/supervisor/build.h"
#include "wire/call_counts.h"

enum { OWN_AREA = 4 };

// ---- the file ----------------------------------------------------------------------------------

// Whose costs the counters of an area are, for code that belongs to `own`.
static uint32_t context_of(struct counts_build *build, const struct counts_thread *thread,
                           uint32_t area, uint32_t own) {
    if (area < OWN_AREA || area >= COUNTS_AREAS)
        return build_function(build, own, area + 1);
    return build_function(build, thread->area[area].function, thread->area[area].level);
}

static void read_run(struct counts_build *build, const struct counts_id *id, uint32_t function,
                     uint64_t times) {
    uint64_t pc = id->pc;
    uint32_t first = id->lengths;
    if (first > build->length_count || id->count > build->length_count - first)
        return;
    for (unsigned i = 0; i < id->count; i++) {
        uint8_t byte = build->lengths[first + i];
        size_t values = build_cost(build, function, pc);
        build_value(build, values, COUNTS_IR, times);
        build_value(build, values, COUNTS_DR, times * counts_reads(byte));
        build_value(build, values, COUNTS_DW, times * counts_writes(byte));
        jumps_met(build, function, pc, times);
        pc += counts_length(byte);
    }
}

// A counter of an area. Areas 0 and 1 are told apart for functions that recurse, and only since.
static uint64_t counter_of(const struct counts_thread *thread, uint32_t area, uint32_t id,
                           uint32_t function, bool contexts) {
    const uint8_t *recurses = (const uint8_t *)thread + COUNTS_AT_RECURSES;
    const uint64_t *counters = (const void *)((const uint8_t *)thread + COUNTS_AT_COUNTERS);
    const uint64_t *own = counters + (uint64_t)area * COUNTS_IDS;
    const uint64_t *moved = counters + (uint64_t)COUNTS_MOVED_AREA * COUNTS_IDS;
    uint32_t level = area & ~COUNTS_SKIPPED;
    if (level > 1 || contexts)
        return own[id];
    if (area != level)
        moved += (uint64_t)COUNTS_SKIPPED * COUNTS_IDS;
    if (function >= COUNTS_FUNCTIONS || !recurses[function])
        return level ? 0 : own[id] + own[id + COUNTS_IDS];
    return level ? own[id] - moved[id] : own[id] + moved[id];
}

void build_counter(struct counts_build *build, const struct counts_thread *thread, uint32_t area,
                   uint32_t number, uint32_t function) {
    struct counts_base *base = build->source->base;
    const struct counts_id *id = &build->ids[number];
    bool contexts = build->header->contexts;
    uint32_t skipped = area + COUNTS_SKIPPED;
    uint64_t here = counts_base_counter(base, build->thread, area, number,
                                        counter_of(thread, area, number, id->function, contexts));
    uint64_t beyond =
        counts_base_counter(base, build->thread, skipped, number,
                            counter_of(thread, skipped, number, id->function, contexts));
    if (!here && !beyond)
        return;
    if (function == BUILD_OWN)
        function = context_of(build, thread, area, id->function);
    if (here && id->kind == COUNTS_RUN)
        read_run(build, id, function, here);
    else if (here && id->kind == COUNTS_REPEAT)
        build_event(build, function, id->pc, COUNTS_IR, here);
    else if (here && id->kind == COUNTS_EVENT && id->count < COUNTS_EVENTS)
        build_event(build, function, id->pc, id->count, here);
    if (here && (id->kind == COUNTS_BRANCH || id->kind == COUNTS_REPEAT))
        jumps_taken(build, function, id, here);
    if (beyond)
        build_event(build, function, id->pc, COUNTS_IR, beyond);
}

// All costs of one area.
static void read_area(struct counts_build *build, const struct counts_thread *thread,
                      uint32_t area) {
    for (uint32_t i = 1; i < build->id_count; i++)
        build_counter(build, thread, area, i, BUILD_OWN);
}

// What calls that have not returned have cost so far, added to their edges' costs. Frames below a
// marker have stood still since the signal.
static void close_frames(const uint8_t *part, const uint64_t totals[COUNTS_EVENTS],
                         uint64_t (*costs)[COUNTS_EVENTS], uint32_t edge_count) {
    const struct counts_frame *frames = (const struct counts_frame *)(part + COUNTS_AT_FRAMES) + 1;
    const uint64_t(*events)[COUNTS_EVENTS] = (const void *)(part + COUNTS_AT_FRAME_EVENTS);
    uint32_t noted = ((const struct counts_thread *)part)->noted;
    uint64_t now[COUNTS_EVENTS];
    uint32_t count = 0;
    memcpy(now, totals, sizeof now);
    while (count < COUNTS_FRAMES && frames[count].sp)
        count++;
    for (uint32_t i = count; i-- > 0;) {
        for (unsigned e = 0; e < (i < noted ? COUNTS_EVENTS : COUNTS_RARE); e++) {
            uint64_t entered = e == COUNTS_IR ? frames[i].entered : events[i][e];
            if (frames[i].marker)
                now[e] = entered;
            else if (frames[i].edge <= edge_count && now[e] > entered)
                costs[frames[i].edge][e] += now[e] - entered;
        }
    }
}

// What the costs of a thread, from a number on, add up to.
static void sum_up(const struct counts_build *build, size_t first, uint64_t totals[COUNTS_EVENTS]) {
    const struct call_graph *graph = build->graph;
    memset(totals, 0, COUNTS_EVENTS * sizeof *totals);
    for (size_t i = first; i < graph->cost_count; i++)
        for (unsigned e = 0; e < COUNTS_EVENTS; e++)
            if (build->columns[e] < COUNTS_EVENTS)
                totals[e] += graph->values[graph->costs[i].values + build->columns[e]];
}

// Calls while nothing was collected leave no cost.
static bool is_nought(const uint64_t costs[COUNTS_EVENTS]) {
    for (unsigned e = 0; e < COUNTS_EVENTS; e++)
        if (costs[e])
            return false;
    return true;
}

static void read_calls(struct counts_build *build, const uint8_t *part,
                       const uint64_t totals[COUNTS_EVENTS]) {
    const struct counts_thread *thread = (const struct counts_thread *)part;
    const struct counts_edge *edges = (const struct counts_edge *)(part + COUNTS_AT_EDGES);
    const uint64_t(*events)[COUNTS_EVENTS] = (const void *)(part + COUNTS_AT_EDGE_EVENTS);
    uint32_t count = thread->edges < COUNTS_EDGES ? thread->edges : COUNTS_EDGES - 1;
    uint64_t(*costs)[COUNTS_EVENTS] = base_allocate((count + 1) * sizeof *costs);
    for (uint32_t i = 0; i <= count; i++) {
        if (build->graph->event_count > 1)
            memcpy(costs[i], events[i], sizeof costs[i]);
        else
            memset(costs[i], 0, sizeof costs[i]);
        costs[i][COUNTS_IR] = edges[i].cost;
    }
    close_frames(part, totals, costs, count);
    jumps_note_calls(build, edges, count);
    for (uint32_t i = 1; i <= count; i++) {
        struct counts_edge edge = edges[i];
        for (unsigned e = 0; e < COUNTS_EVENTS; e++)
            costs[i][e] = counts_base_edge(build->source->base, build->thread, i, e, costs[i][e]);
        // What has not cost anything yet is shown next time.
        if (is_nought(costs[i]) && !build->source->forget && !(edge.level & COUNTS_TO_ADDRESS))
            continue;
        edge.calls =
            counts_base_edge(build->source->base, build->thread, i, COUNTS_EVENTS, edge.calls);
        if (edge.site >= build->id_count || (!edge.calls && !build->source->base))
            continue;
        const struct counts_id *site = &build->ids[edge.site];
        uint32_t caller = build->header->contexts
                              ? contexts_number(build, part, edge.area)
                              : context_of(build, thread, edge.area, site->function);
        if (edge.level & COUNTS_TO_ADDRESS) {
            jumps_indirect(build, caller, &edge);
            continue;
        }
        uint32_t callee = edge.level & COUNTS_TO_CONTEXT
                              ? contexts_number(build, part, edge.level & ~COUNTS_TO_CONTEXT)
                              : build_function(build, edge.function, edge.level);
        size_t values = build_call(build, caller, site->pc, callee, edge.calls);
        for (unsigned e = 0; e < COUNTS_EVENTS; e++)
            build_value(build, values, e, costs[i][e]);
    }
    free(costs);
}

static void read_thread(struct counts_build *build, const uint8_t *part) {
    const struct counts_thread *thread = (const struct counts_thread *)part;
    size_t first = build->graph->cost_count;
    uint64_t totals[COUNTS_EVENTS];
    if (build->header->contexts) {
        contexts_read(build, part);
    } else {
        read_area(build, thread, 0);
        read_area(build, thread, 1);
    }
    for (uint32_t area = OWN_AREA;
         area < thread->areas && area + COUNTS_SKIPPED < COUNTS_MOVED_AREA; area++)
        if (!(area & COUNTS_SKIPPED))
            build_area(build, part, area, BUILD_OWN);
    sum_up(build, first, totals);
    for (unsigned e = 0; e < COUNTS_EVENTS; e++)
        if (build->columns[e] < COUNTS_EVENTS)
            build->graph->totals[build->columns[e]] += totals[e];
    for (unsigned e = 0; e < COUNTS_EVENTS; e++)
        totals[e] = counts_base_total(build->source->base, build->thread, e, totals[e]);
    read_calls(build, part, totals);
}

static const char *const event_names[COUNTS_EVENTS] = {
    [COUNTS_IR] = "Ir",
    [COUNTS_DR] = "Dr",
    [COUNTS_DW] = "Dw",
    [COUNTS_I1MR] = "I1mr",
    [COUNTS_D1MR] = "D1mr",
    [COUNTS_D1MW] = "D1mw",
    [COUNTS_ILMR] = "ILmr",
    [COUNTS_DLMR] = "DLmr",
    [COUNTS_DLMW] = "DLmw",
    [COUNTS_BC] = "Bc",
    [COUNTS_BCM] = "Bcm",
    [COUNTS_BI] = "Bi",
    [COUNTS_BIM] = "Bim",
    [COUNTS_SYS_COUNT] = "sysCount",
    [COUNTS_SYS_TIME] = "sysTime",
    [COUNTS_SYS_CPU_TIME] = "sysCpuTime",
    [COUNTS_GE] = "Ge",
    [COUNTS_ILDMR] = "ILdmr",
    [COUNTS_DLDMR] = "DLdmr",
    [COUNTS_DLDMW] = "DLdmw",
    [COUNTS_ACCOST1] = "AcCost1",
    [COUNTS_SPLOSS1] = "SpLoss1",
    [COUNTS_ACCOST2] = "AcCost2",
    [COUNTS_SPLOSS2] = "SpLoss2",
};

static const char *title_of(unsigned event, uint32_t time_unit) {
    if (event == COUNTS_SYS_CPU_TIME)
        return "sysCpuTime (system cpu ns)";
    if (event != COUNTS_SYS_TIME)
        return NULL;
    return time_unit == 1      ? "sysTime (elapsed ns)"
           : time_unit == 1000 ? "sysTime (elapsed us)"
                               : "sysTime (elapsed ms)";
}

// The order in which each tool's file has them.
static void choose_columns(struct counts_build *build, uint32_t counted) {
    static const uint8_t by_call[] = {
        COUNTS_IR,    COUNTS_DR,        COUNTS_DW,       COUNTS_I1MR,        COUNTS_D1MR,
        COUNTS_D1MW,  COUNTS_ILMR,      COUNTS_DLMR,     COUNTS_DLMW,        COUNTS_ILDMR,
        COUNTS_DLDMR, COUNTS_DLDMW,     COUNTS_BC,       COUNTS_BCM,         COUNTS_BI,
        COUNTS_BIM,   COUNTS_ACCOST1,   COUNTS_SPLOSS1,  COUNTS_ACCOST2,     COUNTS_SPLOSS2,
        COUNTS_GE,    COUNTS_SYS_COUNT, COUNTS_SYS_TIME, COUNTS_SYS_CPU_TIME};
    static const uint8_t by_cache[] = {
        COUNTS_IR,   COUNTS_I1MR, COUNTS_ILMR, COUNTS_DR,  COUNTS_D1MR, COUNTS_DLMR, COUNTS_DW,
        COUNTS_D1MW, COUNTS_DLMW, COUNTS_BC,   COUNTS_BCM, COUNTS_BI,   COUNTS_BIM};
    bool cachegrind = build->source->cachegrind;
    const uint8_t *order = cachegrind ? by_cache : by_call;
    struct call_graph *graph = build->graph;
    for (unsigned i = 0; i < COUNTS_EVENTS; i++)
        build->columns[i] = COUNTS_EVENTS;
    for (unsigned i = 0; i < (cachegrind ? sizeof by_cache : sizeof by_call); i++) {
        if (counted & 1u << order[i]) {
            build->columns[order[i]] = graph->event_count;
            graph->titles[graph->event_count] = title_of(order[i], build->header->time_unit);
            graph->events[graph->event_count++] = event_names[order[i]];
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

static bool read_file(struct counts_build *build) {
    int fd = build->source->file;
    if (!is_sound(fd))
        return false;
    uint8_t *shared = mmap(NULL, COUNTS_AT_THREADS, PROT_READ, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED)
        return false;
    build->header = (const struct counts_header *)shared;
    build->ids = (const struct counts_id *)(shared + COUNTS_AT_IDS);
    build->lengths = shared + COUNTS_AT_LENGTHS;
    build->function_pcs = (const uint64_t *)(shared + COUNTS_AT_FUNCTIONS);
    build->result->incomplete = build->header->incomplete != 0;
    memcpy(build->result->caches, build->header->caches, sizeof build->result->caches);
    choose_columns(build, build->header->events | 1u << COUNTS_IR);
    build->id_count = at_most(build->header->ids, COUNTS_IDS);
    build->length_count = at_most(build->header->lengths, COUNTS_LENGTHS);
    build->function_count = at_most(build->header->functions, COUNTS_FUNCTIONS);
    build->thread_count = at_most(build->header->threads, COUNTS_THREADS);
    size_t size = (build->function_count + 1ul) * BUILD_LEVELS * sizeof *build->functions;
    build->functions = base_allocate(size);
    memset(build->functions, 0, size);
    jumps_start(build);
    for (uint32_t i = 0; i < build->thread_count; i++) {
        if (build->source->thread >= 0 && (uint32_t)build->source->thread != i)
            continue;
        build->thread = i;
        uint8_t *part = mmap(NULL, COUNTS_THREAD_SIZE, PROT_READ, MAP_SHARED, fd,
                             (off_t)(COUNTS_AT_THREADS + i * COUNTS_THREAD_SIZE));
        if (part == MAP_FAILED)
            continue;
        read_thread(build, part);
        munmap(part, COUNTS_THREAD_SIZE);
    }
    munmap(shared, COUNTS_AT_THREADS);
    return true;
}

static void read_guarded(void *context) {
    struct counts_build *build = context;
    build->sound = read_file(build);
}

// To be unmapped; NULL: it cannot be had.
static struct counts_header *open_header(int fd) {
    if (!is_sound(fd))
        return NULL;
    void *header =
        mmap(NULL, sizeof(struct counts_header), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return header == MAP_FAILED ? NULL : header;
}

bool counts_graph_switch(const struct counts_source *source, bool on) {
    struct counts_header *header = open_header(source->file);
    if (!header)
        return false;
    __atomic_store_n(&header->on, on, __ATOMIC_SEQ_CST);
    __atomic_store_n(&header->plain, 0, __ATOMIC_SEQ_CST);
    munmap(header, sizeof *header);
    return true;
}

bool counts_graph_is_on(const struct counts_source *source) {
    struct counts_header header;
    return is_sound(source->file) &&
           pread(source->file, &header, sizeof header, 0) == (ssize_t)sizeof header && header.on;
}

void counts_graph_answer(const struct counts_source *source) {
    struct counts_header *header = open_header(source->file);
    if (!header)
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
    struct counts_build build = {.source = source,
                                 .symbols = source->symbols,
                                 .pid = source->pid,
                                 .result = result,
                                 .graph = &result->graph};
    *result = (struct counts_result){0};
    // Names are asked for thousands of times: one guard around all of them is cheaper.
    bool read = guard_run(read_guarded, &build);
    build_free(&build);
    return read && build.sound;
}

void counts_graph_free(struct counts_result *result) {
    free(result->graph.functions);
    free(result->graph.costs);
    free(result->graph.calls);
    free(result->graph.jumps);
    free(result->graph.values);
}
