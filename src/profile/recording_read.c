#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "base/text.h"
#include "profile/blocks.h"
#include "profile/recording.h"

// A time or count that no run reaches: keeps sums from overflowing.
#define NUMBER_MAX (1ull << 60)

struct reader {
    int fd;
    uint64_t position; // in the file, for messages
    const struct heap_sink *sinks;
    size_t sink_count;
    struct recording_info *info;
    struct blocks blocks;
    const uint8_t *at, *end; // records of the chunk in hand
    const char *problem;     // what is wrong with them; NULL: nothing
    uint64_t time;
    uint32_t thread, threads, stacks;
};

// ---- bytes ----

// Reads so many bytes; how many there were.
static size_t read_bytes(struct reader *reader, void *bytes, size_t size) {
    size_t done = 0;
    while (done < size) {
        ssize_t got = read(reader->fd, (char *)bytes + done, size - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        done += (size_t)got;
    }
    reader->position += done;
    return done;
}

static void wrong(struct reader *reader, const char *what) {
    if (!reader->problem)
        reader->problem = what;
    reader->at = reader->end;
}

static uint64_t get_number(struct reader *reader) {
    uint64_t number = 0;
    for (unsigned shift = 0; reader->at < reader->end && shift < 64; shift += 7) {
        uint8_t byte = *reader->at++;
        number |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return number;
    }
    wrong(reader, "a number does not end");
    return 0;
}

static uint64_t get_bounded(struct reader *reader, uint64_t most, const char *what) {
    uint64_t number = get_number(reader);
    if (number <= most)
        return number;
    wrong(reader, what);
    return 0;
}

// A string to be freed; NULL when something is wrong with it.
static char *get_string(struct reader *reader) {
    size_t size = get_bounded(reader, RECORDING_STRING_MAX, "a string is too long");
    if (size > (size_t)(reader->end - reader->at) || memchr(reader->at, 0, size))
        wrong(reader, "a string is cut off");
    if (reader->problem)
        return NULL;
    char *string = base_allocate(size + 1);
    memcpy(string, reader->at, size);
    string[size] = 0;
    reader->at += size;
    return string;
}

// ---- records ----

static void read_process(struct reader *reader) {
    struct recording_process *process = &reader->info->process;
    process->pid = (int)get_bounded(reader, INT32_MAX, "the process has no number");
    process->started = get_number(reader);
    char *command = get_string(reader);
    if (command && process->command)
        wrong(reader, "there are two processes");
    if (reader->problem) {
        free(command);
        return;
    }
    process->command = command;
}

static void read_mapping(struct reader *reader) {
    struct heap_mapping mapping = {.start = get_number(reader)};
    uint64_t size = get_number(reader);
    mapping.offset = get_number(reader);
    mapping.device = get_number(reader);
    mapping.inode = get_number(reader);
    mapping.size = get_number(reader);
    mapping.changed_seconds = get_number(reader);
    mapping.changed_nanoseconds =
        (uint32_t)get_bounded(reader, 999999999, "a file's time makes no sense");
    char *path = get_string(reader);
    if (size == 0 || size > UINT64_MAX - mapping.start)
        wrong(reader, "a mapping is empty or too large");
    mapping.end = mapping.start + size;
    mapping.path = path;
    for (size_t i = 0; !reader->problem && i < reader->sink_count; i++)
        if (reader->sinks[i].mapping)
            reader->sinks[i].mapping(reader->sinks[i].context, &mapping);
    free(path);
}

// Stacks are numbered in the order in which they are first mentioned.
static uint32_t get_stack(struct reader *reader) {
    uint32_t stack =
        (uint32_t)get_bounded(reader, reader->stacks + 1ull, "a stack's number is out of order");
    if (stack > reader->stacks)
        reader->stacks = stack;
    return stack;
}

static void read_stack(struct reader *reader) {
    uint64_t pcs[HEAP_FRAMES_MAX];
    uint32_t id = get_stack(reader);
    uint64_t count = get_bounded(reader, HEAP_FRAMES_MAX << 1 | 1, "a stack is too deep");
    uint64_t last = 0;
    for (uint64_t i = 0; i < count >> 1 && !reader->problem; i++) {
        uint64_t step = get_number(reader);
        pcs[i] = last += step >> 1 ^ -(step & 1);
    }
    if (!id)
        wrong(reader, "a stack has no number");
    for (size_t i = 0; !reader->problem && i < reader->sink_count; i++)
        if (reader->sinks[i].stack)
            reader->sinks[i].stack(reader->sinks[i].context, id, pcs, count >> 1, count & 1);
}

static void read_thread_starts(struct reader *reader) {
    uint32_t thread = (uint32_t)get_number(reader);
    int tid = (int)get_bounded(reader, INT32_MAX, "a thread has no number");
    if (thread != reader->threads + 1)
        wrong(reader, "threads are out of order");
    if (reader->problem)
        return;
    reader->threads = thread;
    for (size_t i = 0; i < reader->sink_count; i++)
        if (reader->sinks[i].thread)
            reader->sinks[i].thread(reader->sinks[i].context, thread, tid);
}

static void tell(struct reader *reader, const struct heap_event *event) {
    for (size_t i = 0; i < reader->sink_count; i++)
        if (reader->sinks[i].event)
            reader->sinks[i].event(reader->sinks[i].context, event);
}

static void read_allocated(struct reader *reader) {
    uint32_t stack = get_stack(reader);
    uint64_t size = get_bounded(reader, HEAP_SIZE_MAX, "a block is too large");
    if (reader->problem)
        return;
    uint64_t number = ++reader->info->allocated;
    struct heap_event event = {
        .kind = HEAP_ALLOCATED, .thread = reader->thread, .time = reader->time};
    event.block = blocks_insert(&reader->blocks, number);
    *event.block = (struct heap_block){
        .number = number,
        .size = size,
        .capacity = heap_rounded(size),
        .time = reader->time,
        .stack = stack,
        .thread = reader->thread,
    };
    tell(reader, &event);
}

// The number of the block so many allocations ago.
static uint64_t get_block(struct reader *reader) {
    uint64_t age = get_number(reader);
    if (age >= reader->info->allocated) {
        wrong(reader, "a block is used that was never allocated");
        return 0;
    }
    return reader->info->allocated - age;
}

static void read_freed(struct reader *reader) {
    struct heap_event event = {.kind = HEAP_FREED, .thread = reader->thread, .time = reader->time};
    uint64_t number = get_block(reader);
    if (!reader->problem && !blocks_remove(&reader->blocks, number, &event.before))
        wrong(reader, "a block is freed twice");
    if (reader->problem)
        return;
    reader->info->freed++;
    tell(reader, &event);
}

static void read_resized(struct reader *reader) {
    struct heap_event event = {
        .kind = HEAP_RESIZED, .thread = reader->thread, .time = reader->time};
    uint64_t number = get_block(reader);
    uint32_t stack = get_stack(reader);
    uint64_t size = get_bounded(reader, HEAP_SIZE_MAX, "a block is too large");
    event.block = reader->problem ? NULL : blocks_find(&reader->blocks, number);
    if (!reader->problem && !event.block)
        wrong(reader, "a block is resized after its end");
    if (reader->problem)
        return;
    event.before = *event.block;
    event.block->size = size;
    event.block->stack = stack;
    if (size > event.block->capacity)
        event.block->capacity = heap_rounded(size);
    reader->info->resized++;
    tell(reader, &event);
}

static void read_time(struct reader *reader) {
    uint64_t units = get_bounded(reader, NUMBER_MAX / RECORDING_TIME_UNIT, "a time makes no sense");
    uint64_t time = reader->time + units * RECORDING_TIME_UNIT;
    if (time > NUMBER_MAX)
        wrong(reader, "a time makes no sense");
    else
        reader->time = time;
    if (reader->info->end.time < reader->time)
        reader->info->end.time = reader->time;
}

static void read_end(struct reader *reader) {
    struct recording_end *end = &reader->info->end;
    uint64_t time = get_bounded(reader, NUMBER_MAX, "a time makes no sense");
    end->missed = get_number(reader);
    end->unknown = get_number(reader);
    if (reader->at != reader->end)
        wrong(reader, "there is something after the end");
    if (reader->problem)
        return;
    end->time = time;
    reader->info->is_complete = true;
}

static void read_records(struct reader *reader) {
    reader->time = 0;
    reader->thread = 0;
    while (reader->at < reader->end) {
        switch (*reader->at++) {
        case RECORDING_PROCESS:
            read_process(reader);
            break;
        case RECORDING_MAPPING:
            read_mapping(reader);
            break;
        case RECORDING_STACK:
            read_stack(reader);
            break;
        case RECORDING_THREAD_STARTS:
            read_thread_starts(reader);
            break;
        case RECORDING_THREAD:
            reader->thread = (uint32_t)get_bounded(reader, reader->threads, "a thread is unknown");
            break;
        case RECORDING_TIME:
            read_time(reader);
            break;
        case RECORDING_ALLOCATED:
            read_allocated(reader);
            break;
        case RECORDING_FREED:
            read_freed(reader);
            break;
        case RECORDING_RESIZED:
            read_resized(reader);
            break;
        case RECORDING_END:
            read_end(reader);
            break;
        default:
            wrong(reader, "there is a record of an unknown kind");
        }
    }
}

// ---- chunks ----

struct buffers {
    uint8_t *packed, *plain;
    ZSTD_DCtx *unpacker;
};

// Reads the next chunk and its records. False at the end, also where the file was cut off.
static bool read_chunk(struct reader *reader, struct buffers *buffers) {
    struct recording_chunk chunk;
    if (read_bytes(reader, &chunk, sizeof chunk) < sizeof chunk)
        return false;
    if (reader->info->is_complete || chunk.magic != RECORDING_CHUNK_MAGIC ||
        chunk.plain > RECORDING_CHUNK_MAX ||
        chunk.packed > ZSTD_COMPRESSBOUND(RECORDING_CHUNK_MAX)) {
        wrong(reader, "this is not a chunk");
        return false;
    }
    if (read_bytes(reader, buffers->packed, chunk.packed) < chunk.packed)
        return false;
    size_t plain = ZSTD_decompressDCtx(buffers->unpacker, buffers->plain, RECORDING_CHUNK_MAX,
                                       buffers->packed, chunk.packed);
    if (ZSTD_isError(plain) || plain != chunk.plain) {
        wrong(reader, "a chunk cannot be unpacked");
        return false;
    }
    reader->at = buffers->plain;
    reader->end = buffers->plain + plain;
    read_records(reader);
    return !reader->problem;
}

static bool read_header(struct reader *reader) {
    struct recording_header header;
    struct text message = {0};
    if (read_bytes(reader, &header, sizeof header) < sizeof header ||
        memcmp(header.magic, RECORDING_MAGIC, sizeof header.magic) != 0)
        text_string(&message, "it is not a recording");
    else if (header.version != RECORDING_VERSION)
        text_format(&message, "it is of version %u, and this Quern reads version %u",
                    header.version, RECORDING_VERSION);
    if (!message.size)
        return true;
    reader->info->damage = text_take(&message);
    return false;
}

bool recording_read(int fd, const struct heap_sink *sinks, size_t count,
                    struct recording_info *info) {
    struct reader reader = {.fd = fd, .sinks = sinks, .sink_count = count, .info = info};
    *info = (struct recording_info){0};
    if (!read_header(&reader))
        return false;
    struct buffers buffers = {
        .packed = base_allocate(ZSTD_COMPRESSBOUND(RECORDING_CHUNK_MAX)),
        .plain = base_allocate(RECORDING_CHUNK_MAX),
        .unpacker = ZSTD_createDCtx(),
    };
    uint64_t start = reader.position;
    while (buffers.unpacker && read_chunk(&reader, &buffers))
        start = reader.position;
    if (reader.problem) {
        struct text message = {0};
        text_format(&message, "the chunk at byte %llu is damaged: %s", (unsigned long long)start,
                    reader.problem);
        info->damage = text_take(&message);
    }
    for (size_t i = 0; i < count; i++)
        if (sinks[i].end)
            sinks[i].end(sinks[i].context, info->end.time);
    ZSTD_freeDCtx(buffers.unpacker);
    free(buffers.packed);
    free(buffers.plain);
    blocks_free(&reader.blocks);
    return true;
}

void recording_info_free(struct recording_info *info) {
    free((char *)info->process.command);
    free(info->damage);
}
