// ClickHouse by its HTTP interface. It has no transactions: each table's rows go in one insert,
// which is there as a whole or not at all, the interval's own row last. When an attempt may have
// got through, the tables are asked first which inserts they have.
#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>

#include "base/vector.h"
#include "fleet/store.h"

#define CONNECT_SECONDS 5
#define ANSWER_SECONDS  60
#define ANSWER_MOST     (64u << 20)
#define TTL_SINCE       19.06 // version

struct store {
    CURL *curl;
    char *base; // http://host:port/
    char *database;
    struct curl_slist *headers;
    unsigned keep_days;
    bool is_ready; // the tables are there
    struct text answer;
};

static const char *const types[] = {
    [COLUMN_ID] = "Int64",     [COLUMN_NUMBER] = "Int64",         [COLUMN_SMALL] = "Int8",
    [COLUMN_REAL] = "Float64", [COLUMN_TIME] = "DateTime('UTC')", [COLUMN_TEXT] = "String",
};

static const struct {
    const char *engine, *key;
    bool has_days; // partitions, which may be dropped after some time
} layouts[TABLES] = {
    [TABLE_PROCESSES] = {"ReplacingMergeTree", "process", false},
    [TABLE_NAMES] = {"ReplacingMergeTree", "stack", false},
    [TABLE_FRAMES] = {"ReplacingMergeTree", "stack, depth", false},
    [TABLE_COUNTS] = {"MergeTree", "service, time, stack", true},
    [TABLE_INTERVALS] = {"MergeTree", "service, time, process", true},
};

// A recording's tables, with what tells processes apart.
#define WITH_PROCESS                                                                               \
    " ANY LEFT JOIN (SELECT process, host, version, build_id, command, pid, started FROM "         \
    "%1$s.processes) AS p USING process"
static const char *const views[] = {
    "CREATE VIEW IF NOT EXISTS %1$s.stacks AS SELECT process, number, time, service, host, "
    "version, "
    "build_id, pid, stack, folded, allocated_bytes, allocated_blocks, temporary_blocks, "
    "live_bytes, "
    "live_blocks FROM (SELECT process, number, time, service, host, version, build_id, pid, stack, "
    "allocated_bytes, allocated_blocks, temporary_blocks, live_bytes, live_blocks FROM "
    "%1$s.counts" WITH_PROCESS ") ANY LEFT JOIN (SELECT stack, folded FROM %1$s.names) AS n USING "
    "stack",
    "CREATE VIEW IF NOT EXISTS %1$s.samples AS SELECT process, time, service, host, version, "
    "build_id, pid, resident, anonymous, live_bytes, live_blocks FROM %1$s.intervals" WITH_PROCESS,
    "CREATE VIEW IF NOT EXISTS %1$s.run AS SELECT DISTINCT process, command, pid, started, "
    "service, "
    "host, version, build_id FROM %1$s.processes",
};

// ---- requests ----------------------------------------------------------------------------------

static size_t take_answer(char *bytes, size_t size, size_t count, void *context) {
    struct text *answer = context;
    if (answer->size + size * count > ANSWER_MOST)
        return 0;
    text_add(answer, bytes, size * count);
    return size * count;
}

// An answer's first line, as far as it can be shown.
static void add_answer(struct text *text, const struct text *answer) {
    size_t size = answer->size < 200 ? answer->size : 200;
    for (size_t i = 0; i < size && answer->bytes[i] != '\n'; i++)
        text_char(text, answer->bytes[i] >= ' ' && answer->bytes[i] < 127 ? answer->bytes[i] : '?');
}

// Sends a statement, and rows behind it unless they are NULL. The answer is in store->answer. NULL,
// or the problem; *is_refused: the server understood and will not do it.
static char *request(struct store *store, const char *sql, const struct text *rows,
                     bool *is_refused) {
    struct text url = {0}, problem = {0};
    char *escaped = rows ? curl_easy_escape(store->curl, sql, 0) : NULL;
    char error[CURL_ERROR_SIZE] = "";
    text_format(&url, "%s%s%s", store->base, escaped ? "?query=" : "", escaped ? escaped : "");
    curl_free(escaped);
    text_clear(&store->answer);
    curl_easy_setopt(store->curl, CURLOPT_URL, url.bytes);
    curl_easy_setopt(store->curl, CURLOPT_ERRORBUFFER, error);
    curl_easy_setopt(store->curl, CURLOPT_POSTFIELDSIZE_LARGE,
                     (curl_off_t)(rows ? rows->size : strlen(sql)));
    curl_easy_setopt(store->curl, CURLOPT_POSTFIELDS, rows ? rows->bytes : sql);
    CURLcode result = curl_easy_perform(store->curl);
    long status = 0;
    curl_easy_getinfo(store->curl, CURLINFO_RESPONSE_CODE, &status);
    if (is_refused)
        *is_refused = result == CURLE_OK && (status == 400 || status == 413);
    if (result != CURLE_OK) {
        text_string(&problem, *error ? error : curl_easy_strerror(result));
    } else if (status != 200) {
        text_format(&problem, "status %ld: ", status);
        add_answer(&problem, &store->answer);
    }
    curl_easy_setopt(store->curl, CURLOPT_ERRORBUFFER, NULL);
    text_free(&url);
    return problem.size ? text_take(&problem) : NULL;
}

// For statements that answer nothing: who answers something is not ClickHouse.
static char *command(struct store *store, const char *sql, const struct text *rows,
                     bool *is_refused) {
    char *problem = request(store, sql, rows, is_refused);
    if (!problem && store->answer.size) {
        struct text text = {0};
        text_string(&text, "an answer that ClickHouse does not give: ");
        add_answer(&text, &store->answer);
        problem = text_take(&text);
    }
    return problem;
}

static char *number_of(struct store *store, const char *sql, double *number) {
    char *problem = request(store, sql, NULL, NULL), *end;
    if (problem)
        return problem;
    text_char(&store->answer, 0);
    *number = strtod(store->answer.bytes, &end);
    if (end != store->answer.bytes && (*end == '\n' || *end == '.'))
        return NULL;
    struct text text = {0};
    text_string(&text, "an answer that ClickHouse does not give: ");
    add_answer(&text, &store->answer);
    return text_take(&text);
}

// ---- tables ------------------------------------------------------------------------------------

static char *make_table(struct store *store, enum table table, bool has_ttl) {
    const struct table_info *info = &table_infos[table];
    struct text sql = {0};
    text_format(&sql, "CREATE TABLE IF NOT EXISTS %s.%s (", store->database, info->name);
    for (const struct table_column *column = info->columns; column->name; column++)
        text_format(&sql, "%s%s %s", column == info->columns ? "" : ", ", column->name,
                    types[column->type]);
    text_format(&sql, ") ENGINE = %s", layouts[table].engine);
    if (layouts[table].has_days)
        text_string(&sql, " PARTITION BY toYYYYMMDD(time)");
    text_format(&sql, " ORDER BY (%s)", layouts[table].key);
    if (layouts[table].has_days && has_ttl && store->keep_days)
        text_format(&sql, " TTL time + INTERVAL %u DAY", store->keep_days);
    char *problem = command(store, sql.bytes, NULL, NULL);
    text_free(&sql);
    return problem;
}

static char *make_tables(struct store *store) {
    struct text sql = {0};
    double version = 0;
    if (store->is_ready)
        return NULL;
    char *problem = number_of(store, "SELECT version()", &version);
    text_format(&sql, "CREATE DATABASE IF NOT EXISTS %s", store->database);
    if (!problem)
        problem = command(store, sql.bytes, NULL, NULL);
    text_free(&sql);
    for (int table = 0; table < TABLES && !problem; table++)
        problem = make_table(store, (enum table)table, version >= TTL_SINCE);
    for (size_t i = 0; i < sizeof views / sizeof *views && !problem; i++) {
        text_format(&sql, views[i], store->database);
        problem = command(store, sql.bytes, NULL, NULL);
        text_free(&sql);
    }
    store->is_ready = !problem;
    return problem;
}

// ---- pushing -----------------------------------------------------------------------------------

static char *is_there(struct store *store, const struct batch *batch, enum table table,
                      bool *found) {
    struct text sql = {0};
    double count = 0;
    text_format(&sql,
                "SELECT count() FROM %s.%s WHERE time = toDateTime(%lld) AND process = %lld "
                "AND number = %u",
                store->database, table_infos[table].name, (long long)batch->time,
                (long long)batch->process, batch->number);
    char *problem = number_of(store, sql.bytes, &count);
    *found = count > 0;
    text_free(&sql);
    return problem;
}

static enum push_result push(struct store *store, const struct batch *batch, bool may_be_there,
                             char **problem) {
    bool is_refused = false, found = false;
    *problem = make_tables(store);
    if (!*problem && may_be_there)
        *problem = is_there(store, batch, TABLE_INTERVALS, &found);
    for (int table = 0; table < TABLES && !*problem && !found; table++) {
        bool has_rows = batch->rows[table].size > 0, is_done = false;
        if (has_rows && may_be_there && layouts[table].has_days)
            *problem = is_there(store, batch, (enum table)table, &is_done);
        if (!has_rows || is_done || *problem)
            continue;
        struct text sql = {0};
        text_format(&sql, "INSERT INTO %s.%s FORMAT TabSeparated", store->database,
                    table_infos[table].name);
        *problem = command(store, sql.bytes, &batch->rows[table], &is_refused);
        text_free(&sql);
    }
    if (*problem)
        store->is_ready = false; // tables may have been dropped
    return !*problem ? PUSH_DONE : is_refused ? PUSH_REFUSED : PUSH_FAILED;
}

// ---- asking ------------------------------------------------------------------------------------

// A value as TabSeparated writes it, up to its end.
static char *read_value(const char **at) {
    struct text text = {0};
    const char *from = *at;
    static const char escapes[] = "b\bf\fr\rn\nt\t0";
    if (strncmp(from, "\\N", 2) == 0 && (from[2] == '\t' || from[2] == '\n')) {
        *at += 2;
        return NULL;
    }
    for (; *from && *from != '\t' && *from != '\n'; from++) {
        char c = *from;
        if (c == '\\' && from[1]) {
            const char *escape = strchr(escapes, *++from);
            c = escape && (escape - escapes) % 2 == 0 ? escape[1] : *from;
        }
        text_char(&text, c);
    }
    *at = from;
    return text_take(&text);
}

static bool is_number(const char *type) {
    static const char *const numbers[] = {"Int", "UInt", "Float", "Decimal"};
    if (strncmp(type, "Nullable(", 9) == 0)
        type += 9;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strncmp(type, numbers[i], strlen(numbers[i])) == 0)
            return true;
    return false;
}

// A line of names, a line of types, then the rows.
static void read_rows(const char *at, struct store_rows *rows) {
    size_t cells = 0, types = 0;
    while (*at && *at != '\n') {
        *vector_push(rows->names, rows->columns) = read_value(&at);
        at += *at == '\t';
    }
    at += *at == '\n';
    rows->are_numbers = base_allocate(rows->columns + 1);
    for (; types < rows->columns && *at; types++) {
        char *type = read_value(&at);
        rows->are_numbers[types] = type && is_number(type);
        free(type);
        at += *at != 0;
    }
    while (*at && rows->columns) {
        *vector_push(rows->cells, cells) = read_value(&at);
        if (*at)
            at++;
    }
    rows->count = rows->columns ? cells / rows->columns : 0;
    while (cells > rows->count * rows->columns)
        free(rows->cells[--cells]);
}

static char *query(struct store *store, const char *sql, struct store_rows *rows) {
    struct text whole = {0};
    size_t size = strlen(sql);
    *rows = (struct store_rows){0};
    while (size && strchr("; \n\t", sql[size - 1]))
        size--;
    text_add(&whole, sql, size);
    text_string(&whole, "\nFORMAT TabSeparatedWithNamesAndTypes");
    char *base = store->base;
    struct text url = {0};
    // Statements can only read; names of tables are those of the database.
    text_format(&url, "%s?readonly=1&database=%s", base, store->database);
    store->base = url.bytes;
    char *problem = request(store, whole.bytes, NULL, NULL);
    store->base = base;
    text_free(&url);
    text_free(&whole);
    if (!problem) {
        text_char(&store->answer, 0);
        read_rows(store->answer.bytes, rows);
    }
    return problem;
}

// ---- opening -----------------------------------------------------------------------------------

static void close_store(struct store *store) {
    curl_easy_cleanup(store->curl);
    curl_slist_free_all(store->headers);
    text_free(&store->answer);
    free(store->base);
    free(store->database);
    free(store);
}

static bool is_identifier(const char *text) {
    return *text &&
           strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
               strlen(text);
}

static void add_header(struct store *store, const char *name, const char *value) {
    struct text text = {0};
    text_format(&text, "%s: %s", name, value);
    store->headers = curl_slist_append(store->headers, text.bytes);
    text_free(&text);
}

static void set_up(struct store *store, const struct store_settings *settings, const char *user) {
    const char *ca = getenv("QUERN_PUSH_CA");
    if (settings->user || user)
        add_header(store, "X-ClickHouse-User", settings->user ? settings->user : user);
    if (settings->password)
        add_header(store, "X-ClickHouse-Key", settings->password);
    add_header(store, "Expect", "");
    curl_easy_setopt(store->curl, CURLOPT_HTTPHEADER, store->headers);
    curl_easy_setopt(store->curl, CURLOPT_POST, 1L);
    curl_easy_setopt(store->curl, CURLOPT_NOSIGNAL, 1L);
    // On a connection in use before, libcurl repeats a request by itself if the answer does not
    // come: rows would be there twice.
    curl_easy_setopt(store->curl, CURLOPT_FORBID_REUSE, 1L);
    curl_easy_setopt(store->curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(store->curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
    curl_easy_setopt(store->curl, CURLOPT_TIMEOUT, (long)ANSWER_SECONDS);
    curl_easy_setopt(store->curl, CURLOPT_WRITEFUNCTION, take_answer);
    curl_easy_setopt(store->curl, CURLOPT_WRITEDATA, &store->answer);
    if (ca)
        curl_easy_setopt(store->curl, CURLOPT_CAINFO, ca);
}

// clickhouse://[USER@]HOST[:PORT][/DATABASE]
static struct store *open_store(const struct store_settings *settings, bool has_tls,
                                char **problem) {
    struct store *store = base_allocate(sizeof *store);
    *store = (struct store){.curl = curl_easy_init(), .keep_days = settings->keep_days};
    CURLU *url = curl_url();
    char *host = NULL, *port = NULL, *path = NULL, *user = NULL;
    struct text whole = {0};
    text_format(&whole, "http%s", strstr(settings->url, "://"));
    bool is_fine = store->curl && !curl_url_set(url, CURLUPART_URL, whole.bytes, 0) &&
                   !curl_url_get(url, CURLUPART_HOST, &host, 0);
    text_free(&whole);
    if (is_fine) {
        curl_url_get(url, CURLUPART_PORT, &port, 0);
        curl_url_get(url, CURLUPART_PATH, &path, 0);
        curl_url_get(url, CURLUPART_USER, &user, CURLU_URLDECODE);
        store->database = base_copy(path && path[1] ? path + 1 : "quern");
        text_format(&whole, "http%s://%s:%s/", has_tls ? "s" : "", host,
                    port      ? port
                    : has_tls ? "8443"
                              : "8123");
        store->base = text_take(&whole);
        set_up(store, settings, user);
    }
    if (!is_fine || !is_identifier(store->database)) {
        *problem = base_copy("the URL must be clickhouse://[USER@]HOST[:PORT][/DATABASE], with a "
                             "database of letters, digits and _");
        close_store(store);
        store = NULL;
    }
    curl_free(host);
    curl_free(port);
    curl_free(path);
    curl_free(user);
    curl_url_cleanup(url);
    return store;
}

static struct store *open_plain(const struct store_settings *settings, char **problem) {
    return open_store(settings, false, problem);
}

static struct store *open_tls(const struct store_settings *settings, char **problem) {
    return open_store(settings, true, problem);
}

#define DIALECT                                                                                    \
    .push = push, .query = query, .close = close_store, .latest = "argMax(%s, number)",            \
    .moment = "toDateTime(%lld)", .join = "ANY LEFT JOIN", .schema = "", .escapes_backslash = true
const struct store_kind store_clickhouse = {.scheme = "clickhouse", .open = open_plain, DIALECT};
const struct store_kind store_clickhouse_tls = {.scheme = "clickhouses", .open = open_tls, DIALECT};
