// What a user asks of a recorded run by quern ctl.
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "tools/shared/supervisor/recorded/recorded.h"

static void add_number(struct text *text, uint64_t number, const char *after) {
    char digits[32];
    text_format(text, "%s%s", text_number(digits, number), after);
}

static void add_status(const struct recorded_process *process, struct text *answer) {
    const struct recorded_tool *tool = process->recorded->tool;
    struct heap_source_counts counts = heap_source_counts(process->source);
    text_format(answer, "\nprocess %d: ", process->pid);
    add_number(answer, tool->live_bytes(process), " bytes in ");
    add_number(answer, counts.allocated - counts.freed, " blocks; ");
    add_number(answer, counts.allocated, " allocations, ");
    add_number(answer, counts.freed, " releases, ");
    add_number(answer, counts.resized, " resizes");
    if (tool->add_status)
        tool->add_status(process, answer);
}

static void search_all(const struct recorded *recorded, struct text *answer) {
    struct text all = {0};
    bool found = true;
    for (size_t i = 0; i < recorded->process_count && found; i++) {
        struct text sums = {0};
        found = recorded_search_leaks(recorded->processes[i], SEARCH_ASKED, &sums);
        text_format(&all, "%s%s", i ? "\n" : "", sums.bytes);
        text_free(&sums);
    }
    text_format(answer, "%s%s", found ? "ok " : "", all.bytes ? all.bytes : "");
    text_free(&all);
}

static bool search(const struct recorded *recorded, struct text *answer) {
    if (recorded->recorder)
        search_all(recorded, answer);
    else
        text_string(answer, "leaks are not searched for in a program that runs translated");
    return true;
}

bool recorded_request(struct tool_run *run, const char *request, struct text *answer) {
    const struct recorded *recorded = run->state;
    bool is_status = strcmp(request, "status") == 0;
    if (strcmp(request, "leaks") == 0)
        return search(recorded, answer);
    if (!is_status && (strcmp(request, "snapshot") != 0 || !recorded->tool->snapshot))
        return false;
    recorded_drain(run);
    text_string(answer, "ok");
    if (is_status)
        text_format(answer, " tool %s, processes %zu", run->request->tool->name,
                    recorded->process_count);
    for (size_t i = 0; i < recorded->process_count; i++) {
        if (is_status)
            add_status(recorded->processes[i], answer);
        else
            recorded->tool->snapshot(recorded->processes[i], answer);
    }
    return true;
}
