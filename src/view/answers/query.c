// SQL over a recording: as quern query, with an end to rows and to time. In a window the tables
// hold what every other view shows of it.
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/heap/filter.h"
#include "report/heap/query.h"
#include "view/answers/answers.h"

#define ROWS_MOST 5000
#define SECONDS   20 // of the statement, once the tables are filled

// The statement as a part of another that stops. To be freed.
static char *limited(const char *sql) {
    size_t size = strlen(sql);
    while (size && strchr("; \t\r\n", sql[size - 1]))
        size--;
    struct text text = {0};
    text_format(&text, "SELECT * FROM (\n%.*s\n) LIMIT %d", (int)size, sql, ROWS_MOST + 1);
    return text_take(&text);
}

static char *run(struct heap_query *query, const struct document *document, struct json *json) {
    int fd = open(document->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return base_copy("the file cannot be read again");
    struct heap_file file;
    struct heap_sink sink;
    struct heap_filter filter = HEAP_FILTER_ALL;
    filter.from = document->window.from;
    filter.to = document->window.to;
    heap_query_sink(query, &sink);
    char *problem = heap_filter_read(fd, &file, &filter, &sink, 1);
    close(fd);
    if (!problem)
        problem = heap_query_fill(query, &file);
    heap_file_free(&file);
    char *rows = NULL;
    size_t size;
    FILE *out = problem ? NULL : open_memstream(&rows, &size);
    if (out) {
        heap_query_limit(query, SECONDS);
        problem = heap_query_write(query, out, HEAP_QUERY_JSON);
        fclose(out);
    }
    if (!problem && rows) {
        json_open(json, '{');
        json_number_at(json, "most", ROWS_MOST);
        json_name(json, "rows");
        json_raw(json, rows);
        json_close(json, '}');
    }
    free(rows);
    return problem;
}

char *answer_query(struct document *document, const struct ask *ask, struct json *json) {
    const char *sql = ask_value(ask, "sql");
    if (document->format != &document_recording)
        return base_copy("only recordings can be asked in SQL");
    if (!sql || !*sql)
        return base_copy("there is no statement");
    char *problem = NULL;
    // What is wrong is told of the statement as it was given.
    struct heap_query *query = heap_query_new(sql, &problem);
    if (!query)
        return problem;
    heap_query_free(query);
    char *statement = limited(sql);
    query = heap_query_new(statement, &problem);
    free(statement);
    if (!query)
        return problem;
    problem = run(query, document, json);
    heap_query_free(query);
    return problem;
}
