#include "profile/recording/chunks.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"

#define RECORD_MAX  (RECORDING_STRING_MAX + 256) // the largest record: a stack, or a string
#define COLUMN_ROOM (CHUNK_SIZE + LOOK_EVERY * EVENT_MAX + 2 * RECORD_MAX)
// How hard to pack: the first chunks, which are all there is of a short run, well; later ones fast.
#define FIRST_LEVEL 6
#define FIRST_SIZE  (2u << 20)
#define LEVEL       1
// So little at the beginning is packed harder: that takes a millisecond or two.
#define HARD_LEVEL 16
#define HARD_SIZE  (128u << 10)

void writer_write(struct recording_writer *writer, const void *bytes, size_t size) {
    if (writer->error)
        return;
    writer->error = fd_write_all(writer->fd, bytes, size);
    writer->size += size;
}

void writer_end_turn(struct recording_writer *writer) {
    if (!writer->turn)
        return;
    put_number(writer, COLUMN_TURNS, writer->thread);
    put_number(writer, COLUMN_TURNS, writer->turn);
    writer->turn = 0;
}

// Puts the columns one behind the other and, unless they are to be written again, empties them; how
// many bytes that are.
static size_t join_columns(struct recording_writer *writer, bool again) {
    size_t size = 0;
    for (int i = 0; i < COLUMN_COUNT; i++) {
        struct column *column = &writer->columns[i];
        size += write_number(writer->plain + size, column->used);
        memcpy(writer->plain + size, column->bytes, column->used);
        size += column->used;
        if (!again)
            column->used = 0;
    }
    return size;
}

bool writer_is_empty(const struct recording_writer *writer) {
    return !writer->turn && (writer->is_first_kept || !writer->columns[COLUMN_TURNS].used);
}

// The first chunk tells of the process, so that the file makes sense from the beginning. The next
// one takes its place and tells that too: it costs as much as a short recording. Only where the
// file can be written anew.
static void go_back(struct recording_writer *writer) {
    writer->is_first_kept = false;
    off_t start = sizeof(struct recording_header);
    if (lseek(writer->fd, start, SEEK_SET) == start && ftruncate(writer->fd, start) == 0)
        writer->size = (uint64_t)start;
    else
        writer->error = errno;
}

void writer_note_time(struct recording_writer *writer) {
    if (writer->ordinal == writer->noted)
        return;
    timeline_note(&writer->timeline, writer->time * RECORDING_TIME_UNIT, writer->highest,
                  writer->live);
    writer->highest = 0;
    writer->noted = writer->ordinal;
}

// Packs `plain` bytes; an error of zstd's, or how many bytes that makes.
static size_t pack(struct recording_writer *writer, size_t plain) {
    size_t header = sizeof(struct recording_chunk);
    bool is_early = writer->told < FIRST_SIZE;
    int level = is_early && plain <= HARD_SIZE ? HARD_LEVEL : is_early ? FIRST_LEVEL : LEVEL;
    ZSTD_CCtx_setParameter(writer->packer, ZSTD_c_compressionLevel, level);
    return ZSTD_compress2(writer->packer, writer->packed + header, writer->packed_room - header,
                          writer->plain, plain);
}

void writer_flush(struct recording_writer *writer) {
    if (writer_is_empty(writer))
        return;
    bool is_first = writer->size == sizeof(struct recording_header) && !writer->told;
    struct stat file;
    bool again = is_first && fstat(writer->fd, &file) == 0 && S_ISREG(file.st_mode);
    if (writer->is_first_kept)
        go_back(writer);
    writer_end_turn(writer);
    size_t plain = join_columns(writer, again);
    writer->is_first_kept = again;
    struct recording_chunk chunk = {.magic = RECORDING_CHUNK_MAGIC, .plain = (uint32_t)plain};
    size_t packed = pack(writer, plain);
    writer->told += plain;
    if (ZSTD_isError(packed)) {
        writer->error = writer->error ? writer->error : ENOMEM;
        return;
    }
    chunk.packed = (uint32_t)packed;
    memcpy(writer->packed, &chunk, sizeof chunk);
    // In one piece: a chunk is there or it is not, unless the machine dies in between.
    writer_write(writer, writer->packed, sizeof chunk + packed);
    writer->waiting_since = 0;
    writer->flushed = writer->ordinal;
    // Time is told anew in each chunk.
    writer_note_time(writer);
    writer->time = 0;
}

void writer_open_buffers(struct recording_writer *writer) {
    size_t plain_room = COLUMN_ROOM + COLUMN_COUNT * 10;
    // A column may take up the whole chunk; memory that is never touched costs nothing.
    for (int i = 0; i < COLUMN_COUNT; i++)
        writer->columns[i].bytes = base_allocate(COLUMN_ROOM);
    writer->plain = base_allocate(plain_room);
    writer->packed_room = sizeof(struct recording_chunk) + ZSTD_compressBound(plain_room);
    writer->packed = base_allocate(writer->packed_room);
    writer->packer = ZSTD_createCCtx();
    if (!writer->packer) {
        writer->error = ENOMEM;
        return;
    }
    ZSTD_CCtx_setParameter(writer->packer, ZSTD_c_checksumFlag, 1);
}
