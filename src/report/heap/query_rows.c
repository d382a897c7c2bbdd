#include "report/heap/query_rows.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/vector.h"

#define BUFFER       (1u << 20)
#define ROW_MOST     ((QUERY_COLUMNS + 1) * 10) // bytes of a row
#define COUNTED_MOST (1u << 19)
#define WORTH        2 // rows for each one that is counted, at least, or counting is given up

struct query_rows {
    unsigned columns[QUERY_COLUMNS]; // those that are read
    unsigned column_count;
    bool counts;
    // Rows counted so far; when these are COUNTED_MOST, they are written.
    struct map map;
    uint64_t *counted;
    size_t word_count;
    uint64_t added; // since the last time
    bool is_vain;   // rows differ too much
    // Rows that are written: in the file, the last ones in the buffer.
    uint8_t *buffer;
    size_t size;
    int fd; // -1: none yet
    uint64_t file_size;
    uint64_t total;
    int error;
};

struct query_rows *query_rows_new(unsigned columns, bool may_count) {
    struct query_rows *rows = base_allocate(sizeof *rows);
    // Numbers are different for each block.
    bool counts = may_count && !(columns & 1u << QUERY_NUMBER);
    *rows = (struct query_rows){.counts = counts, .fd = -1};
    for (unsigned i = 0; i < QUERY_COLUMNS; i++)
        if (columns & 1u << i)
            rows->columns[rows->column_count++] = i;
    rows->buffer = base_allocate(BUFFER);
    return rows;
}

void query_rows_free(struct query_rows *rows) {
    if (rows->fd >= 0)
        close(rows->fd);
    map_free(&rows->map);
    free(rows->counted);
    free(rows->buffer);
    free(rows);
}

// ---- the file ----

static int open_temporary(void) {
    static const char *const variables[] = {"SQLITE_TMPDIR", "TMPDIR"};
    for (size_t i = 0; i < 2; i++) {
        const char *folder = getenv(variables[i]);
        int fd = folder && *folder ? open(folder, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600) : -1;
        if (fd >= 0)
            return fd;
    }
    int fd = open("/var/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    return fd >= 0 ? fd : open("/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
}

static void flush(struct query_rows *rows) {
    if (rows->fd < 0 && !rows->error && (rows->fd = open_temporary()) < 0)
        rows->error = errno;
    if (!rows->error)
        rows->error = fd_write_all(rows->fd, (const char *)rows->buffer, rows->size);
    rows->file_size += rows->size;
    rows->size = 0;
}

static void put_number(struct query_rows *rows, uint64_t number) {
    while (number >= 128) {
        rows->buffer[rows->size++] = (uint8_t)(number | 128);
        number >>= 7;
    }
    rows->buffer[rows->size++] = (uint8_t)number;
}

// QUERY_NULL is stored as 0 and takes one byte.
static void write_row(struct query_rows *rows, uint64_t count, const uint64_t *values) {
    if (rows->size + ROW_MOST > BUFFER)
        flush(rows);
    if (rows->counts)
        put_number(rows, count);
    for (unsigned i = 0; i < rows->column_count; i++)
        put_number(rows, values[i] + 1);
    rows->total++;
}

// ---- counting ----

// Rows counted so far are words: the count, then the columns.
static uint64_t *counted_row(const struct query_rows *rows, uint32_t number) {
    return &rows->counted[(size_t)number * (rows->column_count + 1)];
}

static void write_counted(struct query_rows *rows) {
    for (uint32_t i = 0; i < rows->map.count; i++)
        write_row(rows, *counted_row(rows, i), counted_row(rows, i) + 1);
    map_clear(&rows->map);
    rows->word_count = 0;
}

static void count_row(struct query_rows *rows, const uint64_t *values) {
    size_t bytes = rows->column_count * sizeof *values;
    uint64_t hash = 0;
    for (unsigned i = 0; i < rows->column_count; i++)
        hash = hash_add(hash, values[i]);
    rows->added++;
    struct map_walk walk = map_walk(hash);
    for (uint32_t number; (number = map_next(&rows->map, &walk)) != MAP_NONE;) {
        uint64_t *row = counted_row(rows, number);
        if (memcmp(row + 1, values, bytes) == 0) {
            ++*row;
            return;
        }
    }
    map_add(&rows->map, hash);
    uint64_t *row = vector_extend(rows->counted, rows->word_count, rows->column_count + 1);
    *row = 1;
    memcpy(row + 1, values, bytes);
}

void query_rows_add(struct query_rows *rows, const uint64_t *values) {
    uint64_t own[QUERY_COLUMNS];
    for (unsigned i = 0; i < rows->column_count; i++)
        own[i] = values[rows->columns[i]];
    if (!rows->counts || rows->is_vain) {
        write_row(rows, 1, own);
        return;
    }
    count_row(rows, own);
    if (rows->map.count == COUNTED_MOST) {
        rows->is_vain = rows->added < WORTH * COUNTED_MOST;
        rows->added = 0;
        write_counted(rows);
    }
}

bool query_rows_done(struct query_rows *rows) {
    write_counted(rows);
    if (rows->fd >= 0 && rows->size)
        flush(rows);
    errno = rows->error;
    return !rows->error;
}

uint64_t query_rows_count(const struct query_rows *rows) {
    return rows->total;
}

// ---- reading ----

void query_cursor_open(struct query_cursor *cursor, const struct query_rows *rows) {
    *cursor = (struct query_cursor){.rows = rows, .count = 1};
    if (rows->fd < 0) { // all of it is in the buffer
        cursor->buffer = rows->buffer;
        cursor->size = rows->size;
    } else {
        cursor->buffer = base_allocate(BUFFER);
    }
}

void query_cursor_close(struct query_cursor *cursor) {
    if (cursor->buffer != cursor->rows->buffer)
        free(cursor->buffer);
}

// Rows do not end where buffers do: the rest of one moves to the front of the next.
static bool fill_buffer(struct query_cursor *cursor) {
    const struct query_rows *rows = cursor->rows;
    size_t rest = cursor->size - cursor->at;
    if (rest >= ROW_MOST || cursor->buffer == rows->buffer || cursor->offset == rows->file_size)
        return true;
    memmove(cursor->buffer, cursor->buffer + cursor->at, rest);
    ssize_t got = pread(rows->fd, cursor->buffer + rest, BUFFER - rest, (off_t)cursor->offset);
    if (got <= 0) {
        errno = got < 0 ? errno : EIO;
        return false;
    }
    cursor->offset += (uint64_t)got;
    cursor->at = 0;
    cursor->size = rest + (size_t)got;
    return true;
}

static uint64_t get_number(struct query_cursor *cursor) {
    uint64_t number = 0;
    for (unsigned shift = 0; cursor->at < cursor->size; shift += 7) {
        uint8_t byte = cursor->buffer[cursor->at++];
        number |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            break;
    }
    return number;
}

bool query_cursor_next(struct query_cursor *cursor) {
    const struct query_rows *rows = cursor->rows;
    errno = 0;
    if (cursor->row >= rows->total || !fill_buffer(cursor))
        return false;
    cursor->row++;
    if (rows->counts)
        cursor->count = get_number(cursor);
    for (unsigned i = 0; i < rows->column_count; i++)
        cursor->values[rows->columns[i]] = get_number(cursor) - 1;
    return true;
}
