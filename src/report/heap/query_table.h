// Rows of blocks (query_rows.h) as a table of SQLite that is only read, from the first row to the
// last: SQLite takes rows from where they are, without a copy. Supervisor context.
#ifndef QUERN_REPORT_HEAP_QUERY_TABLE_H
#define QUERN_REPORT_HEAP_QUERY_TABLE_H

#include <sqlite3.h>

#include "report/heap/query_rows.h"

// The hidden column that says how many blocks a row stands for.
#define QUERY_WEIGHT "quern_blocks"

// Creates the table under this name. *rows may be NULL until it is read: then it has no rows. The
// code of what went wrong, or SQLITE_OK.
int query_table_create(sqlite3 *database, const char *name, struct query_rows *const *rows);

#endif
