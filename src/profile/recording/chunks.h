// The columns and chunks of a recording that is written: recording/write.c puts numbers into
// columns, recording/chunks.c packs these and writes them. Nobody else includes this.
#ifndef QUERN_PROFILE_RECORDING_CHUNKS_H
#define QUERN_PROFILE_RECORDING_CHUNKS_H

#include <string.h>

#include "profile/recording/writer.h"

// Bytes of columns before a chunk is written.
#define CHUNK_SIZE (1u << 20)
// The writer tests whether a chunk is full after LOOK_EVERY events of at most EVENT_MAX bytes.
#define LOOK_EVERY 1024
#define EVENT_MAX  64

// Seven bits a byte, lowest first; the top bit says that more follow.
static inline size_t write_number(uint8_t *to, uint64_t number) {
    size_t size = 0;
    for (; number >= 128; number >>= 7)
        to[size++] = (uint8_t)(number | 128);
    to[size++] = (uint8_t)number;
    return size;
}

static inline void put_number(struct recording_writer *writer, int column, uint64_t number) {
    struct column *to = &writer->columns[column];
    to->used += write_number(to->bytes + to->used, number);
}

static inline void put_in_lane(struct recording_writer *writer, enum recording_sort sort,
                               uint64_t number) {
    put_number(writer, writer->lane + (int)sort, number);
}

static inline void put_kind(struct recording_writer *writer, unsigned kind) {
    struct column *to = &writer->columns[writer->lane + SORT_KINDS];
    to->bytes[to->used++] = (uint8_t)kind;
    writer->turn++;
}

// A stack, as the difference to the one before in this column.
static inline void put_near(struct recording_writer *writer, int column, uint32_t *last,
                            uint32_t stack) {
    int64_t step = (int64_t)stack - *last;
    put_number(writer, column, (uint64_t)step << 1 ^ (uint64_t)(step >> 63));
    *last = stack;
}

static inline void put_rest(struct recording_writer *writer, uint64_t number) {
    put_number(writer, COLUMN_REST, number);
}

static inline void put_string(struct recording_writer *writer, const char *string) {
    struct column *to = &writer->columns[COLUMN_REST];
    size_t size = strlen(string);
    size = size < RECORDING_STRING_MAX ? size : RECORDING_STRING_MAX;
    put_rest(writer, size);
    memcpy(to->bytes + to->used, string, size);
    to->used += size;
}

static inline size_t writer_used(const struct recording_writer *writer) {
    size_t size = 0;
    for (int i = 0; i < COLUMN_COUNT; i++)
        size += writer->columns[i].used;
    return size;
}

void writer_open_buffers(struct recording_writer *writer);
// Writes bytes to the file as they are.
void writer_write(struct recording_writer *writer, const void *bytes, size_t size);
// Ends the turn of the current thread.
void writer_end_turn(struct recording_writer *writer);
// Whether there is nothing to write.
bool writer_is_empty(const struct recording_writer *writer);
// Call this before the time advances or is written anew: notes what was alive up to now.
void writer_note_time(struct recording_writer *writer);
// Writes all pending records as a chunk.
void writer_flush(struct recording_writer *writer);

#endif
