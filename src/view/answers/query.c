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

static char *run(struct heap_query *query, const struct document *document, struct json *json) {
    int fd = open(document->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return base_copy("the file cannot be read again");
    struct heap_file file;
    struct heap_sink sink;
    struct heap_filter filter = HEAP_FILTER_ALL;
    filter.from = document->window.from;
    filter.to = document->window.to;
    bool is_part = filter.from || filter.to != UINT64_MAX;
    if (is_part)
        heap_query_sink(query, &sink);
    char *problem = is_part ? heap_filter_read(fd, &file, &filter, &sink, 1)
                            : heap_file_read_sums(fd, &file, NULL, NULL);
    close(fd);
    if (!problem)
        problem = heap_query_fill(query, document->path, &file);
    heap_file_free(&file);
    char *rows = NULL;
    size_t size;
    FILE *out = problem ? NULL : open_memstream(&rows, &size);
    if (out) {
        heap_query_limit(query, SECONDS, ROWS_MOST + 1);
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
    struct heap_query *query = heap_query_new(sql, &problem);
    if (!query)
        return problem;
    problem = run(query, document, json);
    heap_query_free(query);
    return problem;
}
