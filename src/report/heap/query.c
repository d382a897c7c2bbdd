#include "report/heap/query.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/progress.h"
#include "base/text.h"
#include "report/heap/query_table.h"
#include "report/heap/query_weight.h"
#include "report/heap/rows.h"
#include "report/shared/query_out.h"

// ---- the tables ----

enum table {
    ALLOCATIONS,
    STACKS,
    FRAMES,
    THREADS,
    MODULES,
    REGIONS,
    SAMPLES,
    MARKS,
    SCOPES,
    RUN,
    TABLES
};

static const struct {
    const char *name, *columns, *insert;
} tables[TABLES] = {
    [ALLOCATIONS] = {"allocations",
                     "number INTEGER PRIMARY KEY, size INTEGER, stack INTEGER, thread INTEGER, "
                     "time REAL, freed_time REAL, freed_thread INTEGER, resizes INTEGER",
                     "?,?,?,?,?,?,?,?"},
    [STACKS] = {"stacks",
                "stack INTEGER PRIMARY KEY, allocated_bytes INTEGER, allocated_blocks INTEGER, "
                "peak_bytes INTEGER, peak_blocks INTEGER, leaked_bytes INTEGER, "
                "leaked_blocks INTEGER, temporary_blocks INTEGER, mapped_bytes INTEGER, "
                "truncated INTEGER, folded TEXT",
                "?,?,?,?,?,?,?,?,?,?,?"},
    [FRAMES] = {"frames",
                "stack INTEGER, depth INTEGER, function TEXT, file TEXT, line INTEGER, "
                "module TEXT, inlined INTEGER, address TEXT, PRIMARY KEY (stack, depth)",
                "?,?,?,?,?,?,?,?"},
    [THREADS] = {"threads", "thread INTEGER PRIMARY KEY, tid INTEGER, name TEXT", "?,?,?"},
    [MODULES] = {"modules", "path TEXT, start TEXT, size INTEGER, offset INTEGER", "?,?,?,?"},
    [REGIONS] = {"regions",
                 "number INTEGER, kind TEXT, bytes INTEGER, stack INTEGER, thread INTEGER, "
                 "time REAL, mapped INTEGER",
                 "?,?,?,?,?,?,?"},
    [SAMPLES] = {"samples",
                 "time REAL, resident INTEGER, minor_faults INTEGER, major_faults INTEGER, "
                 "anonymous INTEGER",
                 "?,?,?,?,?"},
    [MARKS] = {"marks",
               "time REAL, thread INTEGER, kind TEXT, name TEXT, live_bytes INTEGER, "
               "live_blocks INTEGER, allocated_blocks INTEGER",
               "?,?,?,?,?,?,?"},
    [SCOPES] = {"scopes",
                "name TEXT, entered INTEGER, seconds REAL, allocations INTEGER, "
                "allocated_bytes INTEGER, freed_bytes INTEGER, most_allocations INTEGER",
                "?,?,?,?,?,?,?"},
    [RUN] = {"run",
             "command TEXT, pid INTEGER, started INTEGER, seconds REAL, peak_time REAL, "
             "complete INTEGER, missed INTEGER, resizes INTEGER, releases INTEGER",
             "?,?,?,?,?,?,?,?,?"},
};

// The columns of allocations, by number.
static const char *const column_names[QUERY_COLUMNS] = {
    "number", "size", "stack", "thread", "time", "freed_time", "freed_thread", "resizes",
};
#define ALL_COLUMNS ((1u << QUERY_COLUMNS) - 1)

struct heap_query {
    sqlite3 *database;
    char *sql;
    char *weighted; // the same for rows that are counted (query_weight.h); NULL: it is not simple
    bool used[TABLES]; // by the statement
    bool used_folded;
    unsigned columns; // of allocations, a bit each
    // Blocks are rows for a table that SQLite reads as it goes. A statement that mentions them more
    // than once may look for single ones: then they are copied to a table with an index.
    bool is_copied;
    struct query_rows *rows;
    bool is_read; // the events that the statement needs
    // Blocks that SQLite reads as they come are read by a thread of their own, while the statement
    // runs.
    char *path; // of the recording; NULL: there is no such thread
    const struct progress_watcher *watcher;
    char *read_problem;
    atomic_bool is_reading, has_problem;
    atomic_bool is_over; // the statement has ended and needs no more of them
    bool was_reading;
    sqlite3_stmt *inserts[TABLES];
    int error;        // the first one while filling; SQLITE_OK: none
    unsigned seconds; // of heap_query_limit, once everything is read; 0: any number
    time_t end;       // 0: not yet known
    size_t most;      // rows; 0: all
};

static char *message_of(struct heap_query *query) {
    return base_copy(query->database ? sqlite3_errmsg(query->database) : "out of memory");
}

static bool run(struct heap_query *query, const char *sql) {
    return sqlite3_exec(query->database, sql, NULL, NULL, NULL) == SQLITE_OK;
}

// ---- preparing ----

// Reading is all a statement may do; what it reads is noted.
static int authorize(void *context, int action, const char *first, const char *second,
                     const char *database, const char *view) {
    struct heap_query *query = context;
    if (action == SQLITE_SELECT || action == SQLITE_FUNCTION || action == SQLITE_RECURSIVE)
        return SQLITE_OK;
    if (action != SQLITE_READ)
        return SQLITE_DENY;
    for (int i = 0; first && i < TABLES; i++)
        if (sqlite3_stricmp(first, tables[i].name) == 0)
            query->used[i] = true;
    if (second && sqlite3_stricmp(second, "folded") == 0)
        query->used_folded = true;
    for (unsigned i = 0; second && i < QUERY_COLUMNS; i++)
        if (sqlite3_stricmp(second, column_names[i]) == 0)
            query->columns |= 1u << i;
    return SQLITE_OK;
}

#define BLOCKS "quern_allocations" // what allocations are copied from

static bool create_tables(struct heap_query *query) {
    bool fine = run(query, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA temp_store=1; "
                           "PRAGMA cache_size=-65536");
    const char *name = query->is_copied ? BLOCKS : tables[ALLOCATIONS].name;
    fine = fine && query_table_create(query->database, name, &query->rows) == SQLITE_OK;
    for (int i = query->is_copied ? 0 : ALLOCATIONS + 1; fine && i < TABLES; i++) {
        struct text sql = {0};
        text_format(&sql, "CREATE TABLE %s (%s)%s", tables[i].name, tables[i].columns,
                    i == FRAMES ? " WITHOUT ROWID" : "");
        fine = run(query, sql.bytes);
        text_clear(&sql);
        text_format(&sql, "INSERT INTO %s VALUES (%s)", tables[i].name, tables[i].insert);
        fine = fine && sqlite3_prepare_v2(query->database, sql.bytes, -1, &query->inserts[i],
                                          NULL) == SQLITE_OK;
        text_free(&sql);
    }
    return fine;
}

// NULL, with *problem set, unless it is one statement that reads.
static sqlite3_stmt *prepare(struct heap_query *query, const char *sql, char **problem) {
    sqlite3_stmt *statement = NULL, *second = NULL;
    const char *rest = NULL;
    sqlite3_set_authorizer(query->database, authorize, query);
    int code = sqlite3_prepare_v2(query->database, sql, -1, &statement, &rest);
    // VACUUM asks nobody; it has no columns.
    if (code == SQLITE_AUTH || (statement && sqlite3_column_count(statement) == 0))
        *problem = base_copy("a recording can only be read: use SELECT");
    else if (code != SQLITE_OK)
        *problem = message_of(query);
    else if (!statement)
        *problem = base_copy("there is no statement");
    else if (sqlite3_prepare_v2(query->database, rest, -1, &second, NULL) != SQLITE_OK || second)
        *problem = base_copy("one statement at a time");
    sqlite3_set_authorizer(query->database, NULL, NULL);
    sqlite3_finalize(second);
    if (!*problem)
        return statement;
    sqlite3_finalize(statement);
    return NULL;
}

// The authorizer is not told of columns that JOIN ... USING reads: what is named counts.
static void note_names(struct heap_query *query) {
    for (int i = 0; i < TABLES; i++)
        query->used[i] |= query_mentions(query->sql, tables[i].name) > 0;
    for (unsigned i = 0; i < QUERY_COLUMNS; i++)
        if (query_mentions(query->sql, column_names[i]))
            query->columns |= 1u << i;
    if (query->is_copied || query_mentions(query->sql, "NATURAL"))
        query->columns = ALL_COLUMNS;
}

struct heap_query *heap_query_new(const char *sql, char **problem) {
    struct heap_query *query = base_allocate(sizeof *query);
    *query = (struct heap_query){
        .sql = base_copy(sql),
        .is_copied = query_mentions(sql, tables[ALLOCATIONS].name) > 1,
    };
    *problem = NULL;
    // No name: a file of its own, deleted when it is closed, made only when the cache is full.
    if (sqlite3_open_v2("", &query->database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) !=
            SQLITE_OK ||
        sqlite3_limit(query->database, SQLITE_LIMIT_ATTACHED, 0) < 0 || !create_tables(query))
        *problem = message_of(query);
    else
        sqlite3_finalize(prepare(query, query->sql, problem));
    note_names(query);
    if (query->used[ALLOCATIONS] && !query->is_copied)
        query->weighted = query_weighted(sql, QUERY_WEIGHT);
    if (!*problem && !run(query, "BEGIN"))
        *problem = message_of(query);
    if (!*problem)
        return query;
    heap_query_free(query);
    return NULL;
}

void heap_query_free(struct heap_query *query) {
    for (int i = 0; i < TABLES; i++)
        sqlite3_finalize(query->inserts[i]);
    sqlite3_close(query->database);
    if (query->rows)
        query_rows_free(query->rows);
    free(query->weighted);
    free(query->path);
    free(query->read_problem);
    free(query->sql);
    free(query);
}

// ---- filling ----

// The lower marks of a block count its resizes; the highest is the filter's.
#define RESIZES 0x7fffffffu

static void insert(struct heap_query *query, enum table table) {
    sqlite3_stmt *statement = query->inserts[table];
    sqlite3_step(statement);
    int code = sqlite3_reset(statement);
    if (code != SQLITE_OK && query->error == SQLITE_OK)
        query->error = code;
}

static double seconds(uint64_t nanoseconds) {
    return (double)nanoseconds / 1e9;
}

static void bind_number(sqlite3_stmt *statement, int at, uint64_t number) {
    sqlite3_bind_int64(statement, at, (sqlite3_int64)number);
}

// The text must live until the row is inserted. NULL is NULL.
static void bind_text(sqlite3_stmt *statement, int at, const char *text) {
    if (text)
        sqlite3_bind_text(statement, at, text, -1, SQLITE_STATIC);
    else
        sqlite3_bind_null(statement, at);
}

static void bind_address(sqlite3_stmt *statement, int at, uint64_t address) {
    char text[24];
    snprintf(text, sizeof text, "0x%llX", (unsigned long long)address);
    sqlite3_bind_text(statement, at, text, -1, SQLITE_TRANSIENT);
}

// A block's row is made at its end. `freed` is NULL for one that has none.
static void add_block(struct heap_query *query, const struct heap_block *block,
                      const struct heap_event *freed) {
    query_rows_add(query->rows, (uint64_t[QUERY_COLUMNS]){
                                    [QUERY_NUMBER] = block->number,
                                    [QUERY_SIZE] = block->size,
                                    [QUERY_STACK] = block->stack,
                                    [QUERY_THREAD] = block->thread,
                                    [QUERY_TIME] = block->time,
                                    [QUERY_FREED_TIME] = freed ? freed->time : QUERY_NULL,
                                    [QUERY_FREED_THREAD] = freed ? freed->thread : QUERY_NULL,
                                    [QUERY_RESIZES] = block->marks & RESIZES,
                                });
}

static void on_event(void *context, const struct heap_event *event) {
    if (event->kind == HEAP_FREED)
        add_block(context, &event->before, event);
    else if (event->kind == HEAP_RESIZED && (event->block->marks & RESIZES) < RESIZES)
        event->block->marks++;
}

static void on_left(void *context, const struct heap_block *block, uint64_t time) {
    add_block(context, block, NULL);
}

static void on_region(void *context, const struct heap_region *region) {
    static const char *const kinds[HEAP_REGION_KINDS] = {"anonymous", "file", "break"};
    struct heap_query *query = context;
    sqlite3_stmt *statement = query->inserts[REGIONS];
    bind_number(statement, 1, region->number);
    bind_text(statement, 2, kinds[region->kind]);
    bind_number(statement, 3, region->bytes);
    bind_number(statement, 4, region->stack);
    bind_number(statement, 5, region->thread);
    sqlite3_bind_double(statement, 6, seconds(region->time));
    bind_number(statement, 7, region->is_mapped);
    insert(query, REGIONS);
}

static void on_sample(void *context, const struct heap_sample *sample) {
    struct heap_query *query = context;
    sqlite3_stmt *statement = query->inserts[SAMPLES];
    sqlite3_bind_double(statement, 1, seconds(sample->time));
    bind_number(statement, 2, sample->resident);
    bind_number(statement, 3, sample->minor_faults);
    bind_number(statement, 4, sample->major_faults);
    if (sample->anonymous == HEAP_UNKNOWN)
        sqlite3_bind_null(statement, 5);
    else
        bind_number(statement, 5, sample->anonymous);
    insert(query, SAMPLES);
}

static void on_mapping(void *context, const struct heap_mapping *mapping) {
    struct heap_query *query = context;
    sqlite3_stmt *statement = query->inserts[MODULES];
    bind_text(statement, 1, mapping->path);
    bind_address(statement, 2, mapping->start);
    bind_number(statement, 3, mapping->end - mapping->start);
    bind_number(statement, 4, mapping->offset);
    insert(query, MODULES);
}

static void on_end(void *context, uint64_t time) {
    struct heap_query *query = context;
    query->is_read = true;
}

void heap_query_sink(struct heap_query *query, struct heap_sink *sink) {
    bool has_blocks = query->used[ALLOCATIONS];
    if (has_blocks && !query->rows)
        query->rows = query_rows_new(query->columns, query->weighted != NULL);
    *sink = (struct heap_sink){
        .context = query,
        .event = has_blocks ? on_event : NULL,
        .left = has_blocks ? on_left : NULL,
        .mapping = query->used[MODULES] ? on_mapping : NULL,
        .region = query->used[REGIONS] ? on_region : NULL,
        .sample = query->used[SAMPLES] ? on_sample : NULL,
        .end = on_end,
    };
}

struct frames {
    struct heap_query *query;
    uint32_t stack;
    uint32_t depth;
};

static void insert_frame(void *context, const struct heap_place *place,
                         const struct symbol_frame *frame) {
    struct frames *frames = context;
    sqlite3_stmt *statement = frames->query->inserts[FRAMES];
    char *label = symbol_frame_label(frame);
    bind_number(statement, 1, frames->stack);
    bind_number(statement, 2, frames->depth++);
    bind_text(statement, 3, label);
    bind_text(statement, 4, frame->line ? frame->file : NULL);
    if (frame->line)
        bind_number(statement, 5, frame->line);
    else
        sqlite3_bind_null(statement, 5);
    bind_text(statement, 6, frame->object);
    bind_number(statement, 7, frame->inlined);
    if (place)
        bind_address(statement, 8, place->address);
    else
        sqlite3_bind_null(statement, 8);
    insert(frames->query, FRAMES);
    free(label);
}

static void insert_stack(struct heap_query *query, const struct heap_file *file, uint32_t stack) {
    const struct summary_site *site = &file->summary.sites[stack];
    sqlite3_stmt *statement = query->inserts[STACKS];
    char *folded = query->used_folded ? rows_folded(file, stack) : NULL;
    bind_number(statement, 1, stack);
    bind_number(statement, 2, site->allocated_bytes);
    bind_number(statement, 3, site->allocated);
    bind_number(statement, 4, site->peak_bytes);
    bind_number(statement, 5, site->peak);
    bind_number(statement, 6, site->live_bytes);
    bind_number(statement, 7, site->live);
    bind_number(statement, 8, site->temporary);
    bind_number(statement, 9, site->mapped_bytes);
    bind_number(statement, 10, stacks_get(&file->summary.stacks, stack)->truncated);
    bind_text(statement, 11, folded);
    insert(query, STACKS);
    free(folded);
}

static void insert_run(struct heap_query *query, const struct heap_file *file) {
    sqlite3_stmt *statement = query->inserts[RUN];
    const struct recording_info *info = &file->info;
    bind_text(statement, 1, info->process.command);
    bind_number(statement, 2, (uint64_t)info->process.pid);
    bind_number(statement, 3, info->process.started);
    sqlite3_bind_double(statement, 4, seconds(file->summary.time));
    sqlite3_bind_double(statement, 5, seconds(file->summary.peak_time));
    bind_number(statement, 6, info->is_complete && !info->damage);
    bind_number(statement, 7, info->end.missed);
    bind_number(statement, 8, info->resized);
    bind_number(statement, 9, info->freed);
    insert(query, RUN);
}

static void insert_threads(struct heap_query *query, const struct summary *summary) {
    sqlite3_stmt *statement = query->inserts[THREADS];
    for (uint64_t i = 1; i <= summary->threads; i++) {
        bind_number(statement, 1, i);
        bind_number(statement, 2, (uint64_t)summary->thread_list[i].tid);
        bind_text(statement, 3, summary->thread_list[i].name);
        insert(query, THREADS);
    }
}

static void insert_marks(struct heap_query *query, const struct marks *marks) {
    sqlite3_stmt *statement = query->inserts[MARKS];
    for (size_t i = 0; i < marks->count; i++) {
        const struct marks_point *point = &marks->points[i];
        sqlite3_bind_double(statement, 1, seconds(point->time));
        bind_number(statement, 2, point->thread);
        bind_text(statement, 3, point->kind == HEAP_MARK_SNAPSHOT ? "snapshot" : "marker");
        bind_text(statement, 4, point->name);
        bind_number(statement, 5, point->live_bytes);
        bind_number(statement, 6, point->live_blocks);
        bind_number(statement, 7, point->allocated);
        insert(query, MARKS);
    }
}

static void insert_scopes(struct heap_query *query, const struct marks *marks) {
    sqlite3_stmt *statement = query->inserts[SCOPES];
    for (size_t i = 0; i < marks->scope_count; i++) {
        const struct marks_scope *scope = &marks->scopes[i];
        bind_text(statement, 1, scope->name);
        bind_number(statement, 2, scope->entered);
        sqlite3_bind_double(statement, 3, seconds(scope->time));
        bind_number(statement, 4, scope->count.allocated);
        bind_number(statement, 5, scope->count.allocated_bytes);
        bind_number(statement, 6, scope->count.freed_bytes);
        bind_number(statement, 7, scope->most);
        insert(query, SCOPES);
    }
}

// Reads what the statement needs of the events.
static char *read_events(struct heap_query *query, const char *path, bool is_skimmed) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return base_copy("the file cannot be read again");
    struct recording_info info;
    struct heap_sink sink;
    heap_query_sink(query, &sink);
    // Without blocks, events can be passed over if the file has the index that says how.
    bool fine =
        is_skimmed ? recording_skim(fd, &sink, 1, &info) : recording_read(fd, &sink, 1, &info);
    char *problem = fine ? NULL : base_copy(info.damage ? info.damage : "it cannot be read");
    recording_info_free(&info);
    close(fd);
    return problem;
}

// What streams by once more, for tables that the sums of the file do not fill. Blocks alone wait
// for the statement.
static char *read_again(struct heap_query *query, const char *path, const struct heap_file *file) {
    bool has_others = query->used[MODULES] || query->used[REGIONS] || query->used[SAMPLES];
    if (query->is_read || (!has_others && !query->used[ALLOCATIONS]))
        return NULL;
    if (!has_others && !query->is_copied) {
        query->path = base_copy(path);
        return NULL;
    }
    return read_events(query, path, !query->used[ALLOCATIONS] && file->is_indexed);
}

static char *end_rows(struct heap_query *query) {
    if (!query->rows || query_rows_done(query->rows))
        return NULL;
    struct text text = {0};
    text_format(&text, "the temporary file cannot be written: %s", strerror(errno));
    return text_take(&text);
}

static char *finish_blocks(struct heap_query *query) {
    char *problem = query->path ? NULL : end_rows(query);
    if (!problem && query->is_copied &&
        !run(query, "INSERT INTO allocations SELECT * FROM " BLOCKS))
        problem = message_of(query);
    return problem;
}

static void fill_stacks(struct heap_query *query, const struct heap_file *file) {
    bool is_needed = query->used[STACKS] || query->used[FRAMES];
    progress_stage("naming functions", file->summary.site_count);
    for (size_t i = 0; is_needed && i < file->summary.site_count && progress_at(i); i++) {
        if (!rows_has(&file->summary.sites[i]))
            continue;
        if (query->used[STACKS])
            insert_stack(query, file, (uint32_t)i);
        if (query->used[FRAMES])
            rows_frames(file, (uint32_t)i, insert_frame,
                        &(struct frames){.query = query, .stack = (uint32_t)i});
    }
    progress_end();
}

char *heap_query_fill(struct heap_query *query, const char *path, const struct heap_file *file) {
    char *problem = read_again(query, path, file);
    if (!problem)
        problem = finish_blocks(query);
    if (problem)
        return problem;
    fill_stacks(query, file);
    if (query->used[THREADS])
        insert_threads(query, &file->summary);
    if (query->used[MARKS])
        insert_marks(query, &file->summary.marks);
    if (query->used[SCOPES])
        insert_scopes(query, &file->summary.marks);
    if (query->used[RUN])
        insert_run(query, file);
    if (progress_is_cancelled())
        return base_copy(PROGRESS_CANCELLED);
    if (query->error != SQLITE_OK)
        return base_copy(sqlite3_errstr(query->error));
    // SQLite takes a table for a large one unless it knows better, and would then look through the
    // run for each block instead of through the blocks for the run.
    bool fine = run(query, "COMMIT") &&
                (!query->used[ALLOCATIONS] || !query->used[RUN] || run(query, "ANALYZE run"));
    return fine ? NULL : message_of(query);
}

// ---- the statement ----

static bool see_reading(void *context, const char *what, uint64_t done, uint64_t total) {
    struct heap_query *query = context;
    const struct progress_watcher *watcher = query->watcher;
    return !query->is_over && (!watcher || watcher->see(watcher->context, what, done, total));
}

// Adds blocks while the statement runs.
static void *read_blocks(void *context) {
    struct heap_query *query = context;
    const struct progress_watcher own = {query, see_reading};
    progress_watch(&own);
    query->read_problem = read_events(query, query->path, false);
    query->has_problem = query->read_problem;
    // Wakes the statement: what it must know is set before.
    char *problem = end_rows(query);
    if (!query->read_problem)
        query->read_problem = problem;
    else
        free(problem);
    query->is_reading = false;
    progress_watch(NULL);
    return NULL;
}

// Makes the rows before SQLite looks for them.
static bool start_reading(struct heap_query *query, pthread_t *thread) {
    struct heap_sink sink;
    heap_query_sink(query, &sink);
    query->watcher = progress_watcher();
    query->is_reading = query->was_reading = true;
    return pthread_create(thread, NULL, read_blocks, query) == 0;
}

#define STEPS 100000 // of SQLite's machine between two looks at the clock

static int is_to_stop(void *context) {
    struct heap_query *query = context;
    if (query->was_reading && !query->is_reading)
        progress_stage("running the statement", 0);
    query->was_reading = query->is_reading;
    if (!query->end && query->seconds && !query->was_reading)
        query->end = time(NULL) + query->seconds;
    return (query->end && time(NULL) > query->end) || query->has_problem || progress_is_cancelled();
}

// Runs the statement while blocks may still come. What is wrong, to be freed.
static char *run_statement(struct heap_query *query, sqlite3_stmt *statement, FILE *out,
                           const struct query_out_options *options) {
    pthread_t thread;
    if (query->path && !start_reading(query, &thread))
        return base_copy("there is no room for a thread");
    if (!query->path)
        progress_stage("running the statement", 0);
    sqlite3_progress_handler(query->database, STEPS, is_to_stop, query);
    int code = query_out(out, statement, options);
    char *problem = code == SQLITE_DONE       ? NULL
                    : progress_is_cancelled() ? base_copy(PROGRESS_CANCELLED)
                                              : message_of(query);
    // A statement that has its rows ends the reading of further blocks: that is no problem.
    bool has_failed = query->has_problem;
    query->is_over = true;
    if (query->path)
        pthread_join(thread, NULL);
    progress_end();
    if (!has_failed &&
        (!query->read_problem || strcmp(query->read_problem, PROGRESS_CANCELLED) == 0))
        return problem;
    free(problem);
    return base_copy(query->read_problem);
}

char *heap_query_write(struct heap_query *query, FILE *out, enum heap_query_style style) {
    char *problem = NULL;
    sqlite3_stmt *statement = prepare(query, query->sql, &problem), *weighted = NULL;
    if (!statement)
        return problem;
    // The columns have the names of the statement that was given.
    if (query->weighted)
        weighted = prepare(query, query->weighted, &problem);
    if (!problem)
        problem = run_statement(
            query, weighted ? weighted : statement, out,
            &(struct query_out_options){.style = style, .most = query->most, .named = statement});
    sqlite3_finalize(weighted);
    sqlite3_finalize(statement);
    return problem;
}

void heap_query_limit(struct heap_query *query, unsigned seconds, size_t rows) {
    query->seconds = seconds;
    query->most = rows;
}
