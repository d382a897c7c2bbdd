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

// ---- ranges ----

// The text of a way of reading: for each constraint a character for its column and one for what it
// says.
static char sort_of(unsigned char operator) {
    switch (operator) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
        return '=';
    case SQLITE_INDEX_CONSTRAINT_GT:
    case SQLITE_INDEX_CONSTRAINT_GE:
        return '>';
    case SQLITE_INDEX_CONSTRAINT_LT:
    case SQLITE_INDEX_CONSTRAINT_LE:
        return '<';
    case SQLITE_INDEX_CONSTRAINT_ISNULL:
        return '0';
    case SQLITE_INDEX_CONSTRAINT_ISNOTNULL:
        return '1';
    }
    return 0;
}

#define CONSTRAINTS_MOST 16
#define SCAN_COST        1e9 // all rows, always

// All rows are read, whatever is asked, so every other table is better inside of it than it inside
// of them. Rows that do not meet a constraint are passed over; SQLite looks at it again for the
// others.
static int choose_way(sqlite3_vtab *table, sqlite3_index_info *info) {
    char *way = sqlite3_malloc(2 * CONSTRAINTS_MOST + 1);
    if (!way)
        return SQLITE_NOMEM;
    int count = 0;
    for (int i = 0; i < info->nConstraint && count < CONSTRAINTS_MOST; i++) {
        char sort = sort_of(info->aConstraint[i].op);
        int column = info->aConstraint[i].iColumn;
        if (!sort || !info->aConstraint[i].usable || column < 0 || column >= QUERY_COLUMNS)
            continue;
        way[2 * count] = (char)('a' + column);
        way[2 * count + 1] = sort;
        info->aConstraintUsage[i].argvIndex = ++count;
    }
    way[2 * count] = 0;
    info->idxStr = way;
    info->needToFreeIdxStr = 1;
    info->estimatedCost = SCAN_COST;
    info->estimatedRows = 10000000 >> (count < 4 ? count : 4);
    return SQLITE_OK;
}

// What a row must be in at least, where a constraint compares with a number; everything where it
// compares with something else. A little more than it says, because times are rounded.
static struct query_range range_of(unsigned column, char sort, sqlite3_value *value) {
    struct query_range range = {.column = column, .least = 1, .most = UINT64_MAX};
    if (sort == '0')
        return (struct query_range){.column = column};
    int type = sqlite3_value_type(value);
    if (sort == '1' || (type != SQLITE_INTEGER && type != SQLITE_FLOAT))
        return sort == '1' ? range : (struct query_range){.column = column, .most = UINT64_MAX};
    bool is_time = column == QUERY_TIME || column == QUERY_FREED_TIME;
    double number = sqlite3_value_double(value) * (is_time ? 1e9 : 1);
    double slack = 2 + (number < 0 ? -number : number) * 1e-12;
    if (sort != '<' && number - slack > 0)
        range.least = number - slack < 1e18 ? (uint64_t)(number - slack) : UINT64_C(1) << 60;
    if (sort != '>' && number + slack < 1e18)
        range.most = number + slack > 0 ? (uint64_t)(number + slack) + 2 : 1;
    range.least = range.least ? range.least : 1;
    return range;
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
    struct query_rows *rows = *((const struct table *)base->pVtab)->rows;
    close_rows(cursor);
    cursor->is_over = true;
    if (!rows)
        return SQLITE_OK;
    struct query_range ranges[CONSTRAINTS_MOST];
    for (int i = 0; i < count; i++)
        ranges[i] = range_of((unsigned)(text[2 * i] - 'a'), text[2 * i + 1], values[i]);
    query_cursor_open(&cursor->at, rows, ranges, (size_t)count);
    cursor->is_open = true;
    // While rows are still being added, that is what is shown.
    uint64_t total = query_rows_count(rows);
    if (total)
        progress_stage("running the statement", total);
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
