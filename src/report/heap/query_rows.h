// The blocks of a recording as rows for a query: only the columns that the statement reads, and
// equal rows once, with their number, where the statement allows that (query_weight.h).
//
// 20 million blocks of a run have a few thousand different pairs of size and thread. Counting them
// is what makes sums over all blocks quick; SQLite then groups thousands of rows instead of
// millions. Where rows differ too much, they are written to a temporary file, in batches of
// columns. So memory stays bounded, and a reader passes over rows that it does not want without
// taking them apart.
//
// Order of calls: new, add (for each block), done. One thread calls these; cursors of other threads
// may read meanwhile, and wait for rows that are not there yet. Supervisor context.
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
// Rows to be read, equal ones counted once; 0 before it is done.
uint64_t query_rows_count(struct query_rows *rows);

// Rows are wanted only if a column is in this range. It counts numbers one higher than they are,
// and QUERY_NULL as 0.
struct query_range {
    unsigned column; // enum query_column
    uint64_t least, most;
};

// A column of the batch in hand.
struct query_packed {
    const uint8_t *at;
    unsigned width; // bytes of a number
    uint64_t mask;  // that many bytes
    uint64_t least; // what numbers are added to
};

struct query_cursor {
    struct query_rows *rows;
    struct query_range ranges[QUERY_COLUMNS];
    size_t next_batch;
    bool has_last; // the batch in hand is the last one
    uint8_t *buffer;
    struct query_packed packed[QUERY_COLUMNS + 1];
    uint32_t *chosen; // the rows of the batch that are in the ranges
    uint32_t chosen_count, at;
    uint64_t row; // from 1 on; 0: before the first
    uint64_t values[QUERY_COLUMNS];
    uint64_t count; // equal rows
};

// For the rows that are in all ranges.
void query_cursor_open(struct query_cursor *cursor, struct query_rows *rows,
                       const struct query_range *ranges, size_t range_count);
// The next row. False: there is none, or it cannot be read (errno, else 0).
bool query_cursor_next(struct query_cursor *cursor);
void query_cursor_close(struct query_cursor *cursor);

#endif
