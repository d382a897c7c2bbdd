#include "report/heap/query_table.h"

#include <errno.h>
#include <stdlib.h>

#include "base/progress.h"
#include "base/text.h"

#define SEEN_EVERY 65536 // rows between two looks at the progress

struct table {
    sqlite3_vtab base;
    struct query_rows *const *rows;
};

struct cursor {
    sqlite3_vtab_cursor base;
    struct query_cursor at;
    bool is_open, is_over;
};

static int connect_table(sqlite3 *database, void *own, int count, const char *const *words,
                         sqlite3_vtab **made, char **problem) {
    struct table *table = base_allocate(sizeof *table);
    *table = (struct table){.rows = own};
    *made = &table->base;
    return sqlite3_declare_vtab(
        database, "CREATE TABLE t (number INTEGER, size INTEGER, stack INTEGER, thread INTEGER, "
                  "time REAL, freed_time REAL, freed_thread INTEGER, resizes INTEGER, " QUERY_WEIGHT
                  " INTEGER HIDDEN)");
}

static int disconnect_table(sqlite3_vtab *table) {
    free(table);
    return SQLITE_OK;
}

// There is one way to read it, and every other table is better inside of it than it inside of them.
static int choose_way(sqlite3_vtab *table, sqlite3_index_info *info) {
    info->estimatedCost = 1e9;
    info->estimatedRows = 10000000;
    return SQLITE_OK;
}

static int open_cursor(sqlite3_vtab *table, sqlite3_vtab_cursor **made) {
    struct cursor *cursor = base_allocate(sizeof *cursor);
    *cursor = (struct cursor){0};
    *made = &cursor->base;
    return SQLITE_OK;
}

static void close_rows(struct cursor *cursor) {
    if (cursor->is_open)
        query_cursor_close(&cursor->at);
    cursor->is_open = false;
}

static int close_cursor(sqlite3_vtab_cursor *base) {
    close_rows((struct cursor *)base);
    free(base);
    return SQLITE_OK;
}

static int next_row(sqlite3_vtab_cursor *base) {
    struct cursor *cursor = (struct cursor *)base;
    cursor->is_over = !query_cursor_next(&cursor->at);
    if (cursor->is_over && errno)
        return SQLITE_IOERR;
    bool is_time = cursor->at.row % SEEN_EVERY == 0;
    return is_time && !progress_at(cursor->at.row) ? SQLITE_INTERRUPT : SQLITE_OK;
}

static int rewind_rows(sqlite3_vtab_cursor *base, int way, const char *text, int count,
                       sqlite3_value **values) {
    struct cursor *cursor = (struct cursor *)base;
    const struct query_rows *rows = *((const struct table *)base->pVtab)->rows;
    close_rows(cursor);
    cursor->is_over = true;
    if (!rows)
        return SQLITE_OK;
    query_cursor_open(&cursor->at, rows);
    cursor->is_open = true;
    progress_stage("running the statement", query_rows_count(rows));
    return next_row(base);
}

static int is_over(sqlite3_vtab_cursor *base) {
    return ((struct cursor *)base)->is_over;
}

static int give_value(sqlite3_vtab_cursor *base, sqlite3_context *context, int column) {
    const struct query_cursor *at = &((struct cursor *)base)->at;
    uint64_t value = column < QUERY_COLUMNS ? at->values[column] : at->count;
    if (value == QUERY_NULL)
        sqlite3_result_null(context);
    else if (column == QUERY_TIME || column == QUERY_FREED_TIME)
        sqlite3_result_double(context, (double)value / 1e9);
    else
        sqlite3_result_int64(context, (sqlite3_int64)value);
    return SQLITE_OK;
}

static int give_number(sqlite3_vtab_cursor *base, sqlite3_int64 *number) {
    const struct query_cursor *at = &((struct cursor *)base)->at;
    *number = (sqlite3_int64)(at->values[QUERY_NUMBER] ? at->values[QUERY_NUMBER] : at->row);
    return SQLITE_OK;
}

static sqlite3_module module = {
    .xCreate = connect_table,
    .xConnect = connect_table,
    .xBestIndex = choose_way,
    .xDisconnect = disconnect_table,
    .xDestroy = disconnect_table,
    .xOpen = open_cursor,
    .xClose = close_cursor,
    .xFilter = rewind_rows,
    .xNext = next_row,
    .xEof = is_over,
    .xColumn = give_value,
    .xRowid = give_number,
};

int query_table_create(sqlite3 *database, const char *name, struct query_rows *const *rows) {
    int code = sqlite3_create_module(database, "quern_rows", &module, (void *)rows);
    struct text sql = {0};
    text_format(&sql, "CREATE VIRTUAL TABLE %s USING quern_rows", name);
    if (code == SQLITE_OK)
        code = sqlite3_exec(database, sql.bytes, NULL, NULL, NULL);
    text_free(&sql);
    return code;
}
