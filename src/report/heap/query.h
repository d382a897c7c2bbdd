// SQL over a recording: its contents as tables of a temporary SQLite database that only this
// process sees. docs/query.md describes the tables.
//
// The statement is prepared before the recording is read, against empty tables; only the tables it
// mentions are filled, while the recording streams by. Blocks are kept outside of SQLite
// (query_rows.h). What does not fit in the buffers lies in temporary files, so that memory is
// bounded by the live blocks and the stacks, as it is for every reader. A statement can read, and
// nothing else: no writing, no other files.
//
// Order of calls: new, (read the sums of the recording, or a part of it through the sink), limit,
// fill, write. Supervisor context.
#ifndef QUERN_REPORT_HEAP_QUERY_H
#define QUERN_REPORT_HEAP_QUERY_H

#include <stdio.h>

#include "report/heap/file.h"

enum heap_query_style {
    HEAP_QUERY_COLUMNS, // aligned, for people
    HEAP_QUERY_TABS,    // a line of names, then a line for each row
    HEAP_QUERY_JSON,    // an array with an object for each row
};

struct heap_query;

// NULL if the statement cannot be used; then *problem says why, to be freed.
struct heap_query *heap_query_new(const char *sql, char **problem);
void heap_query_free(struct heap_query *query);
// Where a part of a recording is to be read to (heap_filter_read).
void heap_query_sink(struct heap_query *query, struct heap_sink *sink);
// Gives the statement up after this many seconds, and after this many rows. Without: never.
void heap_query_limit(struct heap_query *query, unsigned seconds, size_t rows);
// Fills the tables; reads the file at path again if the sink has not been used. NULL, or what is
// wrong, to be freed.
char *heap_query_fill(struct heap_query *query, const char *path, const struct heap_file *file);
// Runs the statement. NULL, or what is wrong, to be freed; rows before that are written.
char *heap_query_write(struct heap_query *query, FILE *out, enum heap_query_style style);

#endif
