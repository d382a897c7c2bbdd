// quern query FILE "SQL": asks a recording.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/verbs.h"
#include "cli/words.h"
#include "report/heap/query.h"

static int usage(FILE *out, int status) {
    fputs(
        "usage: quern query [--json] FILE \"SELECT ...\"\n\n"
        "FILE is a recording of --tool=heap. Rows are aligned on a terminal and separated by tabs\n"
        "elsewhere; with --json they are an array of objects. Tables (docs/query.md says more):\n\n"
        "  allocations  number size stack thread time freed_time freed_thread resizes\n"
        "  stacks       stack allocated_bytes allocated_blocks peak_bytes peak_blocks\n"
        "               leaked_bytes leaked_blocks temporary_blocks mapped_bytes truncated\n"
        "               folded\n"
        "  frames       stack depth function file line module inlined address\n"
        "  threads      thread tid name\n"
        "  modules      path start size offset\n"
        "  regions      number kind bytes stack thread time mapped\n"
        "  samples      time resident minor_faults major_faults\n"
        "  marks        time thread kind name live_bytes live_blocks allocated_blocks\n"
        "  scopes       name entered seconds allocations allocated_bytes freed_bytes\n"
        "               most_allocations\n"
        "  run          command pid started seconds peak_time complete missed resizes releases\n\n"
        "Status 2: FILE is cut off or damaged, and the answer is of what it holds.\n",
        out);
    return status;
}

static int answer(const char *path, const char *sql, enum heap_query_style style) {
    char *problem = NULL;
    struct heap_query *query = heap_query_new(sql, &problem);
    struct heap_file file;
    struct heap_sink sink;
    int status = WORDS_FAILED;
    if (query) {
        heap_query_sink(query, &sink);
        status = words_recording(path, &file, NULL, &sink, 1);
    }
    if (status != WORDS_FAILED) {
        problem = heap_query_fill(query, &file);
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

int verb_query(char **words) {
    const char *path = NULL, *sql = NULL;
    enum heap_query_style style = isatty(STDOUT_FILENO) ? HEAP_QUERY_COLUMNS : HEAP_QUERY_TABS;
    if (words_ask_help(words))
        return usage(stdout, WORDS_DONE);
    for (char **word = words; *word; word++) {
        if (strcmp(*word, "--json") == 0)
            style = HEAP_QUERY_JSON;
        else if (!path && (*word)[0] == '-')
            return words_fail("unknown option '%s'; quern query --help lists them", *word);
        else if (!path)
            path = *word;
        else if (!sql)
            sql = *word;
        else
            return words_fail("one statement at a time; put it in quotes");
    }
    if (!path)
        return usage(stderr, WORDS_FAILED);
    if (!sql)
        return words_fail("no SQL given; quern query --help lists the tables");
    return answer(path, sql, style);
}
