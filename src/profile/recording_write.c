#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "base/fd.h"
#include "base/text.h"
#include "profile/recording.h"

// Records collected before a chunk is written.
#define CHUNK_SIZE (1u << 20)
// Room for the largest record: a stack, or a string.
#define RECORD_MAX (RECORDING_STRING_MAX + 256)
#define LEVEL      1
#define TIME_STEP  10 // time units: events closer together share a time
#define WAIT       1000000000

struct recording_writer {
    int fd;
    int error;
    uint64_t size;
    ZSTD_CCtx *packer;
    uint8_t *plain;
    size_t used;
    uint8_t *packed; // a chunk: its header, then the frame
    size_t packed_room;
    uint64_t waiting_since; // 0: unknown
    uint64_t time;          // as last written, in time units
    uint32_t thread;
    uint64_t blocks; // allocations so far
};

// ---- chunks ----

static void write_bytes(struct recording_writer *writer, const void *bytes, size_t size) {
    if (writer->error)
        return;
    writer->error = fd_write_all(writer->fd, bytes, size);
    writer->size += size;
}

static void flush(struct recording_writer *writer) {
    if (!writer->used)
        return;
    struct recording_chunk chunk = {.magic = RECORDING_CHUNK_MAGIC,
                                    .plain = (uint32_t)writer->used};
    size_t packed = ZSTD_compress2(writer->packer, writer->packed + sizeof chunk,
                                   writer->packed_room - sizeof chunk, writer->plain, writer->used);
    if (ZSTD_isError(packed)) {
        writer->error = writer->error ? writer->error : ENOMEM;
        return;
    }
    chunk.packed = (uint32_t)packed;
    memcpy(writer->packed, &chunk, sizeof chunk);
    // In one piece: a chunk is there or it is not, unless the machine dies in between.
    write_bytes(writer, writer->packed, sizeof chunk + packed);
    writer->used = 0;
    writer->waiting_since = 0;
    // A chunk can be read by itself: time and thread are told anew.
    writer->time = 0;
    writer->thread = 0;
}

// ---- records ----

static void put_byte(struct recording_writer *writer, uint8_t byte) {
    writer->plain[writer->used++] = byte;
}

// Seven bits a byte, lowest first; the top bit says that more follow.
static void put_number(struct recording_writer *writer, uint64_t number) {
    for (; number >= 128; number >>= 7)
        put_byte(writer, (uint8_t)(number | 128));
    put_byte(writer, (uint8_t)number);
}

static void put_string(struct recording_writer *writer, const char *string) {
    size_t size = strlen(string);
    size = size < RECORDING_STRING_MAX ? size : RECORDING_STRING_MAX;
    put_number(writer, size);
    memcpy(writer->plain + writer->used, string, size);
    writer->used += size;
}

static void begin(struct recording_writer *writer, enum recording_kind kind) {
    if (writer->used > CHUNK_SIZE)
        flush(writer);
    put_byte(writer, (uint8_t)kind);
}

static void place(struct recording_writer *writer, uint64_t time, uint32_t thread) {
    if (writer->used > CHUNK_SIZE)
        flush(writer);
    uint64_t units = time / RECORDING_TIME_UNIT;
    if (units >= writer->time + TIME_STEP || (!writer->time && units)) {
        put_byte(writer, RECORDING_TIME);
        put_number(writer, units - writer->time);
        writer->time = units;
    }
    if (thread != writer->thread) {
        put_byte(writer, RECORDING_THREAD);
        put_number(writer, thread);
        writer->thread = thread;
    }
}

static void on_event(void *context, const struct heap_event *event) {
    struct recording_writer *writer = context;
    place(writer, event->time, event->thread);
    switch (event->kind) {
    case HEAP_ALLOCATED:
        put_byte(writer, RECORDING_ALLOCATED);
        put_number(writer, event->block->stack);
        put_number(writer, event->block->size);
        writer->blocks = event->block->number;
        break;
    case HEAP_FREED:
        put_byte(writer, RECORDING_FREED);
        put_number(writer, writer->blocks - event->before.number);
        break;
    case HEAP_RESIZED:
        put_byte(writer, RECORDING_RESIZED);
        put_number(writer, writer->blocks - event->before.number);
        put_number(writer, event->block->stack);
        put_number(writer, event->block->size);
        break;
    }
}

static void on_stack(void *context, uint32_t id, const uint64_t *pcs, size_t count,
                     bool truncated) {
    struct recording_writer *writer = context;
    begin(writer, RECORDING_STACK);
    put_number(writer, id);
    put_number(writer, count << 1 | truncated);
    uint64_t last = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t step = (int64_t)(pcs[i] - last);
        put_number(writer, (uint64_t)step << 1 ^ (uint64_t)(step >> 63));
        last = pcs[i];
    }
}

static void on_thread(void *context, uint32_t thread, int tid) {
    struct recording_writer *writer = context;
    begin(writer, RECORDING_THREAD_STARTS);
    put_number(writer, thread);
    put_number(writer, (uint32_t)tid);
}

static void on_mapping(void *context, const struct heap_mapping *mapping) {
    struct recording_writer *writer = context;
    begin(writer, RECORDING_MAPPING);
    put_number(writer, mapping->start);
    put_number(writer, mapping->end - mapping->start);
    put_number(writer, mapping->offset);
    put_number(writer, mapping->device);
    put_number(writer, mapping->inode);
    put_number(writer, mapping->size);
    put_number(writer, mapping->changed_seconds);
    put_number(writer, mapping->changed_nanoseconds);
    put_string(writer, mapping->path);
}

// ---- the whole ----

struct recording_writer *recording_create(int fd, const struct recording_process *process) {
    struct recording_writer *writer = base_allocate(sizeof *writer);
    *writer = (struct recording_writer){.fd = fd, .packer = ZSTD_createCCtx()};
    writer->plain = base_allocate(CHUNK_SIZE + 2 * RECORD_MAX);
    writer->packed_room =
        sizeof(struct recording_chunk) + ZSTD_compressBound(CHUNK_SIZE + 2 * RECORD_MAX);
    writer->packed = base_allocate(writer->packed_room);
    if (!writer->packer) {
        writer->error = ENOMEM;
    } else {
        ZSTD_CCtx_setParameter(writer->packer, ZSTD_c_compressionLevel, LEVEL);
        ZSTD_CCtx_setParameter(writer->packer, ZSTD_c_checksumFlag, 1);
    }
    struct recording_header header = {.magic = RECORDING_MAGIC, .version = RECORDING_VERSION};
    write_bytes(writer, &header, sizeof header);
    begin(writer, RECORDING_PROCESS);
    put_number(writer, (uint32_t)process->pid);
    put_number(writer, process->started);
    put_string(writer, process->command);
    if (!writer->error)
        flush(writer);
    return writer;
}

void recording_sink(struct recording_writer *writer, struct heap_sink *sink) {
    *sink = (struct heap_sink){
        .context = writer,
        .event = on_event,
        .stack = on_stack,
        .thread = on_thread,
        .mapping = on_mapping,
    };
}

void recording_tick(struct recording_writer *writer, uint64_t now) {
    if (!writer->used || writer->error)
        return;
    if (!writer->waiting_since)
        writer->waiting_since = now;
    else if (now - writer->waiting_since > WAIT)
        flush(writer);
}

int recording_close(struct recording_writer *writer, const struct recording_end *end) {
    begin(writer, RECORDING_END);
    put_number(writer, end->time);
    put_number(writer, end->missed);
    put_number(writer, end->unknown);
    if (!writer->error)
        flush(writer);
    int error = writer->error;
    if (close(writer->fd) < 0 && !error)
        error = errno;
    ZSTD_freeCCtx(writer->packer);
    free(writer->plain);
    free(writer->packed);
    free(writer);
    return error;
}

uint64_t recording_size(const struct recording_writer *writer) {
    return writer->size;
}
