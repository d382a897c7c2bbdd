// Baselines: a line for each fingerprint, with how many results have it. What follows on the line
// is for people:
//
//     # quern baseline 1
//     5d1b0a7c33aa9be2 1 InvalidRead parse_header
#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/vector.h"
#include "report/results/results.h"

static const char first_line[] = "# quern baseline 1";

struct known {
    uint64_t fingerprint, left;
    char *label; // for people; NULL: as it was read
};

struct baseline {
    struct known *items;
    size_t count;
};

static int by_fingerprint(const void *left, const void *right) {
    const struct known *a = left, *b = right;
    return a->fingerprint < b->fingerprint ? -1 : a->fingerprint > b->fingerprint;
}

static struct known *append(struct baseline *baseline, uint64_t fingerprint) {
    struct known *known = vector_push(baseline->items, baseline->count);
    *known = (struct known){.fingerprint = fingerprint, .left = 1};
    return known;
}

static char *refuse(const char *path, const char *reason, unsigned line) {
    struct text error = {0};
    text_format(&error, "cannot read the baseline %s", path);
    if (line)
        text_format(&error, ", line %u", line);
    text_format(&error, ": %s", reason);
    return text_take(&error);
}

static bool parse(const char *line, struct known *known) {
    char *end;
    errno = 0;
    known->fingerprint = strtoull(line, &end, 16);
    if (end != line + 16 || *end != ' ' || errno)
        return false;
    const char *number = end + 1;
    known->left = strtoull(number, &end, 10);
    return end != number && number[0] != '-' && (*end == ' ' || *end == '\0') && !errno;
}

static char *read_lines(FILE *in, const char *path, struct baseline *baseline) {
    char *line = NULL, *error = NULL;
    size_t room = 0;
    ssize_t length;
    unsigned number = 1;
    for (; !error && (length = getline(&line, &room, in)) >= 0; number++) {
        line[strcspn(line, "\n")] = '\0';
        if (number == 1 && strcmp(line, first_line) != 0)
            error = refuse(path, "it does not begin as a baseline of quern", 0);
        if (error || !line[0] || line[0] == '#')
            continue;
        struct known known;
        if (!parse(line, &known)) {
            error = refuse(path, "a fingerprint and a count are expected", number);
            continue;
        }
        append(baseline, known.fingerprint)->left = known.left;
    }
    if (!error && ferror(in))
        error = refuse(path, strerror(errno), 0);
    if (!error && number == 1)
        error = refuse(path, "it is empty; quern baseline update makes one", 0);
    free(line);
    return error;
}

struct baseline *baseline_read(const char *path, char **error) {
    FILE *in = fopen(path, "re");
    if (!in) {
        *error = refuse(path, strerror(errno), 0);
        return NULL;
    }
    struct baseline *baseline = baseline_new();
    *error = read_lines(in, path, baseline);
    fclose(in);
    if (*error) {
        baseline_free(baseline);
        return NULL;
    }
    qsort(baseline->items, baseline->count, sizeof *baseline->items, by_fingerprint);
    return baseline;
}

void baseline_free(struct baseline *baseline) {
    if (!baseline)
        return;
    for (size_t i = 0; i < baseline->count; i++)
        free(baseline->items[i].label);
    free(baseline->items);
    free(baseline);
}

bool baseline_take(struct baseline *baseline, uint64_t fingerprint) {
    struct known key = {.fingerprint = fingerprint};
    struct known *known =
        bsearch(&key, baseline->items, baseline->count, sizeof key, by_fingerprint);
    if (!known || !known->left)
        return false;
    known->left--;
    return true;
}

// ---- making ------------------------------------------------------------------------------------

struct baseline *baseline_new(void) {
    return base_allocate(sizeof(struct baseline));
}

static void add_row(struct baseline *baseline, sqlite3_stmt *row) {
    struct known *known =
        append(baseline, strtoull((const char *)sqlite3_column_text(row, 0), NULL, 16));
    const char *rule = (const char *)sqlite3_column_text(row, 1);
    const char *function = (const char *)sqlite3_column_text(row, 2);
    struct text label = {0};
    text_format(&label, "%s %s", rule ? rule : "?", function ? function : "?");
    known->label = text_take(&label);
}

static char *read_whole(const char *path, size_t *size) {
    FILE *in = fopen(path, "re");
    struct text text = {0};
    char buffer[65536];
    if (!in)
        return NULL;
    for (size_t got; (got = fread(buffer, 1, sizeof buffer, in)) > 0;)
        text_add(&text, buffer, got);
    bool failed = ferror(in) != 0;
    fclose(in);
    *size = text.size;
    if (failed)
        text_free(&text);
    return failed ? NULL : text_take(&text);
}

// SQLite knows JSON.
static bool add_json(sqlite3 *database, struct baseline *baseline, const char *json, size_t size) {
    static const char query[] =
        "SELECT json_extract(value, '$.fingerprint'), json_extract(value, '$.rule'),"
        " json_extract(value, '$.function') FROM json_each(?1, '$.findings')"
        " WHERE json_type(value, '$.fingerprint') = 'text'";
    static const char check[] = "SELECT json_extract(?1, '$.format') = 'quern-findings'";
    const char *const queries[] = {check, query};
    bool fine = true;
    for (unsigned i = 0; i < 2 && fine; i++) {
        sqlite3_stmt *statement = NULL;
        fine =
            sqlite3_prepare_v2(database, queries[i], -1, &statement, NULL) == SQLITE_OK &&
            sqlite3_bind_text64(statement, 1, json, size, SQLITE_STATIC, SQLITE_UTF8) == SQLITE_OK;
        int step = SQLITE_DONE;
        while (fine && (step = sqlite3_step(statement)) == SQLITE_ROW) {
            if (i)
                add_row(baseline, statement);
            else
                fine = sqlite3_column_int(statement, 0) == 1;
        }
        fine = fine && step == SQLITE_DONE;
        sqlite3_finalize(statement);
    }
    return fine;
}

char *baseline_add_findings(struct baseline *baseline, const char *path) {
    size_t size = 0;
    struct text error = {0};
    char *json = read_whole(path, &size);
    sqlite3 *database = NULL;
    if (!json)
        text_format(&error, "cannot read '%s': %s", path, strerror(errno));
    else if (sqlite3_open(":memory:", &database) != SQLITE_OK ||
             !add_json(database, baseline, json, size))
        text_format(&error, "cannot read '%s': it is not what --json-file writes", path);
    sqlite3_close(database);
    free(json);
    return error.size ? text_take(&error) : NULL;
}

uint64_t baseline_write(FILE *out, struct baseline *baseline) {
    uint64_t all = 0;
    if (baseline->count)
        qsort(baseline->items, baseline->count, sizeof *baseline->items, by_fingerprint);
    fprintf(out, "%s\n", first_line);
    for (size_t i = 0, next; i < baseline->count; i = next) {
        const struct known *known = &baseline->items[i];
        uint64_t count = 0;
        for (next = i; next < baseline->count; next++) {
            if (baseline->items[next].fingerprint != known->fingerprint)
                break;
            count += baseline->items[next].left;
        }
        fprintf(out, "%016" PRIx64 " %" PRIu64 " ", known->fingerprint, count);
        stack_text_escaped(out, known->label ? known->label : "");
        fputc('\n', out);
        all += count;
    }
    return all;
}
