#include "report/heap/query_rows.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/vector.h"

#define COLUMNS      (QUERY_COLUMNS + 1) // with the number of equal rows
#define COUNTS       QUERY_COLUMNS       // that column
#define BATCH        16384               // rows
#define PADDING      8 // bytes behind a batch: numbers are read eight bytes at a time
#define COUNTED_MOST (1u << 19)
#define WORTH        2 // rows for each one that is counted, at least, or counting is given up

// A batch in the file: its columns one after the other. A number is stored as its difference from
// the least one of the column, in as few bytes as the largest difference needs.
struct batch {
    uint64_t offset;
    uint32_t size;
    uint8_t widths[COLUMNS];
    uint64_t least[COLUMNS], most[COLUMNS];
};

struct query_rows {
    unsigned columns[COLUMNS]; // those that are read, then COUNTS if rows are counted
    unsigned column_count;     // without COUNTS
    unsigned stored_count;     // with it
    bool counts;
    // Rows counted so far; when these are COUNTED_MOST, they are written.
    struct map map;
    uint64_t *counted;
    size_t word_count;
    uint64_t added; // since the last time
    bool is_vain;   // rows differ too much
    // Rows that are written: whole batches in the file, the last rows here. Numbers are one more
    // than they are, so that QUERY_NULL is 0.
    uint64_t *last[COLUMNS];
    uint32_t last_count;
    struct batch *batches;
    size_t batch_count;
    uint8_t *packed;
    int fd; // -1: none yet
    uint64_t file_size;
    uint64_t total;
    int error;
    // Protects the list of batches and is_done, for cursors of other threads.
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_done;
};

struct query_rows *query_rows_new(unsigned columns, bool may_count) {
    struct query_rows *rows = base_allocate(sizeof *rows);
    // Numbers are different for each block.
    bool counts = may_count && !(columns & 1u << QUERY_NUMBER);
    *rows = (struct query_rows){.counts = counts,
                                .fd = -1,
                                .lock = PTHREAD_MUTEX_INITIALIZER,
                                .changed = PTHREAD_COND_INITIALIZER};
    for (unsigned i = 0; i < QUERY_COLUMNS; i++)
        if (columns & 1u << i)
            rows->columns[rows->column_count++] = i;
    rows->stored_count = rows->column_count;
    if (counts)
        rows->columns[rows->stored_count++] = COUNTS;
    for (unsigned i = 0; i < rows->stored_count; i++)
        rows->last[i] = base_allocate(BATCH * sizeof *rows->last[i]);
    rows->packed = base_allocate(rows->stored_count * BATCH * sizeof(uint64_t) + PADDING);
    return rows;
}

void query_rows_free(struct query_rows *rows) {
    if (rows->fd >= 0)
        close(rows->fd);
    map_free(&rows->map);
    free(rows->counted);
    for (unsigned i = 0; i < rows->stored_count; i++)
        free(rows->last[i]);
    free(rows->batches);
    free(rows->packed);
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

static void find_range(const uint64_t *numbers, uint32_t count, uint64_t *least, uint64_t *most) {
    *least = *most = numbers[0];
    for (uint32_t i = 1; i < count; i++) {
        *least = numbers[i] < *least ? numbers[i] : *least;
        *most = numbers[i] > *most ? numbers[i] : *most;
    }
}

// Writes the last rows as a batch.
static void flush(struct query_rows *rows) {
    struct batch batch = {.offset = rows->file_size};
    uint8_t *to = rows->packed;
    for (unsigned i = 0; i < rows->stored_count; i++) {
        find_range(rows->last[i], rows->last_count, &batch.least[i], &batch.most[i]);
        unsigned width = 0;
        while (width < 8 && (batch.most[i] - batch.least[i]) >> (8 * width))
            width++;
        batch.widths[i] = (uint8_t)width;
        for (uint32_t row = 0; row < rows->last_count; row++, to += width) {
            uint64_t number = rows->last[i][row] - batch.least[i];
            memcpy(to, &number, sizeof number); // the next number overwrites what is beyond it
        }
    }
    batch.size = (uint32_t)(to - rows->packed);
    if (rows->fd < 0 && !rows->error && (rows->fd = open_temporary()) < 0)
        rows->error = errno;
    if (!rows->error)
        rows->error = fd_write_all(rows->fd, (const char *)rows->packed, batch.size);
    rows->file_size += batch.size;
    rows->last_count = 0;
    pthread_mutex_lock(&rows->lock);
    *vector_push(rows->batches, rows->batch_count) = batch;
    pthread_cond_broadcast(&rows->changed);
    pthread_mutex_unlock(&rows->lock);
}

static void write_row(struct query_rows *rows, uint64_t count, const uint64_t *values) {
    if (rows->last_count == BATCH)
        flush(rows);
    for (unsigned i = 0; i < rows->column_count; i++)
        rows->last[i][rows->last_count] = values[i] + 1;
    if (rows->counts)
        rows->last[rows->column_count][rows->last_count] = count + 1;
    rows->last_count++;
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
    pthread_mutex_lock(&rows->lock);
    rows->is_done = true;
    pthread_cond_broadcast(&rows->changed);
    pthread_mutex_unlock(&rows->lock);
    errno = rows->error;
    return !rows->error;
}

uint64_t query_rows_count(struct query_rows *rows) {
    pthread_mutex_lock(&rows->lock);
    uint64_t count = rows->is_done ? rows->total : 0;
    pthread_mutex_unlock(&rows->lock);
    return count;
}

// ---- reading ----

void query_cursor_open(struct query_cursor *cursor, struct query_rows *rows,
                       const struct query_range *ranges, size_t range_count) {
    *cursor = (struct query_cursor){.rows = rows, .count = 1};
    cursor->chosen = base_allocate(BATCH * sizeof *cursor->chosen);
    cursor->buffer = base_allocate(rows->stored_count * BATCH * sizeof(uint64_t) + PADDING);
    // By the number of the column among those that are stored; others have no ranges.
    for (unsigned i = 0; i < QUERY_COLUMNS; i++)
        cursor->ranges[i] = (struct query_range){.most = UINT64_MAX};
    for (size_t i = 0; i < range_count; i++)
        for (unsigned at = 0; at < rows->column_count; at++)
            if (rows->columns[at] == ranges[i].column) {
                struct query_range *range = &cursor->ranges[at];
                if (range->least < ranges[i].least)
                    range->least = ranges[i].least;
                if (range->most > ranges[i].most)
                    range->most = ranges[i].most;
            }
}

void query_cursor_close(struct query_cursor *cursor) {
    free(cursor->buffer);
    free(cursor->chosen);
}

static uint64_t packed_number(const struct query_cursor *cursor, unsigned column, uint32_t row) {
    const struct query_packed *packed = &cursor->packed[column];
    uint64_t number;
    memcpy(&number, packed->at + (size_t)row * packed->width, sizeof number);
    return packed->least + (number & packed->mask);
}

// Leaves those of the chosen rows whose number is in the range.
static void choose(struct query_cursor *cursor, unsigned column) {
    struct query_range range = cursor->ranges[column];
    uint32_t count = 0;
    for (uint32_t i = 0; i < cursor->chosen_count; i++) {
        uint64_t number = packed_number(cursor, column, cursor->chosen[i]);
        cursor->chosen[count] = cursor->chosen[i];
        count += number >= range.least && number <= range.most;
    }
    cursor->chosen_count = count;
}

static void choose_all(struct query_cursor *cursor, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        cursor->chosen[i] = i;
    cursor->chosen_count = count;
}

static bool load_batch(struct query_cursor *cursor, const struct batch *batch) {
    const struct query_rows *rows = cursor->rows;
    for (unsigned i = 0; i < rows->column_count; i++)
        if (batch->most[i] < cursor->ranges[i].least || batch->least[i] > cursor->ranges[i].most)
            return true; // no row is in the range
    size_t done = 0;
    while (done < batch->size) {
        ssize_t got = pread(rows->fd, cursor->buffer + done, batch->size - done,
                            (off_t)(batch->offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            errno = got < 0 ? errno : EIO;
            return false;
        }
        done += (size_t)got;
    }
    const uint8_t *at = cursor->buffer;
    for (unsigned i = 0; i < rows->stored_count; i++) {
        unsigned width = batch->widths[i];
        cursor->packed[i] = (struct query_packed){
            .at = at,
            .width = width,
            .mask = width == 8 ? UINT64_MAX : (UINT64_C(1) << (8 * width)) - 1,
            .least = batch->least[i],
        };
        at += (size_t)width * BATCH;
    }
    choose_all(cursor, BATCH);
    return true;
}

// The rows that are not in the file.
static void load_last(struct query_cursor *cursor) {
    const struct query_rows *rows = cursor->rows;
    for (unsigned i = 0; i < rows->stored_count; i++)
        cursor->packed[i] = (struct query_packed){
            .at = (const uint8_t *)rows->last[i], .width = 8, .mask = UINT64_MAX};
    choose_all(cursor, rows->last_count);
}

// Waits for the next batch. False: there is none, only the last rows.
static bool await_batch(struct query_cursor *cursor, struct batch *batch) {
    struct query_rows *rows = cursor->rows;
    pthread_mutex_lock(&rows->lock);
    while (cursor->next_batch >= rows->batch_count && !rows->is_done)
        pthread_cond_wait(&rows->changed, &rows->lock);
    bool is_there = cursor->next_batch < rows->batch_count;
    if (is_there)
        *batch = rows->batches[cursor->next_batch];
    pthread_mutex_unlock(&rows->lock);
    return is_there;
}

// The next batch with rows that are in all ranges.
static bool next_batch(struct query_cursor *cursor) {
    const struct query_rows *rows = cursor->rows;
    cursor->at = cursor->chosen_count = 0;
    while (!cursor->chosen_count && !cursor->has_last) {
        struct batch batch;
        if (!await_batch(cursor, &batch)) {
            load_last(cursor);
            cursor->has_last = true;
        } else if (!load_batch(cursor, &batch)) {
            return false;
        }
        cursor->next_batch++;
        for (unsigned i = 0; i < rows->column_count; i++)
            if (cursor->ranges[i].least > 0 || cursor->ranges[i].most < UINT64_MAX)
                choose(cursor, i);
    }
    return cursor->chosen_count > 0;
}

bool query_cursor_next(struct query_cursor *cursor) {
    const struct query_rows *rows = cursor->rows;
    errno = 0;
    if (cursor->at == cursor->chosen_count && !next_batch(cursor))
        return false;
    uint32_t row = cursor->chosen[cursor->at++];
    cursor->row = (uint64_t)(cursor->next_batch - 1) * BATCH + row + 1;
    for (unsigned i = 0; i < rows->column_count; i++)
        cursor->values[rows->columns[i]] = packed_number(cursor, i, row) - 1;
    if (rows->counts)
        cursor->count = packed_number(cursor, rows->column_count, row) - 1;
    return true;
}
