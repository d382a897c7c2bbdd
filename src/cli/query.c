// quern query FILE SQL: queries a recording.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/arguments.h"
#include "cli/store_words.h"
#include "cli/verbs.h"
#include "cli/words.h"
#include "report/heap/query.h"

static int answer(const char *path, const char *sql, enum heap_query_style style) {
    char *problem = NULL;
    struct heap_query *query = heap_query_new(sql, &problem);
    struct heap_file file;
    int status = query ? words_recording(path, &file, NULL, NULL, 0) : WORDS_FAILED;
    if (status != WORDS_FAILED) {
        problem = heap_query_fill(query, path, &file);
        if (!problem)
            problem = heap_query_write(query, stdout, style);
        if (!words_close(stdout, NULL))
            status = WORDS_FAILED;
        heap_file_free(&file);
    }
    if (problem)
        status = words_fail("cannot answer that: %s", problem);
    free(problem);
    if (query)
        heap_query_free(query);
    return status;
}

static int ask_store(const struct arguments *arguments, enum heap_query_style style) {
    static const char *const styles[] = {"columns", "tabs", "json"};
    struct store_words words = {0};
    if (arguments->operand_count > 1)
        return words_fail("with --store there is no FILE: one statement, in quotes");
    store_words_option(&words, arguments, "store", "store");
    store_words_option(&words, arguments, "credentials", "credentials");
    store_words_add(&words, "style", styles[style]);
    store_words_add(&words, "sql", arguments->operands[0]);
    return store_words_run(&words, "query");
}

static int run_query(const struct arguments *arguments) {
    enum heap_query_style style = isatty(STDOUT_FILENO) ? HEAP_QUERY_COLUMNS : HEAP_QUERY_TABS;
    if (argument_given(arguments, "json"))
        style = HEAP_QUERY_JSON;
    if (argument_given(arguments, "store"))
        return ask_store(arguments, style);
    if (arguments->operand_count < 2)
        return words_fail("no SQL given; quern query --help lists the tables");
    if (arguments->operand_count > 2)
        return words_fail("one statement at a time; put it in quotes");
    return answer(arguments->operands[0], arguments->operands[1], style);
}

static bool offer_tables(size_t index, struct option_choice *choice) {
    static const struct option_choice tables[] = {
        {.name = "allocations",
         .help = "number size stack thread time freed_time freed_thread resizes"},
        {.name = "stacks",
         .help = "stack allocated_bytes allocated_blocks peak_bytes peak_blocks leaked_bytes "
                 "leaked_blocks temporary_blocks mapped_bytes truncated folded"},
        {.name = "frames", .help = "stack depth function file line module inlined address"},
        {.name = "threads", .help = "thread tid name"},
        {.name = "modules", .help = "path start size offset"},
        {.name = "regions", .help = "number kind bytes stack thread time mapped"},
        {.name = "samples", .help = "time resident minor_faults major_faults"},
        {.name = "marks", .help = "time thread kind name live_bytes live_blocks allocated_blocks"},
        {.name = "scopes",
         .help = "name entered seconds allocations allocated_bytes freed_bytes most_allocations"},
        {.name = "run",
         .help = "command pid started seconds peak_time complete missed resizes releases"},
    };
    if (index >= sizeof tables / sizeof *tables)
        return false;
    *choice = tables[index];
    return true;
}

static const struct option options[] = {
    {.name = "json", .type = OPTION_FLAG, .help = "write rows as a JSON array of objects"},
    {.name = "store",
     .type = OPTION_STRING,
     .value = "URL",
     .help = "ask a store that runs were pushed to, in its own SQL (docs/fleet.md)"},
    STORE_WORDS_CREDENTIALS,
    {0},
};

static const struct verb_list lists[] = {
    {"Tables and their columns (docs/query.md describes them)", offer_tables}, {0}};

const struct verb verb_query = {
    .name = "query",
    .usage = "[--json] FILE \"SELECT ...\"",
    .usage_other = "[--json] --store=URL \"SELECT ...\"",
    .help = "query a recording in SQL",
    .description =
        "FILE is a recording of --tool=heap. Rows are aligned on a terminal and separated "
        "by tabs elsewhere.\n"
        "Status 2: FILE is cut off, damaged or still being written; the answer is about the rest.",
    .options = options,
    .lists = lists,
    .operands_least = 1,
    .takes_dashes = true,
    .run = run_query,
};
