#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/progress.h"
#include "base/text.h"
#include "base/vector.h"
#include "profile/recording/reader.h"

// A time or count that no run reaches: keeps sums from overflowing.
#define NUMBER_MAX (1ull << 60)

// ---- bytes ----

// Reads so many bytes; how many there were.
static size_t read_bytes(struct reader *reader, void *bytes, size_t size) {
    size_t done = 0;
    while (done < size) {
        ssize_t got = read(reader->fd, (char *)bytes + done, size - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got == 0 && reader->wait && !reader->info->is_complete &&
            reader->wait->wait(reader->wait->context))
            continue;
        if (got <= 0)
            break;
        done += (size_t)got;
    }
    reader->position += done;
    return done;
}

void reader_wrong(struct reader *reader, const char *what) {
    if (!reader->problem)
        reader->problem = what;
    for (int i = 0; i < COLUMN_COUNT; i++)
        reader->columns[i].at = reader->columns[i].end;
}

uint64_t reader_long_number(struct reader *reader, int from) {
    struct reader_column *column = &reader->columns[from];
    uint64_t number = 0;
    for (unsigned shift = 0; column->at < column->end && shift < 64; shift += 7) {
        uint8_t byte = *column->at++;
        number |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return number;
    }
    reader_wrong(reader, "a number does not end");
    return 0;
}

// A string to be freed; NULL when something is wrong with it.
static char *get_string(struct reader *reader) {
    size_t size = reader_bounded(reader, COLUMN_REST, RECORDING_STRING_MAX, "a string is too long");
    struct reader_column *column = &reader->columns[COLUMN_REST];
    if (size > (size_t)(column->end - column->at) || (size && memchr(column->at, 0, size)))
        reader_wrong(reader, "a string is cut off");
    if (reader->problem)
        return NULL;
    char *string = base_allocate(size + 1);
    memcpy(string, column->at, size);
    string[size] = 0;
    column->at += size;
    return string;
}

// ---- what events refer to ----

static void read_process(struct reader *reader) {
    struct recording_process *process = &reader->info->process;
    process->pid = (int)reader_bounded(reader, COLUMN_REST, INT32_MAX, "the process has no number");
    process->started = reader_rest(reader);
    char *command = get_string(reader);
    if (command && process->command)
        reader_wrong(reader, "there are two processes");
    if (reader->problem) {
        free(command);
        return;
    }
    process->command = command;
}

static void read_mapping(struct reader *reader) {
    struct heap_mapping mapping = {.start = reader_rest(reader)};
    uint64_t size = reader_rest(reader);
    mapping.offset = reader_rest(reader);
    mapping.device = reader_rest(reader);
    mapping.inode = reader_rest(reader);
    mapping.size = reader_rest(reader);
    mapping.changed_seconds = reader_rest(reader);
    mapping.changed_nanoseconds =
        (uint32_t)reader_bounded(reader, COLUMN_REST, 999999999, "a file's time makes no sense");
    char *path = get_string(reader);
    if (size == 0 || size > UINT64_MAX - mapping.start)
        reader_wrong(reader, "a mapping is empty or too large");
    mapping.end = mapping.start + size;
    mapping.path = path;
    for (size_t i = 0; !reader->problem && i < reader->sink_count; i++)
        if (reader->sinks[i].mapping)
            reader->sinks[i].mapping(reader->sinks[i].context, &mapping);
    free(path);
}

// Stacks are numbered in the order in which they are first mentioned.
uint32_t reader_stack(struct reader *reader, int from) {
    uint32_t stack = (uint32_t)reader_bounded(reader, from, reader->stacks + 1ull,
                                              "a stack's number is out of order");
    if (stack > reader->stacks)
        reader->stacks = stack;
    return stack;
}

uint32_t reader_stack_near(struct reader *reader, int from, uint32_t *last) {
    if (reader->version < RECORDING_NEAR)
        return reader_stack(reader, from);
    uint64_t step = reader_number(reader, from);
    uint64_t stack = *last + (step >> 1 ^ -(step & 1));
    if (stack > reader->stacks + 1ull) {
        reader_wrong(reader, "a stack's number is out of order");
        return 0;
    }
    *last = (uint32_t)stack;
    if (stack > reader->stacks)
        reader->stacks = (uint32_t)stack;
    return *last;
}

static uint64_t get_pc(struct reader *reader) {
    uint64_t number =
        reader_bounded(reader, COLUMN_STACKS, reader->pc_count, "a place in a stack is unknown");
    if (number || reader->problem)
        return number ? reader->pcs[number - 1] : 0;
    uint64_t step = reader_number(reader, COLUMN_PCS);
    uint64_t last = reader->pc_count ? reader->pcs[reader->pc_count - 1] : 0;
    return *vector_push(reader->pcs, reader->pc_count) = last + (step >> 1 ^ -(step & 1));
}

static void read_stack(struct reader *reader) {
    uint64_t pcs[HEAP_FRAMES_MAX];
    uint32_t id = reader_stack_near(reader, COLUMN_STACKS, &reader->last_described);
    uint64_t count =
        reader_bounded(reader, COLUMN_STACKS, HEAP_FRAMES_MAX << 1 | 1, "a stack is too deep");
    bool truncated = count & 1;
    count >>= 1;
    uint64_t most = count < reader->last_count ? count : reader->last_count;
    uint64_t shared =
        reader_bounded(reader, COLUMN_STACKS, most, "a stack shares more than there is");
    if (!id)
        reader_wrong(reader, "a stack has no number");
    if (reader->problem)
        return;
    if (shared)
        memcpy(pcs + count - shared, reader->last_pcs + reader->last_count - shared,
               shared * sizeof *pcs);
    for (uint64_t i = count - shared; i-- > 0 && !reader->problem;)
        pcs[i] = get_pc(reader);
    if (reader->problem)
        return;
    if (count)
        memcpy(reader->last_pcs, pcs, count * sizeof *pcs);
    reader->last_count = count;
    for (size_t i = 0; i < reader->sink_count; i++)
        if (reader->sinks[i].stack)
            reader->sinks[i].stack(reader->sinks[i].context, id, pcs, count, truncated);
}

static void read_thread_starts(struct reader *reader) {
    uint32_t thread = (uint32_t)reader_rest(reader);
    int tid = (int)reader_bounded(reader, COLUMN_REST, INT32_MAX, "a thread has no number");
    if (thread != reader->threads + 1)
        reader_wrong(reader, "threads are out of order");
    if (reader->problem)
        return;
    reader->threads = thread;
    for (size_t i = 0; i < reader->sink_count; i++)
        if (reader->sinks[i].thread)
            reader->sinks[i].thread(reader->sinks[i].context, thread, tid);
}

static void read_name(struct reader *reader) {
    uint32_t thread =
        (uint32_t)reader_bounded(reader, COLUMN_REST, reader->threads, "a thread is unknown");
    char *name = get_string(reader);
    for (size_t i = 0; !reader->problem && i < reader->sink_count; i++)
        if (reader->sinks[i].name)
            reader->sinks[i].name(reader->sinks[i].context, thread, name);
    free(name);
}

static void read_state(struct reader *reader) {
    uint32_t thread =
        (uint32_t)reader_bounded(reader, COLUMN_REST, reader->threads, "a thread is unknown");
    enum heap_thread_state state = (enum heap_thread_state)reader_bounded(
        reader, COLUMN_REST, HEAP_THREAD_STATES - 1, "a thread's state makes no sense");
    for (size_t i = 0; !reader->problem && i < reader->sink_count; i++)
        if (reader->sinks[i].state)
            reader->sinks[i].state(reader->sinks[i].context, thread, state, reader->time);
}

static void read_time(struct reader *reader) {
    uint64_t units = reader_bounded(reader, COLUMN_REST, NUMBER_MAX / RECORDING_TIME_UNIT,
                                    "a time makes no sense");
    uint64_t time = reader->time + units * RECORDING_TIME_UNIT;
    if (time > NUMBER_MAX)
        reader_wrong(reader, "a time makes no sense");
    else
        reader->time = time;
    if (reader->info->end.time < reader->time)
        reader->info->end.time = reader->time;
    if (reader->take_time)
        reader->take_time(reader->take_context, reader->time);
}

static void read_sample(struct reader *reader) {
    struct heap_sample *sample = &reader->sample;
    uint64_t pages =
        reader_bounded(reader, COLUMN_REST, NUMBER_MAX / RECORDING_PAGE, "a sample makes no sense");
    sample->time = reader->time;
    sample->resident = pages * RECORDING_PAGE;
    sample->anonymous = HEAP_UNKNOWN;
    uint64_t anonymous = reader->version < RECORDING_SPLIT ? 0 : reader_rest(reader);
    if (anonymous > pages + 1)
        reader_wrong(reader, "a sample makes no sense");
    else if (anonymous)
        sample->anonymous = (anonymous - 1) * RECORDING_PAGE;
    sample->minor_faults += reader_rest(reader);
    sample->major_faults += reader_rest(reader);
    for (size_t i = 0; !reader->problem && i < reader->sink_count; i++)
        if (reader->sinks[i].sample)
            reader->sinks[i].sample(reader->sinks[i].context, sample);
}

static void read_mark(struct reader *reader) {
    struct heap_mark mark = {.thread = reader->thread, .time = reader->time};
    mark.kind = (enum heap_mark_kind)reader_bounded(reader, COLUMN_REST, HEAP_MARK_KINDS - 1,
                                                    "a mark makes no sense");
    char *name = get_string(reader);
    mark.name = name;
    if (!reader->problem && strlen(name) > HEAP_MARK_NAME)
        reader_wrong(reader, "a mark makes no sense");
    for (size_t i = 0; !reader->problem && i < reader->sink_count; i++)
        if (reader->sinks[i].mark)
            reader->sinks[i].mark(reader->sinks[i].context, &mark);
    free(name);
}

static void read_held(struct reader *reader) {
    uint32_t stack =
        (uint32_t)reader_bounded(reader, COLUMN_REST, reader->stacks, "a holder makes no sense");
    char *holder = get_string(reader);
    for (size_t i = 0; !reader->problem && i < reader->sink_count; i++)
        if (reader->sinks[i].held)
            reader->sinks[i].held(reader->sinks[i].context, stack, holder);
    free(holder);
}

static void read_code(struct reader *reader) {
    struct heap_code code = {.start = reader_rest(reader)};
    uint64_t size = reader_rest(reader);
    char *name = get_string(reader), *file = get_string(reader);
    code.line = (uint32_t)reader_bounded(reader, COLUMN_REST, UINT32_MAX, "a line makes no sense");
    if (size == 0 || size > UINT64_MAX - code.start)
        reader_wrong(reader, "a piece of code is empty or too large");
    code.end = code.start + size;
    code.name = name;
    code.file = file && *file ? file : NULL;
    for (size_t i = 0; !reader->problem && i < reader->sink_count; i++)
        if (reader->sinks[i].code)
            reader->sinks[i].code(reader->sinks[i].context, &code);
    free(name);
    free(file);
}

// ---- all records ----

static void read_end(struct reader *reader) {
    struct recording_end *end = &reader->info->end;
    uint64_t time = reader_bounded(reader, COLUMN_REST, NUMBER_MAX, "a time makes no sense");
    end->missed = reader_rest(reader);
    end->unknown = reader_rest(reader);
    if (reader->turn || reader->columns[COLUMN_TURNS].at != reader->columns[COLUMN_TURNS].end)
        reader_wrong(reader, "there is something after the end");
    if (reader->problem)
        return;
    end->time = time;
    reader->info->is_complete = true;
}

static void read_record(struct reader *reader, uint8_t kind) {
    switch (kind) {
    case RECORDING_PROCESS:
        return read_process(reader);
    case RECORDING_MAPPING:
        return read_mapping(reader);
    case RECORDING_STACK:
        return read_stack(reader);
    case RECORDING_THREAD_STARTS:
        return read_thread_starts(reader);
    case RECORDING_NAME:
        return read_name(reader);
    case RECORDING_THREAD_STATE:
        return read_state(reader);
    case RECORDING_TIME:
        return read_time(reader);
    case RECORDING_SAMPLE:
        return read_sample(reader);
    case RECORDING_MARK:
        return read_mark(reader);
    case RECORDING_HELD:
        return read_held(reader);
    case RECORDING_CODE:
        return read_code(reader);
    case RECORDING_ALLOCATED:
        return reader_allocated(reader);
    case RECORDING_FREED:
        return reader_freed(reader, READER_STEP, 0);
    case RECORDING_FREED_GROUP:
        return reader_freed(reader, READER_GROUP, 0);
    case RECORDING_FREED_FOREIGN:
        return reader_freed(reader, READER_FOREIGN, 0);
    case RECORDING_RESIZED:
        return reader_resized(reader, READER_STEP, 0);
    case RECORDING_RESIZED_GROUP:
        return reader_resized(reader, READER_GROUP, 0);
    case RECORDING_RESIZED_FOREIGN:
        return reader_resized(reader, READER_FOREIGN, 0);
    case RECORDING_MAPPED:
        return reader_mapped(reader);
    case RECORDING_UNMAPPED:
        return reader_unmapped(reader);
    case RECORDING_STEP_BEGINS:
        return reader_step_begins(reader);
    case RECORDING_STEP_ENDS:
        return reader_step_ends(reader);
    case RECORDING_MERGED:
        return reader_merged(reader);
    case RECORDING_CORRECTED:
        return reader_corrected(reader);
    case RECORDING_END:
        return read_end(reader);
    }
    if (kind >= RECORDING_FREED_RECENT && kind < RECORDING_FREED_RECENT + RECORDING_RECENT)
        reader_freed(reader, READER_RECENT, kind - RECORDING_FREED_RECENT);
    else if (kind >= RECORDING_RESIZED_RECENT && kind < RECORDING_RESIZED_RECENT + RECORDING_RECENT)
        reader_resized(reader, READER_RECENT, kind - RECORDING_RESIZED_RECENT);
    else
        reader_wrong(reader, "there is a record of an unknown kind");
}

// What kinds of events are counted as when they are passed over: allocations in the lower half,
// releases in the upper one, resizes not at all. Everything else is to be read.
#define SKIM_READ      UINT64_MAX
#define SKIM_ALLOCATED 1ull
#define SKIM_FREED     (1ull << 32)

static uint64_t skimmed_as(unsigned kind) {
    bool is_recent = kind >= RECORDING_FREED_RECENT && kind <= RECORDING_RESIZED_FOREIGN;
    if (kind == RECORDING_ALLOCATED)
        return SKIM_ALLOCATED;
    if (kind == RECORDING_FREED || kind == RECORDING_FREED_GROUP ||
        (is_recent && kind < RECORDING_RESIZED_RECENT) || kind == RECORDING_FREED_FOREIGN)
        return SKIM_FREED;
    return kind == RECORDING_RESIZED || kind == RECORDING_RESIZED_GROUP || is_recent ? 0
                                                                                     : SKIM_READ;
}

// Passes over the events that come next in a turn.
static void skim_events(struct reader *reader, struct reader_column *kinds) {
    const uint8_t *at = kinds->at, *end = at + reader->turn;
    uint64_t sum = 0;
    for (; at < end && reader->skimmed[*at] != SKIM_READ; at++)
        sum += reader->skimmed[*at];
    uint64_t count = (uint64_t)(at - kinds->at);
    uint64_t allocated = (uint32_t)sum, freed = sum >> 32;
    reader->info->allocated += allocated;
    reader->info->freed += freed;
    reader->info->resized += count - allocated - freed;
    reader->turn -= count;
    kinds->at = at;
}

// The records of a thread's turn.
static void read_turn(struct reader *reader) {
    reader->thread =
        (uint32_t)reader_bounded(reader, COLUMN_TURNS, reader->threads, "a thread is unknown");
    reader->turn = reader_number(reader, COLUMN_TURNS);
    reader->lane = COLUMN_LANES + (int)(reader->thread % RECORDING_LANES) * SORT_COUNT;
    struct reader_column *kinds = &reader->columns[reader->lane + SORT_KINDS];
    if (reader->turn > (uint64_t)(kinds->end - kinds->at))
        reader_wrong(reader, "a turn is longer than there are records");
    while (reader->turn && kinds->at < kinds->end) {
        if (reader->index)
            skim_events(reader, kinds);
        if (!reader->turn)
            return;
        reader->turn--;
        uint8_t kind = *kinds->at++;
        if (reader->index && kind >= RECORDING_STEP_BEGINS && kind <= RECORDING_CORRECTED)
            reader_wrong(reader, "merged detail has no index");
        else
            read_record(reader, kind);
    }
}

// Columns that belong to events only are left as they are when those are passed over.
static bool is_skimmed(const struct reader *reader, int column) {
    return reader->index &&
           (column == COLUMN_NEW ||
            (column >= COLUMN_LANES && (column - COLUMN_LANES) % SORT_COUNT != SORT_KINDS));
}

static void read_records(struct reader *reader) {
    const struct reader_column *turns = &reader->columns[COLUMN_TURNS];
    reader->time = 0;
    while (turns->at < turns->end)
        read_turn(reader);
    for (int i = 0; i < COLUMN_COUNT; i++)
        if (reader->columns[i].at != reader->columns[i].end && !is_skimmed(reader, i))
            reader_wrong(reader, "records and numbers do not match");
}

// ---- chunks ----

struct buffers {
    uint8_t *packed, *plain;
    ZSTD_DCtx *unpacker;
};

// The last column serves to read the lengths of all of them.
static bool split_columns(struct reader *reader, const uint8_t *plain, size_t size) {
    struct reader_column all = {plain, plain + size};
    for (int i = 0; i < COLUMN_COUNT; i++) {
        reader->columns[COLUMN_COUNT - 1] = all;
        uint64_t length = reader_number(reader, COLUMN_COUNT - 1);
        all.at = reader->columns[COLUMN_COUNT - 1].at;
        if (reader->problem || length > (uint64_t)(all.end - all.at))
            return false;
        reader->columns[i] = (struct reader_column){all.at, all.at + length};
        all.at += length;
    }
    for (int i = 0; i < RECORDING_LANES; i++) {
        const struct reader_column *steps =
            &reader->columns[COLUMN_LANES + i * SORT_COUNT + SORT_STEPS];
        reader->ahead[i] = (struct reader_ahead){.at = steps->at, .end = steps->end};
    }
    return all.at == all.end;
}

// Reads the next chunk and its records. False at the end, also where the file was cut off.
static bool read_chunk(struct reader *reader, struct buffers *buffers) {
    struct recording_chunk chunk;
    if (read_bytes(reader, &chunk, sizeof chunk) < sizeof chunk)
        return false;
    if (reader->info->is_complete && recording_index_is_one(chunk.magic))
        return false;
    if (reader->info->is_complete || chunk.magic != RECORDING_CHUNK_MAGIC ||
        chunk.plain > RECORDING_CHUNK_MAX ||
        chunk.packed > ZSTD_COMPRESSBOUND(RECORDING_CHUNK_MAX)) {
        reader_wrong(reader, "this is not a chunk");
        return false;
    }
    if (read_bytes(reader, buffers->packed, chunk.packed) < chunk.packed)
        return false;
    size_t plain = ZSTD_decompressDCtx(buffers->unpacker, buffers->plain, RECORDING_CHUNK_MAX,
                                       buffers->packed, chunk.packed);
    if (ZSTD_isError(plain) || plain != chunk.plain) {
        reader_wrong(reader, "a chunk cannot be unpacked");
        return false;
    }
    if (!split_columns(reader, buffers->plain, plain)) {
        reader_wrong(reader, "the columns of a chunk are larger than it");
        return false;
    }
    read_records(reader);
    return !reader->problem;
}

static bool read_header(struct reader *reader) {
    struct recording_header header;
    struct text message = {0};
    size_t size = read_bytes(reader, &header, sizeof header);
    if (!size)
        text_string(&message, "it is not a recording: it is empty");
    else if (size < sizeof header ||
             memcmp(header.magic, RECORDING_MAGIC, sizeof header.magic) != 0)
        text_string(&message, "it is not a recording");
    else if (header.version < RECORDING_OLDEST || header.version > RECORDING_VERSION)
        text_format(&message, "it is of version %u, and this Quern reads versions %u to %u",
                    header.version, RECORDING_OLDEST, RECORDING_VERSION);
    if (!message.size) {
        reader->version = header.version;
        return true;
    }
    reader->info->damage = text_take(&message);
    return false;
}

static void tell_left(const struct reader *reader) {
    for (size_t i = 0; i < reader->sink_count; i++)
        for (uint32_t at = 1; reader->sinks[i].left && at <= reader->held_count; at++)
            if (reader->held[at].group)
                reader->sinks[i].left(reader->sinks[i].context, &reader->held[at].block,
                                      reader->info->end.time);
}

bool recording_is_being_written(int fd) {
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_WRLCK;
}

// The size is 0 where it is not known.
static void begin_progress(int fd) {
    struct stat status;
    progress_stage("reading the recording", fstat(fd, &status) == 0 ? (uint64_t)status.st_size : 0);
}

bool reader_read(struct reader *reader) {
    struct recording_info *info = reader->info;
    *info = (struct recording_info){0};
    if (!read_header(reader))
        return false;
    struct buffers buffers = {
        .packed = base_allocate(ZSTD_COMPRESSBOUND(RECORDING_CHUNK_MAX)),
        .plain = base_allocate(RECORDING_CHUNK_MAX),
        .unpacker = ZSTD_createDCtx(),
    };
    uint64_t start = reader->position;
    begin_progress(reader->fd);
    while (buffers.unpacker && read_chunk(reader, &buffers) && progress_at(reader->position))
        start = reader->position;
    bool is_cancelled = progress_is_cancelled();
    progress_end();
    if (is_cancelled) {
        free(info->damage);
        info->damage = base_copy(PROGRESS_CANCELLED);
    } else if (reader->problem) {
        struct text message = {0};
        text_format(&message, "the chunk at byte %llu is damaged: %s", (unsigned long long)start,
                    reader->problem);
        info->damage = text_take(&message);
    }
    info->is_live = !info->is_complete && !info->damage && recording_is_being_written(reader->fd);
    ZSTD_freeDCtx(buffers.unpacker);
    free(buffers.packed);
    free(buffers.plain);
    return !is_cancelled;
}

void reader_close(struct reader *reader) {
    classes_free(&reader->classes);
    free(reader->held);
    free(reader->recent);
    free(reader->pcs);
    free(reader->held_regions);
}

static void tell_end(const struct reader *reader) {
    for (size_t i = 0; i < reader->sink_count; i++)
        if (reader->sinks[i].end)
            reader->sinks[i].end(reader->sinks[i].context, reader->info->end.time);
}

bool recording_follow(int fd, const struct heap_sink *sinks, size_t count,
                      struct recording_info *info, const struct recording_wait *wait) {
    struct reader reader = {
        .fd = fd, .sinks = sinks, .sink_count = count, .info = info, .wait = wait};
    bool is_one = reader_read(&reader);
    if (is_one) {
        tell_left(&reader);
        tell_end(&reader);
    }
    reader_close(&reader);
    return is_one;
}

bool recording_read(int fd, const struct heap_sink *sinks, size_t count,
                    struct recording_info *info) {
    return recording_follow(fd, sinks, count, info, NULL);
}

// Whether what was passed over is what the index is of.
static bool agrees(const struct recording_index *index, const struct recording_info *info) {
    return info->is_complete && !info->damage && info->allocated == index->total.allocated &&
           info->freed == index->freed && info->resized == index->resized;
}

// Passes over the events, by the index.
static bool skim(struct reader *reader) {
    // Which stacks are mentioned is not known without events: any that the index knows may be.
    reader->stacks = reader->index->site_count - 1;
    for (unsigned kind = 0; kind < 256; kind++)
        reader->skimmed[kind] = skimmed_as(kind);
    bool fine = reader_read(reader) && agrees(reader->index, reader->info) &&
                reader->stacks == reader->index->site_count - 1;
    if (fine)
        tell_end(reader);
    reader_close(reader);
    return fine;
}

bool recording_read_sums(int fd, const struct heap_sink *sinks, size_t count,
                         struct summary *summary, struct timeline *timeline,
                         struct recording_info *info) {
    *info = (struct recording_info){0};
    off_t place = lseek(fd, 0, SEEK_CUR);
    struct recording_index *index = place >= 0 ? recording_index_read(fd) : NULL;
    if (!index)
        return false;
    struct reader reader = {
        .fd = fd, .sinks = sinks, .sink_count = count, .info = info, .index = index};
    bool fine = skim(&reader) && recording_index_apply(index, summary, timeline);
    recording_index_free(index);
    if (!fine)
        lseek(fd, place, SEEK_SET);
    return fine;
}

bool recording_skim(int fd, const struct heap_sink *sinks, size_t count,
                    struct recording_info *info) {
    *info = (struct recording_info){0};
    struct recording_index *index = recording_index_read(fd);
    if (!index)
        return false;
    struct reader reader = {
        .fd = fd, .sinks = sinks, .sink_count = count, .info = info, .index = index};
    bool fine = skim(&reader);
    recording_index_free(index);
    return fine;
}

void recording_info_free(struct recording_info *info) {
    free((char *)info->process.command);
    free(info->damage);
}
