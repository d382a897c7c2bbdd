#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "profile/recording/chunks.h"
#include "profile/recording/index.h"

#define TIME_STEP 20 // time units: events closer together share a time
// How long what is there may wait for more, in nanoseconds: events, and samples alone.
#define WAIT       1000000000ull
#define IDLE_WAIT  (10 * WAIT)
#define INDEX_FROM (4u << 20) // bytes of columns: fewer events are read fast enough

// ---- records ----

static void begin(struct recording_writer *writer, enum recording_kind kind) {
    if (writer_used(writer) > writer->chunk_size)
        writer_flush(writer);
    put_kind(writer, kind);
}

static inline void tell_time(struct recording_writer *writer, uint64_t time) {
    uint64_t units = time / RECORDING_TIME_UNIT;
    if (units >= writer->time + TIME_STEP || (!writer->time && units)) {
        put_kind(writer, RECORDING_TIME);
        put_rest(writer, units - writer->time);
        writer_note_time(writer);
        writer->time = units;
    }
}

// Goes to the time and thread of an event.
static inline void place(struct recording_writer *writer, uint64_t time, uint32_t thread) {
    if (++writer->events % LOOK_EVERY == 0 && writer_used(writer) > writer->chunk_size)
        writer_flush(writer);
    if (thread != writer->thread) {
        writer_end_turn(writer);
        writer->thread = thread;
        writer->lane = COLUMN_LANES + (int)(thread % RECORDING_LANES) * SORT_COUNT;
    }
    tell_time(writer, time);
    writer->latest = time;
}

// Stacks are mentioned in the order of their numbers: one that is not there yet, because what it
// was mentioned with has been merged, is described as empty for now.
static void mention_all(struct recording_writer *writer, uint32_t stack) {
    while (writer->stacks + 1 < stack) {
        put_kind(writer, RECORDING_STACK);
        put_near(writer, COLUMN_STACKS, &writer->last_described, ++writer->stacks);
        put_number(writer, COLUMN_STACKS, 0);
        put_number(writer, COLUMN_STACKS, 0);
        writer->last_count = 0;
    }
    writer->stacks = stack;
}

static inline void mention(struct recording_writer *writer, uint32_t stack) {
    if (stack > writer->stacks)
        mention_all(writer, stack);
}

// After an event: what is alive now.
static inline void note_live(struct recording_writer *writer) {
    writer->ordinal++;
    if (writer->live > writer->highest)
        writer->highest = writer->live;
    if (writer->live > writer->peak && !writer->is_merging) {
        writer->peak = writer->live;
        writer->peak_time = writer->time * RECORDING_TIME_UNIT;
        writer->peak_ordinal = writer->ordinal;
    }
}

// Writes the class of a block, 0 before a new one, and returns it.
static inline uint32_t put_class(struct recording_writer *writer, enum recording_sort sort,
                                 const struct heap_block *block) {
    uint32_t class = classes_find(&writer->classes, block->stack, block->size);
    put_in_lane(writer, sort, class);
    if (class) {
        if (classes_is_loose(&writer->classes, class))
            put_in_lane(writer, SORT_SIZES, block->size);
        return class;
    }
    put_near(writer, COLUMN_NEW, &writer->last_new, block->stack);
    put_number(writer, COLUMN_NEW, block->size);
    return classes_add(&writer->classes, block->stack, block->size);
}

static inline struct recent *recent_of(struct recording_writer *writer, uint32_t thread) {
    writer->recent =
        base_reach(writer->recent, &writer->recent_count, thread, sizeof *writer->recent);
    return &writer->recent[thread];
}

// How many allocations of the thread ago a block came; RECORDING_RECENT: longer, or elsewhere.
static inline uint32_t age_of(const struct recent *recent, uint64_t number) {
    uint32_t age = 0;
    while (age < RECORDING_RECENT &&
           recent->numbers[(recent->count - age) % RECORDING_RECENT] != number)
        age++;
    return age;
}

// Writes which block goes, and takes it out of its group. `kind` is followed by the one for groups.
static inline void put_block(struct recording_writer *writer, const struct heap_block *block,
                             unsigned kind, unsigned recent, unsigned foreign) {
    uint32_t age = age_of(recent_of(writer, block->thread), block->number);
    uint32_t step;
    if (age < RECORDING_RECENT && block->thread == writer->thread) {
        put_kind(writer, recent + age);
    } else if (age < RECORDING_RECENT) {
        put_kind(writer, foreign);
        put_in_lane(writer, SORT_FROM, block->thread);
        put_in_lane(writer, SORT_STEPS, age);
    } else if ((step = classes_step(&writer->classes, block->place)) <= CLASSES_STEP_MAX) {
        put_kind(writer, kind);
        put_in_lane(writer, SORT_FROM, writer->classes.groups[block->place].class);
        put_in_lane(writer, SORT_STEPS, step);
    } else {
        put_kind(writer, kind + 1);
        put_in_lane(writer, SORT_STEPS, block->place);
    }
    classes_leave(&writer->classes, block->place);
}

static void on_allocated(struct recording_writer *writer, struct heap_block *block) {
    struct recent *recent = recent_of(writer, writer->thread);
    mention(writer, block->stack);
    put_kind(writer, RECORDING_ALLOCATED);
    uint32_t class = put_class(writer, SORT_CLASSES, block);
    block->place =
        classes_enter(&writer->classes, class,
                      &(struct classes_blocks){
                          .size = block->size, .time = writer->time, .thread = writer->thread},
                      false);
    recent->numbers[++recent->count % RECORDING_RECENT] = block->number;
}

static void on_resized(struct recording_writer *writer, const struct heap_block *before,
                       struct heap_block *block) {
    struct classes_blocks like = writer->classes.groups[before->place].like;
    mention(writer, block->stack);
    put_block(writer, before, RECORDING_RESIZED, RECORDING_RESIZED_RECENT,
              RECORDING_RESIZED_FOREIGN);
    uint32_t class = put_class(writer, SORT_TO, block);
    like.size = block->size;
    block->place = classes_enter(&writer->classes, class, &like, true);
}

// A block that was carried over a merge: its release may still come straight after the allocation.
static void look_at_carried(struct recording_writer *writer, const struct heap_event *event) {
    uint64_t *carried = &writer->carried[event->thread];
    if (*carried && event->kind == HEAP_FREED && event->before.number == *carried)
        writer_corrected(writer, event->time,
                         &(struct heap_correction){.stack = event->before.stack,
                                                   .thread = event->before.thread,
                                                   .temporary = 1});
    *carried = 0;
}

static void on_event(void *context, const struct heap_event *event) {
    struct recording_writer *writer = context;
    if (event->thread < writer->carried_count)
        look_at_carried(writer, event);
    place(writer, event->time, event->thread);
    switch (event->kind) {
    case HEAP_ALLOCATED:
        writer->live += event->block->size;
        on_allocated(writer, event->block);
        break;
    case HEAP_FREED:
        writer->live -= event->before.size;
        put_block(writer, &event->before, RECORDING_FREED, RECORDING_FREED_RECENT,
                  RECORDING_FREED_FOREIGN);
        break;
    case HEAP_RESIZED:
        writer->live += event->block->size - event->before.size;
        on_resized(writer, &event->before, event->block);
        break;
    case HEAP_SKIPPED:
        return;
    }
    note_live(writer);
}

// ---- merged detail ----

static void put_signed(struct recording_writer *writer, int64_t number) {
    put_rest(writer, (uint64_t)number << 1 ^ (uint64_t)(number >> 63));
}

static void forget_recent(struct recording_writer *writer) {
    if (writer->recent_count)
        memset(writer->recent, 0, writer->recent_count * sizeof *writer->recent);
}

void writer_step_begins(struct recording_writer *writer, uint64_t time) {
    place(writer, time, 0);
    put_kind(writer, RECORDING_STEP_BEGINS);
    writer->is_merging = true;
    forget_recent(writer);
}

void writer_step_ends(struct recording_writer *writer, uint64_t time) {
    struct recording_merges *merges = &writer->merges;
    place(writer, time, 0);
    put_kind(writer, RECORDING_STEP_ENDS);
    writer->is_merging = false;
    forget_recent(writer);
    uint64_t told = writer->time * RECORDING_TIME_UNIT;
    uint64_t length = told > merges->until ? told - merges->until : 0;
    merges->steps++;
    merges->longest = length > merges->longest ? length : merges->longest;
    merges->until = told > merges->until ? told : merges->until;
    note_live(writer);
}

void writer_merged(struct recording_writer *writer, uint64_t time, const struct heap_block *block,
                   uint64_t count, uint64_t temporary, uint64_t bytes) {
    place(writer, time, block->thread);
    mention(writer, block->stack);
    put_kind(writer, RECORDING_MERGED);
    put_class(writer, SORT_CLASSES, block);
    put_rest(writer, count);
    put_rest(writer, temporary);
    put_rest(writer, bytes - block->size * count);
    writer->ordinal += 2 * count;
}

void writer_corrected(struct recording_writer *writer, uint64_t time,
                      const struct heap_correction *correction) {
    place(writer, time, correction->thread);
    mention(writer, correction->stack);
    put_kind(writer, RECORDING_CORRECTED);
    put_rest(writer, correction->stack);
    put_signed(writer, correction->temporary);
    put_signed(writer, correction->resized);
    put_signed(writer, correction->bytes);
}

// ---- stacks ----

// The number of a pc; 0 for a new one, which is given as the way from the new one before.
static void put_pc(struct recording_writer *writer, uint64_t pc) {
    struct map_integers *pcs = &writer->pcs;
    uint64_t last = pcs->count ? pcs->keys[pcs->count - 1] : 0;
    bool is_new;
    uint32_t number = map_integers_add(pcs, pc, &is_new);
    put_number(writer, COLUMN_STACKS, is_new ? 0 : number + 1);
    if (!is_new)
        return;
    int64_t step = (int64_t)(pc - last);
    put_number(writer, COLUMN_PCS, (uint64_t)step << 1 ^ (uint64_t)(step >> 63));
}

// Most stacks share their outer frames with the one before.
static void on_stack(void *context, uint32_t id, const uint64_t *pcs, size_t count,
                     bool truncated) {
    struct recording_writer *writer = context;
    mention(writer, id);
    size_t shared = 0;
    while (shared < count && shared < writer->last_count &&
           pcs[count - 1 - shared] == writer->last_pcs[writer->last_count - 1 - shared])
        shared++;
    begin(writer, RECORDING_STACK);
    put_near(writer, COLUMN_STACKS, &writer->last_described, id);
    put_number(writer, COLUMN_STACKS, count << 1 | truncated);
    put_number(writer, COLUMN_STACKS, shared);
    for (size_t i = count - shared; i-- > 0;)
        put_pc(writer, pcs[i]);
    if (count)
        memcpy(writer->last_pcs, pcs, count * sizeof *pcs);
    writer->last_count = count;
}

static void on_thread(void *context, uint32_t thread, int tid) {
    struct recording_writer *writer = context;
    begin(writer, RECORDING_THREAD_STARTS);
    put_rest(writer, thread);
    put_rest(writer, (uint32_t)tid);
}

static void on_name(void *context, uint32_t thread, const char *name) {
    struct recording_writer *writer = context;
    begin(writer, RECORDING_NAME);
    put_rest(writer, thread);
    put_string(writer, name);
}

static void on_state(void *context, uint32_t thread, enum heap_thread_state state, uint64_t time) {
    struct recording_writer *writer = context;
    if (writer_used(writer) > writer->chunk_size)
        writer_flush(writer);
    tell_time(writer, time);
    put_kind(writer, RECORDING_THREAD_STATE);
    put_rest(writer, thread);
    put_rest(writer, state);
}

static void on_mapping(void *context, const struct heap_mapping *mapping) {
    struct recording_writer *writer = context;
    begin(writer, RECORDING_MAPPING);
    put_rest(writer, mapping->start);
    put_rest(writer, mapping->end - mapping->start);
    put_rest(writer, mapping->offset);
    put_rest(writer, mapping->device);
    put_rest(writer, mapping->inode);
    put_rest(writer, mapping->size);
    put_rest(writer, mapping->changed_seconds);
    put_rest(writer, mapping->changed_nanoseconds);
    put_string(writer, mapping->path);
}

static void on_region(void *context, const struct heap_region *region) {
    struct recording_writer *writer = context;
    place(writer, region->time, region->thread);
    if (region->is_mapped) {
        mention(writer, region->stack);
        put_kind(writer, RECORDING_MAPPED);
        put_rest(writer, region->kind);
        put_rest(writer, region->stack);
        writer->regions = region->number;
    } else {
        put_kind(writer, RECORDING_UNMAPPED);
        put_rest(writer, writer->regions - region->number);
    }
    put_rest(writer, region->bytes);
}

static void on_sample(void *context, const struct heap_sample *sample) {
    struct recording_writer *writer = context;
    if (writer_used(writer) > writer->chunk_size)
        writer_flush(writer);
    tell_time(writer, sample->time);
    put_kind(writer, RECORDING_SAMPLE);
    put_rest(writer, sample->resident / RECORDING_PAGE);
    put_rest(writer,
             sample->anonymous == HEAP_UNKNOWN ? 0 : sample->anonymous / RECORDING_PAGE + 1);
    put_rest(writer, sample->minor_faults - writer->last_sample.minor_faults);
    put_rest(writer, sample->major_faults - writer->last_sample.major_faults);
    writer->last_sample = *sample;
}

static void on_mark(void *context, const struct heap_mark *mark) {
    struct recording_writer *writer = context;
    place(writer, mark->time, mark->thread);
    put_kind(writer, RECORDING_MARK);
    put_rest(writer, mark->kind);
    put_string(writer, mark->name);
}

// ---- the whole ----

struct recording_writer *recording_create(int fd, const struct recording_process *process) {
    return writer_again(fd, process, CHUNK_SIZE);
}

// Readers see by the lock that the file is still being written. It ends with the process, however
// that ends. Files that cannot be locked are written all the same.
static void lock_file(int fd) {
    fcntl(fd, F_OFD_SETLK, &(struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET});
}

struct recording_writer *writer_again(int fd, const struct recording_process *process,
                                      size_t chunk_size) {
    struct recording_writer *writer = base_allocate(sizeof *writer);
    *writer = (struct recording_writer){.fd = fd, .lane = COLUMN_LANES, .chunk_size = chunk_size};
    writer_open_buffers(writer);
    lock_file(fd);
    writer->process = *process;
    writer->process.command = base_copy(process->command);
    struct recording_header header = {.magic = RECORDING_MAGIC, .version = RECORDING_VERSION};
    writer_write(writer, &header, sizeof header);
    begin(writer, RECORDING_PROCESS);
    put_rest(writer, (uint32_t)process->pid);
    put_rest(writer, process->started);
    put_string(writer, process->command);
    if (!writer->error)
        writer_flush(writer);
    return writer;
}

void recording_sink(struct recording_writer *writer, struct heap_sink *sink) {
    *sink = (struct heap_sink){
        .context = writer,
        .event = on_event,
        .stack = on_stack,
        .thread = on_thread,
        .name = on_name,
        .state = on_state,
        .mapping = on_mapping,
        .region = on_region,
        .sample = on_sample,
        .mark = on_mark,
    };
}

void recording_tick(struct recording_writer *writer, uint64_t now) {
    if (writer_is_empty(writer) || writer->error)
        return;
    if (!writer->waiting_since)
        writer->waiting_since = now;
    else if (now - writer->waiting_since > (writer->ordinal == writer->flushed ? IDLE_WAIT : WAIT))
        writer_flush(writer);
}

void recording_flush(struct recording_writer *writer) {
    if (!writer->error)
        writer_flush(writer);
}

void recording_set_sums(struct recording_writer *writer, const struct summary *sums) {
    writer->sums = sums;
}

static void write_index(struct recording_writer *writer, uint64_t end) {
    if (writer->error || !writer->sums || writer->merges.until || writer->told < INDEX_FROM)
        return;
    timeline_end(&writer->timeline, end);
    writer->error = recording_index_write(writer->fd, writer->size,
                                          &(struct recording_index_parts){
                                              .sums = writer->sums,
                                              .timeline = &writer->timeline,
                                              .peak_time = writer->peak_time,
                                              .stacks = writer->stacks,
                                          });
}

void recording_held(struct recording_writer *writer, uint32_t stack, const char *holder) {
    if (stack > writer->stacks || strlen(holder) > RECORDING_STRING_MAX)
        return;
    begin(writer, RECORDING_HELD);
    put_rest(writer, stack);
    put_string(writer, holder);
}

void recording_code(struct recording_writer *writer, const struct heap_code *code) {
    const char *file = code->file ? code->file : "";
    if (code->start >= code->end || strlen(code->name) > RECORDING_STRING_MAX ||
        strlen(file) > RECORDING_STRING_MAX)
        return;
    begin(writer, RECORDING_CODE);
    put_rest(writer, code->start);
    put_rest(writer, code->end - code->start);
    put_string(writer, code->name);
    put_string(writer, file);
    put_rest(writer, code->line);
}

int recording_close(struct recording_writer *writer, const struct recording_end *end) {
    begin(writer, RECORDING_END);
    put_rest(writer, end->time);
    put_rest(writer, end->missed);
    put_rest(writer, end->unknown);
    if (!writer->error)
        writer_flush(writer);
    write_index(writer, end->time);
    int error = writer->error;
    if (close(writer->fd) < 0 && !error)
        error = errno;
    writer_free(writer);
    return error;
}

void writer_free(struct recording_writer *writer) {
    ZSTD_freeCCtx(writer->packer);
    for (int i = 0; i < COLUMN_COUNT; i++)
        free(writer->columns[i].bytes);
    classes_free(&writer->classes);
    free(writer->recent);
    map_integers_free(&writer->pcs);
    free(writer->plain);
    free(writer->packed);
    free(writer->carried);
    free((char *)writer->process.command);
    free(writer);
}

struct recording_merges recording_merges(const struct recording_writer *writer) {
    return writer->merges;
}

uint64_t recording_size(const struct recording_writer *writer) {
    return writer->size;
}
