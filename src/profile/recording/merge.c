// Writing a recording anew with less detail; recording.h tells what is kept.
//
// The old file is read once for each attempt; a reader's tables of live blocks serve both files: a
// block's `place` is the new file's, and the group it is held in the old one's. Its marks say when
// it came: the number of the step, and whether it was resized in this one.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/vector.h"
#include "profile/heap/kinds.h"
#include "profile/recording/reader.h"
#include "profile/recording/writer.h"

#define STEPS       128 // aimed at
#define SHORTEST    1000000
#define COARSER     4          // times as long a step, if the file is still too large
#define LEAST       4096       // bytes of columns in a chunk
#define RESIZED     (1u << 31) // mark
#define NEVER       UINT64_MAX
#define MERGED_MOST 65536 // different blocks that are counted at once

// Blocks that came and went in this step, by kind; or what is to be corrected, by thread and stack.
struct entry {
    struct kind kind;
    uint64_t count, temporary, bytes;
    struct heap_correction correction;
};

struct table {
    struct map map;
    struct entry *list;
    uint32_t count;
};

// The blocks that were resized in this step, as they were before.
struct changed {
    struct map_integers numbers;
    struct heap_block *before; // by entry of the numbers
    uint32_t count;
};

struct merger {
    struct reader reader;
    struct heap_sink sink; // the new writer's
    struct recording_writer *to;
    uint64_t length;       // of a step
    uint64_t peak_ordinal; // in the old file
    uint32_t step;         // number of the step in hand, from 1 on; 0: none
    uint32_t steps;        // so far
    uint64_t first, last;  // times of its events
    struct table merged, corrections;
    struct changed changed;
    uint64_t *latest; // by thread: as in a summary
    size_t latest_count;
    struct heap_sample largest, last_sample; // of the step
    bool has_sample;
};

// ---- tables ------------------------------------------------------------------------------------

static struct entry *entry_of(struct table *table, uint32_t thread, uint32_t stack, uint64_t size) {
    struct kind kind = {.size = size, .stack = stack, .thread = thread};
    uint32_t number = kinds_find(&table->map, table->list, sizeof *table->list, &kind);
    if (number == MAP_NONE) {
        number = kinds_add(&table->map, &kind);
        *vector_push(table->list, table->count) =
            (struct entry){.kind = kind, .correction = {.thread = thread, .stack = stack}};
    }
    return &table->list[number];
}

static void empty_table(struct table *table) {
    map_clear(&table->map);
    table->count = 0;
}

static void free_table(struct table *table) {
    map_free(&table->map);
    free(table->list);
}

static struct heap_correction *correction_of(struct merger *merger,
                                             const struct heap_block *block) {
    return &entry_of(&merger->corrections, block->thread, block->stack, 0)->correction;
}

static void remember(struct changed *changed, const struct heap_block *before) {
    bool is_new;
    uint32_t number = map_integers_add(&changed->numbers, before->number, &is_new);
    if (is_new)
        vector_push(changed->before, changed->count);
    changed->before[number] = *before;
}

// As the block was when the step began, or when it was allocated.
static struct heap_block original(struct merger *merger, const struct heap_block *block) {
    if (!(block->marks & RESIZED))
        return *block;
    return merger->changed.before[map_integers_find(&merger->changed.numbers, block->number)];
}

static uint64_t *latest_of(struct merger *merger, uint32_t thread) {
    merger->latest =
        base_reach(merger->latest, &merger->latest_count, thread, sizeof *merger->latest);
    return &merger->latest[thread];
}

// ---- steps -------------------------------------------------------------------------------------

static void tell(struct merger *merger, enum heap_kind kind, uint64_t time,
                 const struct heap_block *before, struct heap_block *block) {
    struct heap_event event = {.kind = kind, .time = time, .block = block};
    event.thread = block ? block->thread : before->thread;
    if (before)
        event.before = *before;
    merger->sink.event(merger->sink.context, &event);
}

// A resize that is told counts by itself.
static void tell_resize(struct merger *merger, const struct heap_block *before,
                        struct heap_block *block) {
    struct heap_correction *correction = correction_of(merger, block);
    tell(merger, HEAP_RESIZED, merger->last, before, block);
    correction->resized--;
    if (block->size > before->size)
        correction->bytes -= (int64_t)(block->size - before->size);
}

// What has come in the step and is still there, and what was resized.
static void tell_alive(struct merger *merger, struct heap_block *block) {
    bool is_new = (block->marks & ~RESIZED) == merger->step;
    struct heap_block before = original(merger, block);
    if (is_new)
        tell(merger, HEAP_ALLOCATED, merger->last, NULL, &before);
    if (is_new)
        block->place = before.place;
    if (block->marks & RESIZED)
        tell_resize(merger, &before, block);
    block->marks &= ~RESIZED;
}

static int by_thread(const void *a, const void *b) {
    const struct kind *one = &((const struct entry *)a)->kind;
    const struct kind *other = &((const struct entry *)b)->kind;
    if (one->thread != other->thread)
        return one->thread < other->thread ? -1 : 1;
    if (one->stack != other->stack)
        return one->stack < other->stack ? -1 : 1;
    return (one->size > other->size) - (one->size < other->size);
}

// Puts the entries of a table in order. Nothing is found in it any more until it is emptied.
static void sort_table(struct table *table) {
    if (table->count)
        qsort(table->list, table->count, sizeof *table->list, by_thread);
}

static void tell_merged(struct merger *merger) {
    sort_table(&merger->merged);
    for (uint32_t i = 0; i < merger->merged.count; i++) {
        const struct entry *sum = &merger->merged.list[i];
        struct heap_block block = {
            .stack = sum->kind.stack, .thread = sum->kind.thread, .size = sum->bytes / sum->count};
        writer_merged(merger->to, merger->last, &block, sum->count, sum->temporary, sum->bytes);
    }
    empty_table(&merger->merged);
}

static void tell_corrections(struct merger *merger) {
    sort_table(&merger->corrections);
    for (uint32_t i = 0; i < merger->corrections.count; i++) {
        const struct heap_correction *one = &merger->corrections.list[i].correction;
        if (one->temporary || one->resized || one->bytes)
            writer_corrected(merger->to, merger->last, one);
    }
    empty_table(&merger->corrections);
}

static void tell_samples(struct merger *merger) {
    if (!merger->has_sample)
        return;
    if (merger->largest.resident > merger->last_sample.resident)
        merger->sink.sample(merger->sink.context, &merger->largest);
    merger->sink.sample(merger->sink.context, &merger->last_sample);
    merger->has_sample = false;
}

static void begin_step(struct merger *merger, uint64_t time) {
    merger->step = ++merger->steps;
    merger->first = merger->last = time;
    writer_step_begins(merger->to, time);
}

static void end_step(struct merger *merger) {
    if (!merger->step)
        return;
    struct reader *reader = &merger->reader;
    for (uint32_t i = 1; i <= reader->held_count; i++) {
        struct heap_block *block = &reader->held[i].block;
        if (reader->held[i].group &&
            ((block->marks & ~RESIZED) == merger->step || block->marks & RESIZED))
            tell_alive(merger, block);
    }
    tell_merged(merger);
    tell_corrections(merger);
    tell_samples(merger);
    map_integers_clear(&merger->changed.numbers);
    merger->changed.count = 0;
    writer_step_ends(merger->to, merger->last);
    merger->step = 0;
}

// Time goes on, before anything has happened then: this is where a step may end, unless one of the
// old file goes on.
static void on_time(void *context, uint64_t time) {
    struct merger *merger = context;
    if (merger->step && !merger->reader.is_merging &&
        time / merger->length != merger->first / merger->length)
        end_step(merger);
}

static void go_to(struct merger *merger, uint64_t time) {
    if (!merger->step)
        begin_step(merger, time);
    merger->last = time > merger->last ? time : merger->last;
}

// ---- events ------------------------------------------------------------------------------------

// Sizes that have no class of their own are summed up. What there is is written from time to time,
// so that sizes get classes and the table stays small.
static void count_pair(struct merger *merger, const struct heap_block *block, uint64_t count,
                       uint64_t temporary, uint64_t bytes) {
    const struct classes *classes = &merger->to->classes;
    uint32_t class = classes_find(classes, block->stack, block->size);
    uint64_t size = class && classes_is_loose(classes, class) ? CLASSES_LOOSE : block->size;
    if (merger->merged.count >= MERGED_MOST)
        tell_merged(merger);
    struct entry *entry = entry_of(&merger->merged, block->thread, block->stack, size);
    entry->count += count;
    entry->temporary += temporary;
    entry->bytes += bytes;
}

static void on_freed(struct merger *merger, const struct heap_event *event) {
    const struct heap_block *block = &event->before;
    bool temporary =
        event->is_merged ? event->is_temporary : *latest_of(merger, event->thread) == block->number;
    struct heap_block before = original(merger, block);
    bool is_whole = (block->marks & ~RESIZED) == merger->step;
    if (is_whole)
        count_pair(merger, &before, 1, temporary && !(block->marks & RESIZED), before.size);
    else
        tell(merger, HEAP_FREED, merger->first, &before, NULL);
    // Another thread may have resized it in between: then it counts where it was last.
    if (temporary && (!is_whole || block->marks & RESIZED))
        correction_of(merger, block)->temporary++;
}

static void on_resized(struct merger *merger, const struct heap_event *event) {
    struct heap_correction *correction = correction_of(merger, event->block);
    correction->resized++;
    if (event->block->size > event->before.size)
        correction->bytes += (int64_t)(event->block->size - event->before.size);
    if (!(event->block->marks & RESIZED))
        remember(&merger->changed, &event->before);
    event->block->marks |= RESIZED;
}

static void on_event(void *context, const struct heap_event *event) {
    struct merger *merger = context;
    if (event->kind != HEAP_SKIPPED) {
        go_to(merger, event->time);
        uint64_t latest = 0;
        if (event->kind == HEAP_ALLOCATED) {
            event->block->marks = merger->step;
            latest = event->block->number;
        } else if (event->kind == HEAP_FREED) {
            on_freed(merger, event);
        } else {
            on_resized(merger, event);
        }
        if (!event->is_merged)
            *latest_of(merger, event->thread) = latest;
    }
    if (merger->reader.ordinal == merger->peak_ordinal)
        end_step(merger);
}

static void on_merged(void *context, const struct reader_merged *merged) {
    struct merger *merger = context;
    go_to(merger, merged->block.time);
    count_pair(merger, &merged->block, merged->count, merged->temporary, merged->bytes);
}

static void on_corrected(void *context, const struct heap_correction *told) {
    struct merger *merger = context;
    struct heap_block block = {.stack = told->stack, .thread = told->thread};
    go_to(merger, merger->reader.time);
    struct heap_correction *correction = correction_of(merger, &block);
    correction->temporary += told->temporary;
    correction->resized += told->resized;
    correction->bytes += told->bytes;
}

static void on_sample(void *context, const struct heap_sample *sample) {
    struct merger *merger = context;
    go_to(merger, sample->time);
    if (!merger->has_sample || sample->resident >= merger->largest.resident)
        merger->largest = *sample;
    merger->last_sample = *sample;
    merger->has_sample = true;
}

// A point is shown with the size of the heap there: a step ends with it, if it can.
static void on_mark(void *context, const struct heap_mark *mark) {
    struct merger *merger = context;
    bool is_point = mark->kind == HEAP_MARK_POINT || mark->kind == HEAP_MARK_SNAPSHOT;
    if (is_point && !merger->reader.is_merging)
        end_step(merger);
    merger->sink.mark(merger->sink.context, mark);
}

// ---- an attempt --------------------------------------------------------------------------------

#define PASS(name, parameters, arguments)                                                          \
    static void on_##name parameters {                                                             \
        struct merger *merger = context;                                                           \
        merger->sink.name arguments;                                                               \
    }
#define TO merger->sink.context

PASS(stack, (void *context, uint32_t id, const uint64_t *pcs, size_t count, bool truncated),
     (TO, id, pcs, count, truncated))
PASS(thread, (void *context, uint32_t thread, int tid), (TO, thread, tid))
PASS(name, (void *context, uint32_t thread, const char *name), (TO, thread, name))
PASS(state, (void *context, uint32_t thread, enum heap_thread_state state, uint64_t time),
     (TO, thread, state, time))
PASS(mapping, (void *context, const struct heap_mapping *mapping), (TO, mapping))
PASS(region, (void *context, const struct heap_region *region), (TO, region))

static void free_merger(struct merger *merger) {
    if (merger->to)
        writer_free(merger->to);
    reader_close(&merger->reader);
    free_table(&merger->merged);
    free_table(&merger->corrections);
    map_integers_free(&merger->changed.numbers);
    free(merger->changed.before);
    free(merger->latest);
}

// Reads the file, and writes it with steps of this length.
static bool attempt(struct merger *merger, int from, int fd, const struct recording_writer *old,
                    uint64_t length) {
    struct recording_info info = {0};
    struct heap_sink sink = {.context = merger,
                             .event = on_event,
                             .stack = on_stack,
                             .thread = on_thread,
                             .name = on_name,
                             .state = on_state,
                             .mapping = on_mapping,
                             .region = on_region,
                             .sample = on_sample,
                             .mark = on_mark,
                             .corrected = on_corrected};
    *merger = (struct merger){.length = length, .peak_ordinal = old->peak_ordinal};
    merger->reader = (struct reader){.fd = from,
                                     .sinks = &sink,
                                     .sink_count = 1,
                                     .info = &info,
                                     .take_merged = on_merged,
                                     .take_time = on_time,
                                     .take_context = merger};
    if (lseek(from, 0, SEEK_SET) < 0 || lseek(fd, 0, SEEK_SET) < 0 || ftruncate(fd, 0) < 0)
        return false;
    struct recording_process process = old->process;
    merger->to = writer_again(fd, &process, old->chunk_size);
    recording_sink(merger->to, &merger->sink);
    bool is_read = reader_read(&merger->reader) && !info.damage;
    end_step(merger);
    recording_flush(merger->to);
    errno = merger->to->error ? merger->to->error : EIO;
    recording_info_free(&info);
    merger->reader.info = NULL;
    return is_read && !merger->to->error;
}

// ---- going on ----------------------------------------------------------------------------------

struct replacer {
    struct merger *merger;
    uint32_t *next;   // by held block: another one of the same old group; 0: none
    uint32_t *first;  // by old group
    uint64_t *newest; // by thread: the highest number of a live block
    bool is_sound;
};

static void replace(void *context, struct heap_block *block) {
    struct replacer *replacer = context;
    const struct reader *reader = &replacer->merger->reader;
    uint32_t group = block->place;
    uint32_t at = group <= reader->classes.group_count ? replacer->first[group] : 0;
    if (!at) {
        replacer->is_sound = false;
        return;
    }
    replacer->first[group] = replacer->next[at];
    block->place = reader->held[at].block.place;
    if (block->thread < replacer->merger->latest_count &&
        block->number > replacer->newest[block->thread])
        replacer->newest[block->thread] = block->number;
}

// Live blocks are told apart by the groups of the old file; those of a group are all alike.
static bool replace_all(struct merger *merger, const struct recording_places *places) {
    const struct reader *reader = &merger->reader;
    struct replacer replacer = {.merger = merger, .is_sound = true};
    replacer.next = calloc(reader->held_count + 1ul, sizeof *replacer.next);
    replacer.first = calloc(reader->classes.group_count + 1ul, sizeof *replacer.first);
    replacer.newest = calloc(merger->latest_count + 1ul, sizeof *replacer.newest);
    if (!replacer.next || !replacer.first || !replacer.newest)
        abort();
    for (uint32_t i = 1; i <= reader->held_count; i++) {
        uint32_t group = reader->held[i].group;
        if (!group)
            continue;
        replacer.next[i] = replacer.first[group];
        replacer.first[group] = i;
    }
    places->each(places->context, replace, &replacer);
    // A thread whose last event was an allocation may free that block next, if nobody else has.
    merger->to->carried = calloc(merger->latest_count + 1ul, sizeof *merger->to->carried);
    merger->to->carried_count = merger->to->carried ? merger->latest_count : 0;
    for (uint32_t i = 1; i <= reader->held_count; i++) {
        const struct heap_block *block = &reader->held[i].block;
        if (reader->held[i].group && block->thread < merger->to->carried_count &&
            block->number == merger->latest[block->thread])
            merger->to->carried[block->thread] = replacer.newest[block->thread];
    }
    free(replacer.newest);
    free(replacer.next);
    free(replacer.first);
    return replacer.is_sound;
}

void recording_set_most(struct recording_writer *writer, uint64_t most) {
    writer->most = most;
    if (most / 4 < writer->chunk_size)
        writer->chunk_size = most / 4 > LEAST ? most / 4 : LEAST;
}

bool recording_is_full(const struct recording_writer *writer) {
    return writer->most && !writer->error && writer->size > writer->most - writer->most / 8;
}

// The writer stays where it is; what it consists of is exchanged.
static void go_on_with(struct recording_writer *writer, struct merger *merger) {
    struct recording_writer old = *writer;
    *writer = *merger->to;
    *merger->to = old;
    writer->most = old.most > 2 * writer->size ? old.most : 2 * writer->size;
    writer->merges.is_too_large = old.merges.is_too_large || writer->most > old.most;
    writer->step_length = merger->length;
    writer->latest = old.latest;
    close(old.fd);
}

bool recording_merge(struct recording_writer *writer, int from, int fd,
                     const struct recording_places *places) {
    struct merger merger;
    recording_flush(writer);
    uint64_t time = writer->latest;
    uint64_t length = writer->step_length ? writer->step_length : SHORTEST;
    while (time / length > STEPS)
        length *= 2;
    bool is_done = attempt(&merger, from, fd, writer, length);
    while (is_done && merger.to->size > writer->most / 2 && length <= time) {
        free_merger(&merger);
        length = length * COARSER > time ? NEVER / 2 : length * COARSER;
        is_done = attempt(&merger, from, fd, writer, length);
    }
    int error = errno;
    if (is_done && !replace_all(&merger, places)) {
        // Blocks are not where they should be: nothing that follows could be read.
        writer->error = error = EPROTO;
        is_done = false;
    }
    if (is_done)
        go_on_with(writer, &merger);
    else
        close(fd);
    free_merger(&merger);
    errno = error;
    return is_done;
}
