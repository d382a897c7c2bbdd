#include "fleet/ask.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/vector.h"
#include "fleet/store.h"
#include "report/heap/diff.h"
#include "report/heap/rows.h"
#include "report/shared/query_out.h"

// A question about what was alive looks back this long: all that is alive is pushed again once an
// hour, and an interval is at most an hour.
#define BACK_SECONDS 7320

// ---- words -------------------------------------------------------------------------------------

const char *ask_word(char *const *words, const char *name) {
    size_t size = strlen(name);
    for (; *words; words++)
        if (strncmp(*words, name, size) == 0 && (*words)[size] == '=')
            return *words + size + 1;
    return NULL;
}

int ask_fail(const char *what, char *problem) {
    fprintf(stderr, "quern: %s: %s\n", what, problem);
    free(problem);
    return 1;
}

static unsigned long word_number(char *const *words, const char *name) {
    const char *value = ask_word(words, name);
    return value ? strtoul(value, NULL, 10) : 0;
}

struct store *ask_open(char *const *words, const char *name, const struct store_kind **kind) {
    struct store_settings settings = {.url = ask_word(words, name),
                                      .keep_days = (unsigned)word_number(words, "keep-days")};
    char *problem = NULL;
    struct store *store = NULL;
    *kind = store_kind_of(settings.url, &problem);
    if (!problem)
        problem = store_credentials(&settings, ask_word(words, "credentials"));
    if (!problem)
        store = (*kind)->open(&settings, &problem);
    if (!store)
        ask_fail("cannot use the store", problem);
    return store;
}

// ---- rows --------------------------------------------------------------------------------------

static void bind_cell(sqlite3_stmt *statement, int column, const char *cell, bool is_number) {
    char *end = NULL;
    long long integer = cell && is_number ? strtoll(cell, &end, 10) : 0;
    if (!cell) {
        sqlite3_bind_null(statement, column);
    } else if (is_number && end != cell && !*end && integer != INT64_MAX) {
        sqlite3_bind_int64(statement, column, integer);
    } else {
        double number = is_number ? strtod(cell, &end) : 0;
        if (is_number && end != cell && !*end && strpbrk(cell, ".eE"))
            sqlite3_bind_double(statement, column, number);
        else
            sqlite3_bind_text(statement, column, cell, -1, SQLITE_STATIC);
    }
}

// The rows as those of a recording are written: through a table in memory.
static void write_rows(const struct store_rows *rows, enum heap_query_style style) {
    sqlite3 *table = NULL;
    sqlite3_stmt *statement = NULL;
    struct text make = {0}, add = {0}, take = {0};
    text_string(&make, "CREATE TABLE answer (");
    text_string(&add, "INSERT INTO answer VALUES (");
    text_string(&take, "SELECT ");
    for (size_t i = 0; i < rows->columns; i++) {
        char *name = sqlite3_mprintf("\"%w\"", rows->names[i]);
        text_format(&make, "%sc%zu", i ? ", " : "", i);
        text_format(&add, "%s?", i ? ", " : "");
        text_format(&take, "%sc%zu AS %s", i ? ", " : "", i, name);
        sqlite3_free(name);
    }
    text_string(&make, ")");
    text_string(&add, ")");
    text_string(&take, " FROM answer ORDER BY rowid");
    sqlite3_open(":memory:", &table);
    sqlite3_exec(table, make.bytes, NULL, NULL, NULL);
    sqlite3_exec(table, "BEGIN", NULL, NULL, NULL);
    sqlite3_prepare_v2(table, add.bytes, -1, &statement, NULL);
    for (size_t i = 0; i < rows->count; i++) {
        for (size_t j = 0; j < rows->columns; j++)
            bind_cell(statement, (int)j + 1, rows->cells[i * rows->columns + j],
                      rows->are_numbers[j]);
        sqlite3_step(statement);
        sqlite3_reset(statement);
    }
    sqlite3_finalize(statement);
    sqlite3_prepare_v2(table, take.bytes, -1, &statement, NULL);
    query_out(stdout, statement, &(struct query_out_options){.style = style, .named = statement});
    sqlite3_finalize(statement);
    sqlite3_close(table);
    text_free(&make);
    text_free(&add);
    text_free(&take);
}

static int finish_output(int status) {
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fputs("quern: cannot write the answer\n", stderr);
    return 1;
}

int ask_query(char *const *words) {
    const struct store_kind *kind;
    struct store_rows rows;
    const char *style = ask_word(words, "style");
    struct store *store = ask_open(words, "store", &kind);
    if (!store)
        return 1;
    char *problem = kind->query(store, ask_word(words, "sql"), &rows);
    kind->close(store);
    if (problem)
        return ask_fail("cannot answer that", problem);
    if (rows.columns)
        write_rows(&rows, strcmp(style, "json") == 0   ? HEAP_QUERY_JSON
                          : strcmp(style, "tabs") == 0 ? HEAP_QUERY_TABS
                                                       : HEAP_QUERY_COLUMNS);
    store_rows_free(&rows);
    return finish_output(0);
}

// ---- what grew ---------------------------------------------------------------------------------

// What was alive in the fleet at a moment.
struct moment {
    long long time;
    struct rows_line *lines; // live bytes by stack
    size_t count;
    uint64_t bytes, processes;
};

static void add_range(const struct store_kind *kind, const char *service, long long time,
                      struct text *sql) {
    text_string(sql, "time > ");
    text_format(sql, kind->moment, time - BACK_SECONDS);
    text_string(sql, " AND time <= ");
    text_format(sql, kind->moment, time);
    if (!service)
        return;
    text_string(sql, " AND service = ");
    store_quote(kind, service, sql);
}

// Processes that were alive: their latest interval is not their last one, and not too old.
static void add_alive(const struct store_kind *kind, const char *service, long long time,
                      struct text *sql) {
    text_format(sql, "SELECT process FROM %sintervals WHERE ", kind->schema);
    add_range(kind, service, time, sql);
    text_string(sql, " GROUP BY process HAVING ");
    text_format(sql, kind->latest, "is_last");
    text_string(sql, " = 0 AND max(time) > ");
    text_format(sql, kind->moment, time);
    // Three intervals may be late.
    if (kind->escapes_backslash)
        text_string(sql, " - toInt64(3 * max(seconds) + 60)");
    else
        text_string(sql, " - (3 * max(seconds) + 60) * interval '1 second'");
}

static char *count_processes(const struct store_kind *kind, struct store *store,
                             const char *service, struct moment *moment) {
    struct text sql = {0};
    struct store_rows rows;
    text_string(&sql, "SELECT count(*) FROM (");
    add_alive(kind, service, moment->time, &sql);
    text_string(&sql, ") AS alive");
    char *problem = kind->query(store, sql.bytes, &rows);
    text_free(&sql);
    if (problem)
        return problem;
    moment->processes = rows.count ? strtoull(rows.cells[0], NULL, 10) : 0;
    store_rows_free(&rows);
    return NULL;
}

static char *read_moment(const struct store_kind *kind, struct store *store, const char *service,
                         struct moment *moment) {
    struct text sql = {0};
    struct store_rows rows;
    char *problem = count_processes(kind, store, service, moment);
    if (problem)
        return problem;
    text_string(&sql, "SELECT folded, bytes FROM (SELECT stack, sum(live) AS bytes FROM (SELECT "
                      "process, stack, ");
    text_format(&sql, kind->latest, "live_bytes");
    text_format(&sql, " AS live FROM %scounts WHERE ", kind->schema);
    add_range(kind, service, moment->time, &sql);
    text_string(&sql, " AND process IN (");
    add_alive(kind, service, moment->time, &sql);
    text_format(&sql,
                ") GROUP BY process, stack) AS latest GROUP BY stack) AS sums %s (SELECT stack, "
                "min(folded) AS folded FROM %snames GROUP BY stack) AS known USING %s",
                kind->join, kind->schema, kind->escapes_backslash ? "stack" : "(stack)");
    problem = kind->query(store, sql.bytes, &rows);
    text_free(&sql);
    if (problem)
        return problem;
    moment->lines = base_allocate((rows.count + 1) * sizeof *moment->lines);
    for (size_t i = 0; i < rows.count; i++) {
        const char *folded = rows.cells[2 * i], *bytes = rows.cells[2 * i + 1];
        moment->lines[i] = (struct rows_line){base_copy(folded && *folded ? folded : "[unknown]"),
                                              bytes ? strtoull(bytes, NULL, 10) : 0};
        moment->bytes += moment->lines[i].value;
    }
    moment->count = rows_lines_merge(moment->lines, rows.count);
    store_rows_free(&rows);
    return NULL;
}

static void write_moment(const char *title, const struct moment *moment) {
    char day[64], bytes[32], processes[32];
    struct tm parts;
    time_t time = (time_t)moment->time;
    localtime_r(&time, &parts);
    strftime(day, sizeof day, "%Y-%m-%d %H:%M:%S %Z", &parts);
    printf("%s%s: %s bytes in %s processes\n", title, day, text_number(bytes, moment->bytes),
           text_number(processes, moment->processes));
}

int ask_diff(char *const *words) {
    const struct store_kind *kind;
    const char *service = ask_word(words, "service");
    struct store *store = ask_open(words, "store", &kind);
    struct moment before = {.time = (long long)word_number(words, "before")};
    struct moment after = {.time = (long long)word_number(words, "after")};
    if (!store)
        return 1;
    char *problem = read_moment(kind, store, service, &before);
    if (!problem)
        problem = read_moment(kind, store, service, &after);
    kind->close(store);
    if (problem)
        return ask_fail("cannot compare", problem);
    static const struct heap_weight live = {.name = "live", .help = "live", .unit = "bytes"};
    struct heap_diff_options options = {.weight = &live, .top = word_number(words, "top")};
    write_moment("before:  ", &before);
    write_moment("after:   ", &after);
    if (!heap_diff_lines(stdout, before.lines, before.count, after.lines, after.count, &options,
                         ""))
        puts(before.processes || after.processes
                 ? "Nothing has changed."
                 : "The store knows no such process at these times.");
    return finish_output(0);
}
