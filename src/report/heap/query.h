// SQL over a recording: its contents as tables of a temporary SQLite database that only this
// process sees. docs/query.md describes the tables.
//
// The statement is prepared before the recording is read, against empty tables; only the tables it
// mentions are filled, while the recording streams by. What does not fit in SQLite's cache lies in
// a temporary file, so that memory is bounded by the live blocks and the stacks, as it is for every
// reader. A statement can read, and nothing else: no writing, no other files.
//
// Order of calls: new, sinks, (read the recording), fill, write. Supervisor context.
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
// Where the recording is to be read to.
void heap_query_sink(struct heap_query *query, struct heap_sink *sink);
// The rest of the tables. NULL, or what is wrong, to be freed.
char *heap_query_fill(struct heap_query *query, const struct heap_file *file);
// Runs the statement. NULL, or what is wrong, to be freed; rows before that are written.
char *heap_query_write(struct heap_query *query, FILE *out, enum heap_query_style style);
// The statement is given up after so many seconds.
void heap_query_limit(struct heap_query *query, unsigned seconds);

#endif
