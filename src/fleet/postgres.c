// PostgreSQL by libpq. An interval is one transaction; its key makes a second attempt harmless.
#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

#include "base/vector.h"
#include "fleet/store.h"

#define DAY  86400
#define LOCK "7214533001" // of whoever makes tables and partitions

struct store {
    PGconn *connection;
    const char *url;
    char *user, *password;
    unsigned keep_days;
    time_t day; // that there are partitions for
    bool is_ready;
};

static const char *const types[] = {
    [COLUMN_ID] = "bigint",   [COLUMN_NUMBER] = "bigint",    [COLUMN_SMALL] = "smallint",
    [COLUMN_REAL] = "float8", [COLUMN_TIME] = "timestamptz", [COLUMN_TEXT] = "text",
};

static const struct {
    const char *key; // primary; NULL: none
    const char *index;
    bool has_days; // partitions
} layouts[TABLES] = {
    [TABLE_PROCESSES] = {"process", NULL, false},
    [TABLE_NAMES] = {"stack", NULL, false},
    [TABLE_FRAMES] = {"stack, depth", NULL, false},
    [TABLE_COUNTS] = {NULL, "service, time", true},
    [TABLE_INTERVALS] = {"process, number, time", "service, time", true},
};

static const char *const views[] = {
    "CREATE OR REPLACE VIEW quern.stacks AS SELECT c.process, c.number, c.time, c.service, p.host, "
    "p.version, p.build_id, p.pid, c.stack, n.folded, c.allocated_bytes, c.allocated_blocks, "
    "c.temporary_blocks, c.live_bytes, c.live_blocks FROM quern.counts c LEFT JOIN quern.processes "
    "p USING (process) LEFT JOIN quern.names n USING (stack)",
    "CREATE OR REPLACE VIEW quern.samples AS SELECT i.process, i.time, i.service, p.host, "
    "p.version, p.build_id, p.pid, i.resident, i.anonymous, i.live_bytes, i.live_blocks FROM "
    "quern.intervals i LEFT JOIN quern.processes p USING (process)",
    "CREATE OR REPLACE VIEW quern.run AS SELECT process, command, pid, started, service, host, "
    "version, build_id FROM quern.processes",
};

// ---- statements --------------------------------------------------------------------------------

static char *message_of(const char *message) {
    struct text text = {0};
    size_t size = strcspn(message, "\n");
    text_add(&text, message, size < 300 ? size : 300);
    return text.size ? text_take(&text) : base_copy("the connection was lost");
}

// Whether rows are at fault: bad data, or a constraint.
static bool is_refusal(const PGresult *result) {
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    return state && (strncmp(state, "22", 2) == 0 || strncmp(state, "23", 2) == 0);
}

// NULL, or the problem. *changed gets the number of rows.
static char *run(struct store *store, const char *sql, long *changed, bool *is_refused) {
    PGresult *result = PQexec(store->connection, sql);
    ExecStatusType status = PQresultStatus(result);
    char *problem = NULL;
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        problem = message_of(PQerrorMessage(store->connection));
        if (is_refused)
            *is_refused = is_refusal(result);
    } else if (changed) {
        *changed = strtol(PQcmdTuples(result), NULL, 10);
    }
    PQclear(result);
    return problem;
}

__attribute__((format(printf, 2, 3))) static char *run_format(struct store *store,
                                                              const char *format, ...) {
    struct text sql = {0};
    va_list arguments;
    va_start(arguments, format);
    text_vformat(&sql, format, arguments);
    va_end(arguments);
    char *problem = run(store, sql.bytes, NULL, NULL);
    text_free(&sql);
    return problem;
}

// ---- tables ------------------------------------------------------------------------------------

static void add_columns(struct text *sql, enum table table) {
    const struct table_column *columns = table_infos[table].columns;
    for (size_t i = 0; columns[i].name; i++)
        text_format(sql, "%s%s %s", i ? ", " : "", columns[i].name, types[columns[i].type]);
}

static char *make_table(struct store *store, enum table table) {
    const char *name = table_infos[table].name;
    struct text sql = {0};
    text_format(&sql, "CREATE TABLE IF NOT EXISTS quern.%s (", name);
    add_columns(&sql, table);
    if (layouts[table].key)
        text_format(&sql, ", PRIMARY KEY (%s)", layouts[table].key);
    text_format(&sql, ")%s", layouts[table].has_days ? " PARTITION BY RANGE (time)" : "");
    char *problem = run(store, sql.bytes, NULL, NULL);
    text_free(&sql);
    if (!problem && layouts[table].index)
        problem = run_format(store, "CREATE INDEX IF NOT EXISTS %s_by_service ON quern.%s (%s)",
                             name, name, layouts[table].index);
    return problem;
}

// Whether the schema is as it should be; only who sees that it is not needs the right to make it.
static char *find_tables(struct store *store, bool *found) {
    PGresult *result = PQexec(store->connection, "SELECT to_regclass('quern.run') IS NOT NULL");
    char *problem = PQresultStatus(result) == PGRES_TUPLES_OK
                        ? NULL
                        : message_of(PQerrorMessage(store->connection));
    *found = !problem && strcmp(PQgetvalue(result, 0, 0), "t") == 0;
    PQclear(result);
    return problem;
}

static char *make_tables(struct store *store) {
    bool found = false;
    char *problem = find_tables(store, &found);
    if (problem || found)
        return problem;
    problem = run(store,
                  "BEGIN; SELECT pg_advisory_xact_lock(" LOCK "); "
                  "CREATE SCHEMA IF NOT EXISTS quern",
                  NULL, NULL);
    for (int table = 0; table < TABLES && !problem; table++)
        problem = make_table(store, (enum table)table);
    for (size_t i = 0; i < sizeof views / sizeof *views && !problem; i++)
        problem = run(store, views[i], NULL, NULL);
    char *other = run(store, problem ? "ROLLBACK" : "COMMIT", NULL, NULL);
    if (problem)
        free(other);
    return problem ? problem : other;
}

static void name_day(char *name, size_t room, const char *format, time_t day) {
    struct tm parts;
    gmtime_r(&day, &parts);
    strftime(name, room, format, &parts);
}

static char *make_partition(struct store *store, const char *table, time_t day) {
    char suffix[16], from[16], to[16];
    name_day(suffix, sizeof suffix, "%Y%m%d", day);
    name_day(from, sizeof from, "%Y-%m-%d", day);
    name_day(to, sizeof to, "%Y-%m-%d", day + DAY);
    return run_format(store,
                      "CREATE TABLE IF NOT EXISTS quern.%s_%s PARTITION OF quern.%s FOR VALUES "
                      "FROM ('%s 00:00+00') TO ('%s 00:00+00')",
                      table, suffix, table, from, to);
}

// Drops partitions of days before this one.
static char *drop_partitions(struct store *store, time_t before) {
    char day[16];
    struct text sql = {0};
    name_day(day, sizeof day, "%Y%m%d", before);
    text_format(&sql,
                "DO $$ DECLARE name text; BEGIN FOR name IN SELECT relname FROM pg_class c JOIN "
                "pg_namespace n ON n.oid = relnamespace WHERE nspname = 'quern' AND relname ~ "
                "'^(counts|intervals)_[0-9]{8}$' AND right(relname, 8) < '%s' LOOP EXECUTE "
                "format('DROP TABLE quern.%%I', name); END LOOP; END $$",
                day);
    char *problem = run(store, sql.bytes, NULL, NULL);
    text_free(&sql);
    return problem;
}

static char *make_day(struct store *store, time_t time) {
    time_t day = time / DAY * DAY;
    if (day == store->day)
        return NULL;
    char *problem = run(store, "BEGIN; SELECT pg_advisory_xact_lock(" LOCK ")", NULL, NULL);
    for (int table = 0; table < TABLES && !problem; table++)
        if (layouts[table].has_days)
            problem = make_partition(store, table_infos[table].name, day);
    if (!problem && store->keep_days)
        problem = drop_partitions(store, day - (time_t)store->keep_days * DAY);
    char *other = run(store, problem ? "ROLLBACK" : "COMMIT", NULL, NULL);
    if (!problem && !other)
        store->day = day;
    if (problem)
        free(other);
    return problem ? problem : other;
}

// Rows go there first, so that those that are known already can be left out.
static char *make_stages(struct store *store) {
    char *problem = NULL;
    for (int table = 0; table < TABLES && !problem; table++)
        if (table != TABLE_COUNTS)
            problem = run_format(store,
                                 "CREATE TEMPORARY TABLE stage_%s (LIKE quern.%s) ON COMMIT "
                                 "DELETE ROWS",
                                 table_infos[table].name, table_infos[table].name);
    return problem;
}

// ---- the connection ----------------------------------------------------------------------------

static char *connect_store(struct store *store) {
    if (store->connection && PQstatus(store->connection) == CONNECTION_OK)
        return NULL;
    if (store->connection)
        PQfinish(store->connection);
    // An absent value is NULL, which libpq passes over. What stands in front can be given
    // otherwise.
    const char *const names[] = {"connect_timeout",
                                 "keepalives_idle",
                                 "tcp_user_timeout",
                                 "fallback_application_name",
                                 "options",
                                 "dbname",
                                 "user",
                                 "password",
                                 NULL};
    const char *const values[] = {"5",
                                  "30",
                                  "30000",
                                  "quern",
                                  "-c timezone=UTC -c statement_timeout=60000 "
                                  "-c client_min_messages=error",
                                  store->url,
                                  store->user,
                                  store->password,
                                  NULL};
    store->connection = PQconnectdbParams(names, values, 1);
    store->is_ready = false;
    store->day = 0;
    return PQstatus(store->connection) == CONNECTION_OK
               ? NULL
               : message_of(PQerrorMessage(store->connection));
}

static char *prepare(struct store *store) {
    char *problem = connect_store(store);
    if (!problem && !store->is_ready) {
        PQsetClientEncoding(store->connection, "UTF8");
        problem = make_tables(store);
        if (!problem)
            problem = make_stages(store);
        store->is_ready = !problem;
    }
    return problem;
}

// ---- pushing -----------------------------------------------------------------------------------

static char *copy(struct store *store, const char *to, const struct text *rows, bool *is_refused) {
    struct text sql = {0};
    text_format(&sql, "COPY %s FROM STDIN", to);
    PGresult *result = PQexec(store->connection, sql.bytes);
    text_free(&sql);
    bool is_fine = PQresultStatus(result) == PGRES_COPY_IN;
    PQclear(result);
    if (is_fine) {
        is_fine = PQputCopyData(store->connection, rows->bytes, (int)rows->size) == 1 &&
                  PQputCopyEnd(store->connection, NULL) == 1;
        while ((result = PQgetResult(store->connection))) {
            is_fine &= PQresultStatus(result) == PGRES_COMMAND_OK;
            *is_refused |= is_refusal(result);
            PQclear(result);
        }
    }
    return is_fine ? NULL : message_of(PQerrorMessage(store->connection));
}

// Adds the rows that are not there yet; in the order of their key, so that two who add the same
// never wait for each other.
static char *add_new(struct store *store, enum table table, const struct text *rows, long *added,
                     bool *is_refused) {
    const char *name = table_infos[table].name;
    struct text sql = {0};
    *added = 0;
    if (!rows->size)
        return NULL;
    text_format(&sql, "pg_temp.stage_%s", name);
    char *problem = copy(store, sql.bytes, rows, is_refused);
    text_free(&sql);
    text_format(&sql,
                "INSERT INTO quern.%s SELECT * FROM pg_temp.stage_%s ORDER BY %s ON CONFLICT DO "
                "NOTHING",
                name, name, layouts[table].key);
    if (!problem)
        problem = run(store, sql.bytes, added, is_refused);
    text_free(&sql);
    return problem;
}

static char *push_rows(struct store *store, const struct batch *batch, bool *is_refused) {
    long added;
    char *problem = run(store, "BEGIN", NULL, NULL);
    if (!problem)
        problem =
            add_new(store, TABLE_INTERVALS, &batch->rows[TABLE_INTERVALS], &added, is_refused);
    bool is_new = !problem && added;
    for (int table = 0; table < TABLES && !problem && is_new; table++) {
        const struct text *rows = &batch->rows[table];
        if (table == TABLE_COUNTS && rows->size)
            problem = copy(store, "quern.counts", rows, is_refused);
        else if (table != TABLE_COUNTS && table != TABLE_INTERVALS)
            problem = add_new(store, (enum table)table, rows, &added, is_refused);
    }
    char *other = run(store, problem ? "ROLLBACK" : "COMMIT", NULL, NULL);
    if (problem)
        free(other);
    return problem ? problem : other;
}

static enum push_result push(struct store *store, const struct batch *batch, bool may_be_there,
                             char **problem) {
    bool is_refused = false;
    *problem = prepare(store);
    if (!*problem)
        *problem = make_day(store, batch->time);
    if (!*problem)
        *problem = push_rows(store, batch, &is_refused);
    // Somebody may have dropped the tables.
    if (*problem && store->connection) {
        PQfinish(store->connection);
        store->connection = NULL;
    }
    return !*problem ? PUSH_DONE : is_refused ? PUSH_REFUSED : PUSH_FAILED;
}

// ---- asking ------------------------------------------------------------------------------------

// By the numbers of pg_type: int8, int2, int4, float4, float8, numeric.
static bool is_number(Oid type) {
    return type == 20 || type == 21 || type == 23 || type == 700 || type == 701 || type == 1700;
}

static void take_rows(const PGresult *result, struct store_rows *rows) {
    size_t cells = 0;
    rows->count = (size_t)PQntuples(result);
    rows->are_numbers = base_allocate((size_t)PQnfields(result) + 1);
    for (int i = 0; i < PQnfields(result); i++)
        rows->are_numbers[i] = is_number(PQftype(result, i));
    for (int i = 0; i < PQnfields(result); i++)
        *vector_push(rows->names, rows->columns) = base_copy(PQfname(result, i));
    for (int i = 0; i < PQntuples(result); i++)
        for (int j = 0; j < PQnfields(result); j++)
            *vector_push(rows->cells, cells) =
                PQgetisnull(result, i, j) ? NULL : base_copy(PQgetvalue(result, i, j));
}

static char *query(struct store *store, const char *sql, struct store_rows *rows) {
    *rows = (struct store_rows){0};
    char *problem = connect_store(store);
    if (!problem)
        problem = run(store, "SET search_path = quern; SET default_transaction_read_only = on",
                      NULL, NULL);
    if (problem)
        return problem;
    // By the extended protocol: a single statement.
    PGresult *result = PQexecParams(store->connection, sql, 0, NULL, NULL, NULL, NULL, 0);
    if (PQresultStatus(result) == PGRES_TUPLES_OK)
        take_rows(result, rows);
    else
        problem = message_of(PQerrorMessage(store->connection));
    PQclear(result);
    return problem;
}

// ---- opening -----------------------------------------------------------------------------------

static void close_store(struct store *store) {
    if (store->connection)
        PQfinish(store->connection);
    free(store->user);
    free(store->password);
    free(store);
}

static struct store *open_store(const struct store_settings *settings, char **problem) {
    char *reason = NULL;
    PQconninfoOption *parsed = PQconninfoParse(settings->url, &reason);
    if (!parsed) {
        *problem = message_of(reason ? reason : "the URL cannot be read");
        PQfreemem(reason);
        return NULL;
    }
    PQconninfoFree(parsed);
    struct store *store = base_allocate(sizeof *store);
    *store = (struct store){
        .url = settings->url,
        .user = settings->user ? base_copy(settings->user) : NULL,
        .password = settings->password ? base_copy(settings->password) : NULL,
        .keep_days = settings->keep_days,
    };
    return store;
}

const struct store_kind store_postgres = {
    .scheme = "postgresql",
    .open = open_store,
    .push = push,
    .query = query,
    .close = close_store,
    .latest = "(array_agg(%s ORDER BY number DESC))[1]",
    .moment = "to_timestamp(%lld)",
    .join = "LEFT JOIN",
    .schema = "quern.",
};
