#include "report/heap/query.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "profile/heap/blocks.h"
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
                 "time REAL, resident INTEGER, minor_faults INTEGER, major_faults INTEGER",
                 "?,?,?,?"},
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

struct heap_query {
    sqlite3 *database;
    char *sql;
    bool used[TABLES]; // by the statement
    bool used_folded;
    sqlite3_stmt *inserts[TABLES];
    struct blocks live; // of allocations
    int error;          // the first one while filling; SQLITE_OK: none
    time_t end;         // of heap_query_limit
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
    return SQLITE_OK;
}

static bool create_tables(struct heap_query *query) {
    bool fine = run(query, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA temp_store=1; "
                           "PRAGMA cache_size=-65536");
    for (int i = 0; fine && i < TABLES; i++) {
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
static sqlite3_stmt *prepare(struct heap_query *query, char **problem) {
    sqlite3_stmt *statement = NULL, *second = NULL;
    const char *rest = NULL;
    sqlite3_set_authorizer(query->database, authorize, query);
    int code = sqlite3_prepare_v2(query->database, query->sql, -1, &statement, &rest);
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

static bool is_word_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// The authorizer is not told of columns that JOIN ... USING reads: a table that is named counts.
static void note_names(struct heap_query *query) {
    for (int i = 0; i < TABLES; i++) {
        size_t size = strlen(tables[i].name);
        for (const char *at = query->sql; (at = strcasestr(at, tables[i].name)); at++)
            if ((at == query->sql || !is_word_char(at[-1])) && !is_word_char(at[size]))
                query->used[i] = true;
    }
}

struct heap_query *heap_query_new(const char *sql, char **problem) {
    struct heap_query *query = base_allocate(sizeof *query);
    *query = (struct heap_query){.sql = base_copy(sql)};
    *problem = NULL;
    // No name: a file of its own, deleted when it is closed, made only when the cache is full.
    if (sqlite3_open_v2("", &query->database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) !=
            SQLITE_OK ||
        sqlite3_limit(query->database, SQLITE_LIMIT_ATTACHED, 0) < 0 || !create_tables(query))
        *problem = message_of(query);
    else
        sqlite3_finalize(prepare(query, problem));
    note_names(query);
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
    blocks_free(&query->live);
    free(query->sql);
    free(query);
}

// ---- filling ----

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

// A block's row is written at its end. `freed` is NULL for one that has none.
static void insert_block(struct heap_query *query, const struct heap_block *block,
                         const struct heap_event *freed) {
    sqlite3_stmt *statement = query->inserts[ALLOCATIONS];
    bind_number(statement, 1, block->number);
    bind_number(statement, 2, block->size);
    bind_number(statement, 3, block->stack);
    bind_number(statement, 4, block->thread);
    sqlite3_bind_double(statement, 5, seconds(block->time));
    if (freed) {
        sqlite3_bind_double(statement, 6, seconds(freed->time));
        bind_number(statement, 7, freed->thread);
    } else {
        sqlite3_bind_null(statement, 6);
        sqlite3_bind_null(statement, 7);
    }
    bind_number(statement, 8, block->marks);
    insert(query, ALLOCATIONS);
}

static void on_event(void *context, const struct heap_event *event) {
    struct heap_query *query = context;
    struct heap_block own;
    if (!query->used[ALLOCATIONS])
        return;
    switch (event->kind) {
    case HEAP_ALLOCATED:
        *blocks_insert(&query->live, event->block->number) = *event->block;
        break;
    case HEAP_RESIZED: {
        // The mark counts resizes. The source's own copy is left alone: it may have other readers.
        struct heap_block *block = blocks_find(&query->live, event->block->number);
        uint32_t resizes = block->marks + 1;
        *block = *event->block;
        block->marks = resizes;
        break;
    }
    case HEAP_SKIPPED:
        break;
    case HEAP_FREED:
        if (blocks_remove(&query->live, event->before.number, &own))
            insert_block(query, &own, event);
        break;
    }
}

static void on_region(void *context, const struct heap_region *region) {
    static const char *const kinds[HEAP_REGION_KINDS] = {"anonymous", "file", "break"};
    struct heap_query *query = context;
    sqlite3_stmt *statement = query->inserts[REGIONS];
    if (!query->used[REGIONS])
        return;
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
    if (!query->used[SAMPLES])
        return;
    sqlite3_bind_double(statement, 1, seconds(sample->time));
    bind_number(statement, 2, sample->resident);
    bind_number(statement, 3, sample->minor_faults);
    bind_number(statement, 4, sample->major_faults);
    insert(query, SAMPLES);
}

static void on_mapping(void *context, const struct heap_mapping *mapping) {
    struct heap_query *query = context;
    sqlite3_stmt *statement = query->inserts[MODULES];
    if (!query->used[MODULES])
        return;
    bind_text(statement, 1, mapping->path);
    bind_address(statement, 2, mapping->start);
    bind_number(statement, 3, mapping->end - mapping->start);
    bind_number(statement, 4, mapping->offset);
    insert(query, MODULES);
}

static void on_end(void *context, uint64_t time) {
    struct heap_query *query = context;
    for (size_t i = 0; i < query->live.room; i++)
        if (query->live.slots[i].key)
            insert_block(query, &query->live.slots[i].block, NULL);
}

void heap_query_sink(struct heap_query *query, struct heap_sink *sink) {
    *sink = (struct heap_sink){
        .context = query,
        .event = on_event,
        .mapping = on_mapping,
        .region = on_region,
        .sample = on_sample,
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
    char *label = heap_file_label(frame);
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

char *heap_query_fill(struct heap_query *query, const struct heap_file *file) {
    for (size_t i = 0; i < file->summary.site_count; i++) {
        if (!rows_has(&file->summary.sites[i]))
            continue;
        if (query->used[STACKS])
            insert_stack(query, file, (uint32_t)i);
        if (query->used[FRAMES])
            rows_frames(file, (uint32_t)i, insert_frame,
                        &(struct frames){.query = query, .stack = (uint32_t)i});
    }
    if (query->used[THREADS])
        insert_threads(query, &file->summary);
    if (query->used[MARKS])
        insert_marks(query, &file->summary.marks);
    if (query->used[SCOPES])
        insert_scopes(query, &file->summary.marks);
    if (query->used[RUN])
        insert_run(query, file);
    if (query->error != SQLITE_OK)
        return base_copy(sqlite3_errstr(query->error));
    return run(query, "COMMIT") ? NULL : message_of(query);
}

char *heap_query_write(struct heap_query *query, FILE *out, enum heap_query_style style) {
    char *problem = NULL;
    sqlite3_stmt *statement = prepare(query, &problem);
    if (!statement)
        return problem;
    if (query_out(out, statement, style) != SQLITE_DONE)
        problem = message_of(query);
    sqlite3_finalize(statement);
    return problem;
}

#define STEPS 100000 // of SQLite's machine between two looks at the clock

static int is_late(void *context) {
    struct heap_query *query = context;
    return time(NULL) > query->end;
}

void heap_query_limit(struct heap_query *query, unsigned seconds) {
    query->end = time(NULL) + seconds;
    sqlite3_progress_handler(query->database, STEPS, is_late, query);
}
