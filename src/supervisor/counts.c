#include "supervisor/counts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/template.h"
#include "config.h"
#include "report/callgrind.h"
#include "supervisor/log.h"
#include "symbols/guard.h"
#include "wire/call_counts.h"

#define UNKNOWN "???"

enum { LEVELS = 2, OWN_AREA = 4 };

// What the supervisor knows of an address; looked up once.
struct place {
    uint64_t pc, address;
    const char *object, *file, *name;
    uint32_t line;
};

struct report {
    const struct supervisor_request *request;
    struct symbols *symbols;
    int pid;
    int file;
    bool sound;
    // The file, as far as it is the same for all threads. Numbers are within bounds.
    const struct counts_header *header;
    bool incomplete;
    const struct counts_id *ids;
    const uint8_t *lengths;
    const uint64_t *function_pcs;
    uint32_t id_count, length_count, function_count, thread_count;

    struct call_graph graph;
    size_t cost_room, call_room;
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
    level = level == LEVELS ? LEVELS : 1;
    uint32_t *known = &report->functions[function * LEVELS + level - 1];
    if (*known)
        return *known - 1;
    struct place place = place_of(report, function ? report->function_pcs[function] : 0);
    struct text name = {0};
    if (place.name && !report->request->stacks.show_below_main && is_below_main(place.name))
        text_string(&name, "(below main)");
    else if (place.name)
        text_string(&name, place.name);
    else if (place.address || place.pc)
        text_format(&name, "0x%016" PRIx64, place.address ? place.address : place.pc);
    else
        text_string(&name, UNKNOWN);
    if (level == LEVELS)
        text_format(&name, "'%d", LEVELS);
    struct call_graph *graph = &report->graph;
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

static void add_cost(struct report *report, uint32_t function, uint64_t pc, uint64_t cost) {
    struct call_graph *graph = &report->graph;
    if (graph->cost_count == report->cost_room) {
        report->cost_room = report->cost_room ? 2 * report->cost_room : 4096;
        graph->costs = base_reallocate(graph->costs, report->cost_room * sizeof *graph->costs);
    }
    graph->costs[graph->cost_count++] =
        (struct graph_cost){.at = graph_place(report, function, pc), .cost = cost};
    graph->total += cost;
}

static void add_call(struct report *report, uint32_t function, uint64_t pc,
                     const struct counts_edge *edge, uint64_t cost) {
    struct call_graph *graph = &report->graph;
    if (graph->call_count == report->call_room) {
        report->call_room = report->call_room ? 2 * report->call_room : 1024;
        graph->calls = base_reallocate(graph->calls, report->call_room * sizeof *graph->calls);
    }
    graph->calls[graph->call_count++] =
        (struct graph_call){.at = graph_place(report, function, pc),
                            .callee = function_of(report, edge->function, edge->level),
                            .count = edge->calls,
                            .cost = cost};
}

// ---- the file ----------------------------------------------------------------------------------

// Whose costs the counters of an area are, for code that belongs to `own`.
static uint32_t context_of(struct report *report, const struct counts_thread *thread, uint32_t area,
                           uint32_t own) {
    if (area < OWN_AREA || area >= COUNTS_AREAS)
        return function_of(report, own, area + 1);
    return function_of(report, thread->area[area].function, thread->area[area].level);
}

static uint64_t read_run(struct report *report, const struct counts_id *id, uint32_t function,
                         uint64_t times) {
    uint64_t pc = id->pc;
    uint32_t first = id->lengths;
    if (first > report->length_count || id->count > report->length_count - first)
        return 0;
    for (unsigned i = 0; i < id->count; i++) {
        add_cost(report, function, pc, times);
        pc += report->lengths[first + i];
    }
    return id->count * times;
}

// All costs of one area; their sum.
static uint64_t read_area(struct report *report, const struct counts_thread *thread,
                          const uint64_t *counters, uint32_t area) {
    const uint64_t *own = counters + (uint64_t)area * COUNTS_IDS;
    const uint64_t *skipped = own + (uint64_t)COUNTS_SKIPPED * COUNTS_IDS;
    uint64_t sum = 0;
    for (uint32_t i = 1; i < report->id_count; i++) {
        const struct counts_id *id = &report->ids[i];
        if (own[i] && id->kind == COUNTS_RUN) {
            sum += read_run(report, id, context_of(report, thread, area, id->function), own[i]);
        } else if (own[i] && id->kind == COUNTS_REPEAT) {
            add_cost(report, context_of(report, thread, area, id->function), id->pc, own[i]);
            sum += own[i];
        }
        if (skipped[i]) {
            add_cost(report, context_of(report, thread, area, id->function), id->pc, skipped[i]);
            sum += skipped[i];
        }
    }
    return sum;
}

// What calls that have not returned have cost so far, added to their edges' costs. Frames below a
// marker have stood still since the signal.
static void close_frames(const struct counts_thread *thread, const struct counts_frame *frames,
                         uint64_t total, uint64_t *costs, uint32_t edge_count) {
    uint32_t count = thread->frame_bytes / sizeof *frames;
    if (count > COUNTS_FRAMES)
        count = COUNTS_FRAMES;
    for (uint32_t i = count; i-- > 0;) {
        if (frames[i].marker)
            total = frames[i].entered;
        else if (frames[i].edge <= edge_count)
            costs[frames[i].edge] += total - frames[i].entered;
    }
}

static void read_thread(struct report *report, const uint8_t *part) {
    const struct counts_thread *thread = (const struct counts_thread *)part;
    const struct counts_edge *edges = (const struct counts_edge *)(part + COUNTS_AT_EDGES);
    const uint64_t *counters = (const uint64_t *)(part + COUNTS_AT_COUNTERS);
    uint64_t total = read_area(report, thread, counters, 0);
    total += read_area(report, thread, counters, 1);
    for (uint32_t area = OWN_AREA; area < thread->areas && area + COUNTS_SKIPPED < COUNTS_AREAS;
         area++)
        if (!(area & COUNTS_SKIPPED))
            total += read_area(report, thread, counters, area);
    uint32_t count = thread->edges < COUNTS_EDGES ? thread->edges : COUNTS_EDGES - 1;
    uint64_t *costs = base_allocate((count + 1) * sizeof *costs);
    for (uint32_t i = 0; i <= count; i++)
        costs[i] = edges[i].cost;
    close_frames(thread, (const struct counts_frame *)(part + COUNTS_AT_FRAMES), total, costs,
                 count);
    for (uint32_t i = 1; i <= count; i++) {
        if (edges[i].site >= report->id_count || !edges[i].calls)
            continue;
        const struct counts_id *site = &report->ids[edges[i].site];
        add_call(report, context_of(report, thread, edges[i].area, site->function), site->pc,
                 &edges[i], costs[i]);
    }
    free(costs);
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

static bool read_file(struct report *report, int fd) {
    if (!is_sound(fd))
        return false;
    uint8_t *shared = mmap(NULL, COUNTS_AT_THREADS, PROT_READ, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED)
        return false;
    report->header = (const struct counts_header *)shared;
    report->ids = (const struct counts_id *)(shared + COUNTS_AT_IDS);
    report->lengths = shared + COUNTS_AT_LENGTHS;
    report->function_pcs = (const uint64_t *)(shared + COUNTS_AT_FUNCTIONS);
    report->incomplete = report->header->incomplete != 0;
    report->id_count = at_most(report->header->ids, COUNTS_IDS);
    report->length_count = at_most(report->header->lengths, COUNTS_LENGTHS);
    report->function_count = at_most(report->header->functions, COUNTS_FUNCTIONS);
    report->thread_count = at_most(report->header->threads, COUNTS_THREADS);
    size_t size = (report->function_count + 1) * LEVELS * sizeof *report->functions;
    report->functions = base_allocate(size);
    memset(report->functions, 0, size);
    for (uint32_t i = 0; i < report->thread_count; i++) {
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
    report->sound = read_file(report, report->file);
}

// ---- the report --------------------------------------------------------------------------------

static void write_out(const struct supervisor_request *request, int pid, const struct text *text) {
    char *error = NULL;
    char *name = template_expand(request->counts.file, pid, 1, &error);
    if (!name) {
        log_complain("--callgrind-out-file: %s", error);
        free(error);
        return;
    }
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int failure = fd < 0 ? errno : fd_write_all(fd, text->bytes, text->size);
    if (fd >= 0 && close(fd) != 0 && !failure)
        failure = errno;
    if (failure)
        log_complain("cannot write '%s': %s", name, strerror(failure));
    free(name);
}

static void say_total(int pid, uint64_t total) {
    if (!log_shows(0))
        return;
    struct text number = {0};
    struct text plain = {0};
    text_format(&plain, "%" PRIu64, total);
    for (size_t i = 0; i < plain.size; i++) {
        if (i && (plain.size - i) % 3 == 0)
            text_char(&number, ',');
        text_char(&number, plain.bytes[i]);
    }
    log_format(pid, LOG_USER, "\nEvents    : Ir\nCollected : %s\n\nI   refs:      %s", plain.bytes,
               number.bytes);
    text_free(&number);
    text_free(&plain);
}

void counts_report(const struct supervisor_request *request, struct symbols *symbols,
                   const struct followed *process) {
    if (!request->counts.file)
        return;
    struct report report = {
        .request = request, .symbols = symbols, .pid = process->pid, .file = process->counts};
    struct text out = {0};
    struct callgrind_options options = {.lines = request->counts.lines,
                                        .instructions = request->counts.instructions,
                                        .compress_strings = request->counts.compress_strings,
                                        .compress_positions = request->counts.compress_positions,
                                        .creator = "quern-" QUERN_VERSION,
                                        .command = process->command ? process->command : "",
                                        .pid = process->pid};
    // Names are asked for thousands of times: one guard around all of them is cheaper.
    if (guard_run(read_guarded, &report) && report.sound) {
        callgrind_write(&report.graph, &options, &out);
        write_out(request, process->pid, &out);
        if (!process->muted)
            say_total(process->pid, report.graph.total);
        if (report.incomplete)
            log_complain("the counts of process %d are not complete: it has more code, threads or "
                         "calls than there is room for",
                         process->pid);
    } else {
        log_complain("the counts of process %d cannot be read", process->pid);
    }
    text_free(&out);
    free(report.functions);
    free(report.places);
    free(report.graph.functions);
    free(report.graph.costs);
    free(report.graph.calls);
}
