// The blocks of a recording as rows for a query: only the columns that the statement reads, and
// equal rows once, with their number, where the statement allows that (query_weight.h).
//
// 20 million blocks of a run have a few thousand different pairs of size and thread. Counting them
// is what makes sums over all blocks quick; SQLite then groups thousands of rows instead of
// millions. Where rows differ too much, they are written one after the other, as numbers of
// variable length, to a temporary file behind a buffer. So memory stays bounded.
//
// Order of calls: new, add (for each block), done, then cursors. Supervisor context.
#ifndef QUERN_REPORT_HEAP_QUERY_ROWS_H
#define QUERN_REPORT_HEAP_QUERY_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum query_column {
    QUERY_NUMBER,
    QUERY_SIZE,
    QUERY_STACK,
    QUERY_THREAD,
    QUERY_TIME,
    QUERY_FREED_TIME,
    QUERY_FREED_THREAD,
    QUERY_RESIZES,
    QUERY_COLUMNS,
};

#define QUERY_NULL UINT64_MAX // no value, in a row

struct query_rows;

// `columns`: a bit for each column that is read; others are 0 in all rows. `may_count`: equal rows
// may be counted.
struct query_rows *query_rows_new(unsigned columns, bool may_count);
void query_rows_free(struct query_rows *rows);
void query_rows_add(struct query_rows *rows, const uint64_t *values); // QUERY_COLUMNS of them
// Ends adding. False with errno: the temporary file could not be written.
bool query_rows_done(struct query_rows *rows);
// Rows to be read, equal ones counted once.
uint64_t query_rows_count(const struct query_rows *rows);

struct query_cursor {
    const struct query_rows *rows;
    uint8_t *buffer;
    size_t at, size; // in the buffer
    uint64_t offset; // in the file, of what follows the buffer
    uint64_t row;    // from 1 on; 0: before the first
    uint64_t values[QUERY_COLUMNS];
    uint64_t count; // equal rows
};

void query_cursor_open(struct query_cursor *cursor, const struct query_rows *rows);
// The next row. False: there is none, or it cannot be read (errno, else 0).
bool query_cursor_next(struct query_cursor *cursor);
void query_cursor_close(struct query_cursor *cursor);

#endif
