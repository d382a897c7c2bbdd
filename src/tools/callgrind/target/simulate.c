#include "tools/callgrind/target/simulate.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/tool.h"
#include "tools/callgrind/target/cache_use.h"
#include "tools/callgrind/target/counts.h"
#include "tools/callgrind/target/lines.h"

#pragma GCC target("general-regs-only")

enum { HISTORY_BITS = 7, ADDRESS_BITS = 7, TARGETS = 512 };
enum { PIECE_MOST = 60, EXTENSION_LEAST = 3 }; // instructions
enum { STREAMS = 8, STREAM_BITS = 12, LINES_AHEAD = 5 };
#define OTHER_NAME (1ul << 62) // beyond any line's number

bool simulate_caches, simulate_branches, simulate_write_back, simulate_uses;
unsigned simulate_code_bits;
uint32_t simulate_line;

// The last level keeps the ways of a set in order, the one used last first, twice the line's number
// each, plus 1 if it is dirty. The first level has stamps instead, which inserted code sets as
// well.
struct cache {
    uint64_t *lines, *stamps; // by set; 0: none
    uint64_t mask;            // sets - 1
    unsigned ways, bits;
};

struct simulation {
    struct cache code, data, last;
    struct cache_use *uses; // instead of these
    struct lines lines;
    // Stamp of lines that are not known: an access to address 0 takes them for known.
    uint64_t nowhere;
    uint32_t history;
    uint8_t conditions[1 << (HISTORY_BITS + ADDRESS_BITS)];
    uint64_t targets[TARGETS];
    struct {
        uint64_t start; // the thread's instructions by then
        bool is_extended;
        uint32_t known; // of the indirect jump whose target is known in its extension, or 0
    } piece;
    struct stream {
        uint32_t line; // met last, in LL
        int32_t run;   // how many in a row, upwards or (negative) downwards
    } streams[STREAMS];
};

static bool prefetches;

enum { CACHES = 3 };
static struct counts_cache shapes[CACHES];

// ---- caches ------------------------------------------------------------------------------------

static struct known_line *known_place(struct simulation *simulation, enum lines_cache kind,
                                      uint64_t line) {
    return &simulation->lines.known[kind][line % LINES_KNOWN];
}

static const struct cache *first_level(const struct simulation *simulation, enum lines_cache kind) {
    return kind == LINES_CODE ? &simulation->code : &simulation->data;
}

// The line's place in the cache, or the one that it is to have.
static uint64_t find_way(const struct cache *cache, uint64_t line, bool *found) {
    uint64_t first = (line & cache->mask) * cache->ways, oldest = first;
    for (uint64_t at = first; at < first + cache->ways; at++) {
        if (cache->lines[at] == line) {
            *found = true;
            return at;
        }
        if (cache->stamps[at] < cache->stamps[oldest])
            oldest = at;
    }
    *found = false;
    return oldest;
}

// Whether the line was in the first level; it is the one used last then.
static bool use_first(struct simulation *simulation, enum lines_cache kind, uint64_t line) {
    const struct cache *cache = first_level(simulation, kind);
    struct known_line *known = known_place(simulation, kind, line);
    bool found = known->start == line << cache->bits;
    if (!found) {
        uint64_t at = find_way(cache, line, &found), old = cache->lines[at];
        struct known_line *evicted = known_place(simulation, kind, old);
        if (!found && evicted->start == old << cache->bits)
            *evicted = (struct known_line){.stamp = &simulation->nowhere};
        cache->lines[at] = line;
        known->start = line << cache->bits;
        known->stamp = &cache->stamps[at];
    }
    *known->stamp = ++simulation->lines.clock;
    lines_used(kind, line);
    return found;
}

// The same without help of inserted code, which sees every access then.
static bool use_first_alone(struct simulation *simulation, enum lines_cache kind, uint64_t line) {
    const struct cache *cache = first_level(simulation, kind);
    bool found;
    uint64_t at = find_way(cache, line, &found);
    cache->lines[at] = line;
    cache->stamps[at] = ++simulation->lines.clock;
    return found;
}

// What came of a look into the last level; the worst of two lines counts.
enum outcome { FOUND, MISSED, MISSED_DIRTY };

static enum outcome use(const struct cache *cache, uint64_t line, bool writes) {
    uint64_t *set = cache->lines + (line & cache->mask) * cache->ways;
    unsigned at = 0;
    while (at < cache->ways && set[at] >> 1 != line)
        at++;
    bool found = at < cache->ways;
    if (!found)
        at = cache->ways - 1;
    uint64_t before = set[at];
    for (unsigned i = at; i > 0; i--)
        set[i] = set[i - 1];
    set[0] = line << 1 | writes | (found ? before & 1 : 0);
    return found ? FOUND : before & 1 ? MISSED_DIRTY : MISSED;
}

static enum outcome use_all(const struct cache *cache, uint64_t address, uint32_t size,
                            bool writes) {
    uint64_t first = address >> cache->bits, last = (address + size - 1) >> cache->bits;
    enum outcome one = use(cache, first, writes);
    enum outcome other = last == first ? FOUND : use(cache, last, writes);
    return one > other ? one : other;
}

static void prefetch(struct simulation *simulation, uint64_t address) {
    const struct cache *cache = &simulation->last;
    struct stream *stream = &simulation->streams[(address >> STREAM_BITS) % STREAMS];
    uint32_t line = address >> cache->bits;
    int32_t step = (int32_t)(line - stream->line);
    if (!step)
        return;
    bool goes_on = (step == 1 && stream->run >= 0) || (step == -1 && stream->run <= 0);
    bool began = stream->run;
    stream->run = goes_on ? stream->run + step : 0;
    stream->line = line;
    if (!began || !goes_on)
        return;
    uint64_t ahead = (address >> cache->bits) + (int64_t)step * LINES_AHEAD;
    // With both, Valgrind has the prefetched lines by other names, of which every second is dirty.
    if (simulate_write_back)
        use(cache, ahead | OTHER_NAME, ahead & 1);
    else
        use(cache, ahead, false);
}

static void count_miss(struct thread *thread, uint32_t id, enum outcome outcome) {
    enum counts_event event = counts_ids[id].count;
    unsigned which = event - COUNTS_I1MR;
    thread_count(thread, id, 0, event, 1);
    if (outcome != FOUND)
        thread_count(thread, id, 1, COUNTS_ILMR + which, 1);
    if (outcome == MISSED_DIRTY && simulate_write_back)
        thread_count(thread, id, 2, COUNTS_ILDMR + which, 1);
}

static void refer_and_note(struct thread *thread, uint32_t id, uint64_t address,
                           enum lines_cache kind) {
    enum use_outcome outcome = cache_use_refer(
        thread->simulation->uses, kind == LINES_CODE ? 0 : 1, address, counts_ids[id].lengths,
        thread_counter(thread, id, 2, COUNTS_ACCOST1), !thread->paused);
    if (outcome != USE_FOUND)
        count_miss(thread, id, outcome == USE_FOUND_LAST ? FOUND : MISSED);
}

static void refer(struct thread *thread, uint32_t id, uint64_t address, enum lines_cache kind) {
    const struct counts_id *info = &counts_ids[id];
    struct simulation *simulation = thread->simulation;
    uint32_t size = info->lengths;
    if (simulate_uses) {
        refer_and_note(thread, id, address, kind);
        return;
    }
    unsigned bits = first_level(simulation, kind)->bits;
    uint64_t first = address >> bits, last = (address + size - 1) >> bits;
    bool alone = simulate_write_back && kind == LINES_DATA;
    bool writes = simulate_write_back && info->count == COUNTS_D1MW;
    bool found =
        alone ? use_first_alone(simulation, kind, first) : use_first(simulation, kind, first);
    if (last != first)
        found &=
            alone ? use_first_alone(simulation, kind, last) : use_first(simulation, kind, last);
    if (prefetches && (!found || writes))
        prefetch(simulation, address);
    if (found && !writes)
        return;
    enum outcome outcome = use_all(&simulation->last, address, size, writes);
    if (!found)
        count_miss(thread, id, outcome);
}

void simulate_code(uint32_t id, uint64_t rsp, void *state, uint64_t address) {
    struct thread *thread = state;
    refer(thread, id, counts_ids[id].pc, LINES_CODE);
}

void simulate_data(uint32_t id, uint64_t rsp, void *state, uint64_t address) {
    struct thread *thread = state;
    refer(thread, id, address, LINES_DATA);
}

void simulate_skipped(uint32_t accesses, uint64_t rsp, void *state) {
    struct thread *thread = state;
    *thread_skipped_counter(thread, COUNTS_DR) += accesses & 0xff;
    *thread_skipped_counter(thread, COUNTS_DW) += accesses >> 8;
}

// ---- pieces of code ----------------------------------------------------------------------------

static void begin_piece(struct thread *thread) {
    thread->simulation->piece.start = thread->words[WORD_TOTALS];
    thread->simulation->piece.is_extended = false;
    thread->simulation->piece.known = 0;
}

static bool piece_has_room(struct thread *thread) {
    struct simulation *simulation = thread->simulation;
    uint64_t length = thread->words[WORD_TOTALS] - simulation->piece.start;
    if (length > PIECE_MOST) {
        uint64_t earlier = (length - 1) / PIECE_MOST * PIECE_MOST;
        simulation->piece.start += earlier;
        simulation->piece.is_extended = false;
        simulation->piece.known = 0;
        length -= earlier;
    }
    return !simulation->piece.is_extended && length + EXTENSION_LEAST <= PIECE_MOST;
}

void simulate_jump(uint32_t beyond, uint64_t rsp, void *state) {
    struct thread *thread = state;
    if (!piece_has_room(thread)) {
        begin_piece(thread);
        return;
    }
    thread->simulation->piece.is_extended = true;
    thread->simulation->piece.known = beyond;
}

static bool piece_knows(struct thread *thread, uint64_t pc) {
    struct simulation *simulation = thread->simulation;
    return simulation->piece.known && simulation->piece.known == (uint32_t)pc &&
           thread->words[WORD_TOTALS] - simulation->piece.start <= PIECE_MOST;
}

void simulate_piece_end(uint32_t unused, uint64_t rsp, void *state) {
    begin_piece(state);
}

// ---- branches ----------------------------------------------------------------------------------

static void branch(struct thread *thread, uint32_t id, bool taken) {
    struct simulation *simulation = thread->simulation;
    uint32_t past = simulation->history & ((1u << HISTORY_BITS) - 1);
    uint32_t low = counts_ids[id].pc & ((1u << ADDRESS_BITS) - 1);
    uint8_t *counter = &simulation->conditions[low << HISTORY_BITS | past];
    thread_count(thread, id, 0, COUNTS_BC, 1);
    if ((*counter >= 2) != taken)
        thread_count(thread, id, 1, COUNTS_BCM, 1);
    if (taken && *counter < 3)
        ++*counter;
    else if (!taken && *counter > 0)
        --*counter;
    simulation->history = simulation->history << 1 | taken;
    begin_piece(thread);
}

void simulate_taken(uint32_t id, uint64_t rsp, void *state) {
    branch(state, id, true);
}

void simulate_not_taken(uint32_t id, uint64_t rsp, void *state) {
    branch(state, id, false);
}

void simulate_first(uint32_t id, uint64_t rsp, void *state) {
    struct thread *thread = state;
    if (piece_has_room(thread))
        thread->simulation->piece.is_extended = true;
    else
        branch(thread, id, !(counts_ids[id].lengths & JOINED_BEHIND));
}

void simulate_only(uint32_t id, uint64_t rsp, void *state) {
    struct thread *thread = state;
    uint32_t joined = counts_ids[id].lengths;
    if (piece_has_room(thread))
        branch(thread, joined / JOINED_SECOND, joined & JOINED_TAKEN);
    else
        branch(thread, id, joined & JOINED_BEHIND);
}

void simulate_indirect(uint32_t id, uint64_t rsp, void *state, uint64_t target) {
    struct thread *thread = state;
    if (piece_knows(thread, counts_ids[id].pc)) {
        begin_piece(thread);
        return;
    }
    uint64_t *expected = &thread->simulation->targets[counts_ids[id].pc % TARGETS];
    thread_count(thread, id, 0, COUNTS_BI, 1);
    if (*expected != target)
        thread_count(thread, id, 1, COUNTS_BIM, 1);
    *expected = target;
    begin_piece(thread);
}

// ---- start -------------------------------------------------------------------------------------

// SIZE,WAYS,LINE, as the supervisor has checked it
static void read_shape(const char *option, struct counts_cache *shape) {
    const char *text = tool_option(option);
    char *end;
    if (!text)
        return;
    shape->size = strtoul(text, &end, 10);
    shape->assoc = strtoul(end + 1, &end, 10);
    shape->line = strtoul(end + 1, &end, 10);
}

static bool is_on(const char *option) {
    const char *value = tool_option(option);
    return value && strcmp(value, "yes") == 0;
}

static uint64_t sets_of(const struct counts_cache *shape) {
    return shape->size / shape->assoc / shape->line;
}

void simulate_start(void) {
    static const char *const options[CACHES] = {"cache-I1", "cache-D1", "cache-LL"};
    simulate_branches = is_on("simulate-branches");
    simulate_caches = is_on("simulate-caches");
    for (unsigned i = COUNTS_BC; simulate_branches && i <= COUNTS_BIM; i++)
        counts_count_event(i);
    if (!simulate_caches)
        return;
    for (unsigned i = COUNTS_DR; i <= COUNTS_DLMW; i++)
        counts_count_event(i);
    simulate_uses = is_on("cacheuse");
    prefetches = is_on("simulate-hwpref") && !simulate_uses;
    simulate_write_back = is_on("simulate-wb") && !simulate_uses;
    for (unsigned i = COUNTS_ACCOST1; simulate_uses && i <= COUNTS_SPLOSS2; i++)
        counts_count_event(i);
    for (unsigned i = COUNTS_ILDMR; simulate_write_back && i <= COUNTS_DLDMW; i++)
        counts_count_event(i);
    simulate_line = UINT32_MAX;
    for (unsigned i = 0; i < CACHES; i++) {
        read_shape(options[i], &shapes[i]);
        if (shapes[i].line < simulate_line)
            simulate_line = shapes[i].line;
    }
    simulate_code_bits = __builtin_ctz(shapes[0].line);
    counts_caches(shapes);
    lines_set_shape(LINES_CODE, __builtin_ctz(shapes[0].line), sets_of(&shapes[0]));
    lines_set_shape(LINES_DATA, __builtin_ctz(shapes[1].line), sets_of(&shapes[1]));
}

static void make_cache(struct cache *cache, const struct counts_cache *shape) {
    cache->bits = __builtin_ctz(shape->line);
    cache->ways = shape->assoc;
    cache->mask = sets_of(shape) - 1;
    cache->lines = counts_reserve(shape->size / shape->line * sizeof *cache->lines);
    cache->stamps = counts_reserve(shape->size / shape->line * sizeof *cache->stamps);
}

static void free_cache(struct cache *cache, const struct counts_cache *shape) {
    munmap(cache->lines, shape->size / shape->line * sizeof *cache->lines);
    munmap(cache->stamps, shape->size / shape->line * sizeof *cache->stamps);
}

void simulate_thread_start(struct thread *thread) {
    if (!simulate_caches && !simulate_branches)
        return;
    struct simulation *simulation = counts_reserve(sizeof *simulation);
    thread->simulation = simulation;
    if (simulate_caches) {
        for (unsigned i = 0; i < LINES_CACHES; i++)
            simulation->lines.known[i][0].stamp = &simulation->nowhere;
        lines_set_thread(&simulation->lines);
        if (simulate_uses)
            simulation->uses = cache_use_new(shapes);
        make_cache(&simulation->code, &shapes[0]);
        make_cache(&simulation->data, &shapes[1]);
        make_cache(&simulation->last, &shapes[2]);
    }
}

void simulate_thread_again(const struct thread *thread) {
    if (simulate_caches)
        lines_set_thread(&thread->simulation->lines);
}

static void finish_uses(const struct thread *thread) {
    if (!thread->paused)
        cache_use_finish(thread->simulation->uses);
}

void simulate_thread_end(struct thread *thread) {
    struct simulation *simulation = thread->simulation;
    if (!simulation)
        return;
    if (simulate_caches) {
        free_cache(&simulation->code, &shapes[0]);
        free_cache(&simulation->data, &shapes[1]);
        free_cache(&simulation->last, &shapes[2]);
    }
    if (simulation->uses) {
        finish_uses(thread);
        cache_use_free(simulation->uses);
    }
    munmap(simulation, sizeof *simulation);
    thread->simulation = NULL;
}

void simulate_end(void) {
    const struct thread *thread = tool_thread_state();
    if (simulate_uses && thread->simulation)
        finish_uses(thread);
}
