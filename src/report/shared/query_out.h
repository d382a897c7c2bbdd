// The rows of a query as text. Text of the target is written so that it cannot steer a terminal,
// and so that a row stays a line: see stack_text.h.
#ifndef QUERN_REPORT_QUERY_OUT_H
#define QUERN_REPORT_QUERY_OUT_H

#include <sqlite3.h>
#include <stdio.h>

#include "report/heap/query.h"

struct query_out_options {
    enum heap_query_style style;
    size_t most;         // rows; 0: all
    sqlite3_stmt *named; // the statement whose columns have the names to show
};

// Steps through the statement. SQLITE_DONE, or the code of what went wrong.
int query_out(FILE *out, sqlite3_stmt *statement, const struct query_out_options *options);

#endif
