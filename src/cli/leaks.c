// quern leaks --pid=PID: what a running process has on its heap, and what of that it has lost.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/census.h"
#include "attach/objects.h"
#include "base/option_table.h"
#include "cli/arguments.h"
#include "cli/verbs.h"
#include "cli/words.h"
#include "report/heap/census.h"

// ---- looking at the copy -----------------------------------------------------------------------

static bool first_word(void *context, uint64_t block, uint64_t *word) {
    const struct census_taken *taken = context;
    const struct snapshot *snapshot = &taken->snapshot;
    if (!snapshot_word(snapshot, block, word))
        return false;
    const struct maps_mapping *mapping = *word % 8 ? NULL : snapshot_mapping(snapshot, *word);
    return mapping && mapping->inode && !mapping->writable;
}

static char *name_place(void *context, uint64_t root) {
    return census_place(context, root);
}

static void map_objects(struct symbols *symbols, const struct snapshot *snapshot) {
    for (size_t i = 0; i < snapshot->mapping_count; i++) {
        const struct maps_mapping *mapping = &snapshot->mappings[i];
        if (!mapping->inode || mapping->path[0] != '/' || strstr(mapping->path, " (deleted)"))
            continue;
        char *path = object_path(snapshot->pid, mapping->path);
        symbols_map(symbols, snapshot->pid, mapping->start, mapping->end, mapping->offset, path,
                    NULL);
        free(path);
    }
}

// ---- the verb ----------------------------------------------------------------------------------

static int report(struct census_taken *taken, const struct arguments *arguments) {
    struct census_report made;
    struct census_options options = {
        .top = argument_number(arguments, "top"),
        .kinds = leak_kinds_in(argument_text(arguments, "show-leak-kinds"))};
    struct leak_graph *graph =
        census_leaks(taken, leak_heuristics_in(argument_text(arguments, "leak-check-heuristics")));
    if (!graph)
        return words_fail("cannot search process %d for leaks: it cannot be read",
                          taken->census.pid);
    struct symbols *symbols = symbols_new(&(struct symbols_options){.no_lines = true});
    map_objects(symbols, &taken->snapshot);
    struct census_view view = {taken, symbols, first_word, name_place};
    census_report_make(&made, &taken->census, graph, &view);
    (argument_given(arguments, "json") ? census_json : census_text)(stdout, &made, &options);
    census_report_free(&made);
    symbols_free(symbols);
    leak_graph_free(graph);
    return words_close(stdout, NULL) ? WORDS_DONE : WORDS_FAILED;
}

static int run_leaks(const struct arguments *arguments) {
    struct census_taken taken;
    if (arguments->operand_count)
        return words_fail("quern leaks looks at a process that runs: give its number by --pid=PID; "
                          "quern --tool=memcheck runs a program and reports its leaks");
    if (!argument_given(arguments, "pid"))
        return help_usage_error(arguments->verb);
    int pid = (int)argument_number(arguments, "pid"), status = WORDS_DONE;
    char *problem = census_take(&taken, pid);
    if (problem)
        status = words_fail("cannot attach to process %d: %s", pid, problem);
    else
        status = report(&taken, arguments);
    free(problem);
    census_free(&taken);
    return status;
}

static const struct option options[] = {
    {NUMBER("pid", NULL, 1, INT_MAX), .value = "PID", .help = "process to look at"},
    {NUMBER("top", "10", 1, 1000000), .value = "N", .help = "lines in each list"},
    {SET("show-leak-kinds", "definite|indirect|possible|reachable|all|none", "definite,possible"),
     .help = "kinds of lost blocks to list"},
    {SET("leak-check-heuristics", "stdstring|length64|newarray|multipleinheritance|all|none",
         "all"),
     .help = "pointers to the inside of a block that count as pointers to its start"},
    {FLAG("json", 0), .help = "write JSON"},
    {0},
};

const struct verb verb_leaks = {
    .name = "leaks",
    .usage = "--pid=PID [options]",
    .help = "show the heap of a running process, and its leaks",
    .description =
        "Stops the process for some milliseconds, copies its memory, and lets it go on; nothing is "
        "loaded into it. In the copy, Quern counts the blocks of glibc's malloc, says what the "
        "memory of the process consists of, and searches for blocks that nothing leads to. Where "
        "blocks were allocated is not known: quern heap --pid=PID records that from now "
        "on.\n"
        "docs/attach.md says what is needed, and what the numbers mean.",
    .options = options,
    .run = run_leaks,
};
