// What a user asks of a recorded run by quern ctl.
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/heap/text.h"
#include "tools/heap/supervisor/heap.h"
#include "tools/heap/supervisor/parts.h"

static void add_number(struct text *text, uint64_t number, const char *after) {
    char digits[32];
    text_format(text, "%s%s", heap_text_number(digits, number), after);
}

static void tell_status(const struct heap_process *process, struct text *answer) {
    struct heap_source_counts counts = heap_source_counts(process->source);
    text_format(answer, "\nprocess %d: ", process->pid);
    if (process->massif) {
        add_number(answer, massif_bytes(process->massif), " bytes in ");
    } else if (process->lifetimes) {
        add_number(answer, process->lifetimes->total.live_bytes, " bytes in ");
    } else {
        add_number(answer, process->summary.total.live_bytes, " bytes in ");
    }
    add_number(answer, counts.allocated - counts.freed, " blocks; ");
    add_number(answer, counts.allocated, " allocations, ");
    add_number(answer, counts.freed, " releases, ");
    add_number(answer, counts.resized, " resizes");
    if (process->writer) {
        text_string(answer, "; ");
        add_number(answer, recording_size(process->writer), " bytes recorded in ");
        text_string(answer, process->path);
    }
}

static void take_snapshot(struct heap_process *process, struct text *answer) {
    if (process->massif) {
        massif_snapshot_now(process->massif);
        char *path = heap_write_massif(process, ++process->files);
        text_format(answer, "%s%s", answer->size > 2 ? "\n" : " ", path ? path : "not written");
        free(path);
    } else if (process->writer) {
        recording_flush(process->writer);
        text_format(answer, "%srecorded up to now in %s", answer->size > 2 ? "\n" : " ",
                    process->path);
    }
}

static bool search_all(struct text *answer) {
    struct text all = {0};
    bool found = true;
    for (size_t i = 0; i < heap_process_count() && found; i++) {
        struct text sums = {0};
        found = heap_search_leaks(heap_process_at(i), SEARCH_ASKED, &sums);
        text_format(&all, "%s%s", i ? "\n" : "", sums.bytes);
        text_free(&sums);
    }
    text_format(answer, "%s%s", found ? "ok " : "", all.bytes ? all.bytes : "");
    text_free(&all);
    return true;
}

bool heap_wish(const char *wish, struct text *answer) {
    if (!heap_settings()->tool)
        return false;
    bool status = strcmp(wish, "status") == 0;
    bool snapshot = strcmp(wish, "snapshot") == 0 && heap_settings()->tool != HEAP_TOOL_DHAT;
    if (strcmp(wish, "leaks") == 0 && !heap_settings()->recorder)
        text_string(answer, "leaks are not searched for in a program that runs translated");
    if (strcmp(wish, "leaks") == 0)
        return !heap_settings()->recorder || search_all(answer);
    if (!status && !snapshot)
        return false;
    heap_drain();
    text_string(answer, "ok");
    if (status)
        text_format(answer, " tool %s, processes %zu",
                    heap_settings()->tool == HEAP_TOOL_MASSIF ? "massif"
                    : heap_settings()->tool == HEAP_TOOL_DHAT ? "dhat"
                                                              : "heap",
                    heap_process_count());
    for (size_t i = 0; i < heap_process_count(); i++) {
        if (status)
            tell_status(heap_process_at(i), answer);
        else
            take_snapshot(heap_process_at(i), answer);
    }
    return true;
}
