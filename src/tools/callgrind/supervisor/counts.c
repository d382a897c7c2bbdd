#include "tools/callgrind/supervisor/counts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/template.h"
#include "config.h"
#include "report/callgrind/callgrind.h"
#include "report/callgrind/event_text.h"
#include "tools/callgrind/supervisor/graph.h"
#include "supervisor/log.h"
#include "supervisor/present.h"

// Dumps have their number behind the name, but for the last one and those that are combined;
// threads have theirs after a dash.
static void write_out(const struct supervisor_request *request, const struct counts_source *source,
                      unsigned part, bool appends, const struct text *text) {
    char *error = NULL;
    char *base = template_expand(request->counts.file, source->pid, 1, &error);
    if (!base) {
        log_complain("--%s-out-file: %s", request->tool, error);
        free(error);
        return;
    }
    struct text path = {0};
    text_string(&path, base);
    free(base);
    if (part && !request->counts.combine)
        text_format(&path, ".%u", part);
    if (source->thread >= 0)
        text_format(&path, "-%02d", source->thread + 1);
    char *name = text_take(&path);
    int fd = open(name, O_WRONLY | O_CREAT | (appends ? O_APPEND : O_TRUNC) | O_CLOEXEC, 0600);
    int failure = fd < 0 ? errno : fd_write_all(fd, text->bytes, text->size);
    if (fd >= 0 && close(fd) != 0 && !failure)
        failure = errno;
    if (failure)
        log_cannot_write(name, strerror(failure));
    else if (!part)
        present_file(request, source->pid, name);
    free(name);
}

static void say_totals(const struct supervisor_request *request, int pid,
                       const struct call_graph *graph) {
    struct text lines = {0};
    if (!log_shows(0))
        return;
    event_text(graph, request->counts.cachegrind, &lines);
    log_format(pid, LOG_USER, "%s%s", request->counts.cachegrind ? "" : "\n", lines.bytes);
    text_free(&lines);
}

// What the head of the file says of a cache.
static char *cache_text(const struct counts_cache *cache) {
    struct text text = {0};
    if (!cache->line)
        return NULL;
    text_format(&text, "%llu B, %u B, ", (unsigned long long)cache->size, cache->line);
    if (cache->assoc == 1)
        text_string(&text, "direct-mapped");
    else if (cache->size == (uint64_t)cache->assoc * cache->line)
        text_string(&text, "fully associative");
    else
        text_format(&text, "%u-way associative", cache->assoc);
    return text_take(&text);
}

static void write_report(const struct supervisor_request *request, const struct followed *process,
                         const struct counts_source *source, struct counts_result *result,
                         const char *trigger) {
    struct text out = {0};
    char *caches[3];
    bool appends = request->counts.combine && process->dumps;
    struct callgrind_options options = {.lines = request->counts.lines,
                                        .instructions = request->counts.instructions,
                                        // Numbers of names would mean others in each part.
                                        .compress_strings =
                                            request->counts.compress_strings && !appends,
                                        .compress_positions = request->counts.compress_positions,
                                        .creator = "quern-" QUERN_VERSION,
                                        .command = process->command ? process->command : "",
                                        .pid = process->pid,
                                        .part = process->dumps + 1,
                                        .continues = appends,
                                        .thread = source->thread + 1,
                                        .trigger = trigger ? trigger : "Program termination"};
    for (unsigned i = 0; i < 3; i++)
        options.caches[i] = caches[i] = cache_text(&result->caches[i]);
    if (request->counts.cachegrind)
        cachegrind_write(&result->graph, &options, &out);
    else
        callgrind_write(&result->graph, &options, &out);
    write_out(request, source, trigger ? process->dumps + 1 : 0, appends, &out);
    for (unsigned i = 0; i < 3; i++)
        free(caches[i]);
    text_free(&out);
}

static struct counts_source source_of(const struct supervisor_request *request,
                                      struct symbols *symbols, const struct followed *process) {
    return (struct counts_source){.file = process->counts,
                                  .pid = process->pid,
                                  .symbols = symbols,
                                  .show_below_main = request->stacks.show_below_main,
                                  .cachegrind = request->counts.cachegrind,
                                  .thread = -1,
                                  .base = process->base};
}

// One file, or one for each thread; totals of all of them are added to `sum`.
static bool write_all(const struct supervisor_request *request, struct symbols *symbols,
                      const struct followed *process, const char *trigger, bool *incomplete,
                      struct call_graph *sum) {
    struct counts_source source = source_of(request, symbols, process);
    uint32_t threads = request->counts.separate_threads ? counts_graph_threads(&source) : 1;
    bool sound = true;
    for (uint32_t i = 0; i < threads && sound; i++) {
        struct counts_result result;
        source.thread = request->counts.separate_threads ? (int)i : -1;
        sound = counts_graph_read(&source, &result);
        if (sound) {
            write_report(request, process, &source, &result, trigger);
            *incomplete |= result.incomplete;
            sum->event_count = result.graph.event_count;
            memcpy(sum->events, result.graph.events, sizeof sum->events);
            for (unsigned e = 0; e < sum->event_count; e++)
                sum->totals[e] += result.graph.totals[e];
        }
        counts_graph_free(&result);
    }
    return sound;
}

void counts_report(const struct supervisor_request *request, struct symbols *symbols,
                   const struct followed *process) {
    struct call_graph sum = {0};
    bool incomplete = false;
    if (!request->counts.file)
        return;
    if (write_all(request, symbols, process, NULL, &incomplete, &sum)) {
        if (!process->muted)
            say_totals(request, process->pid, &sum);
        if (incomplete)
            log_complain("the counts of process %d are not complete: it has more code, threads or "
                         "calls than there is room for",
                         process->pid);
    } else {
        log_complain("the counts of process %d cannot be read", process->pid);
    }
}

void counts_dump(const struct supervisor_request *request, struct symbols *symbols,
                 struct followed *process, const char *trigger) {
    struct call_graph sum = {0};
    bool incomplete = false;
    if (!request->counts.file || process->counts < 0)
        return;
    if (!process->base)
        process->base = counts_base_new();
    if (!write_all(request, symbols, process, trigger, &incomplete, &sum))
        log_complain("the counts of process %d cannot be read", process->pid);
    process->dumps++;
}

void counts_zero(const struct supervisor_request *request, struct symbols *symbols,
                 struct followed *process) {
    if (!request->counts.file || process->counts < 0)
        return;
    if (!process->base)
        process->base = counts_base_new();
    struct counts_source source = source_of(request, symbols, process);
    struct counts_result result;
    source.forget = true;
    counts_graph_read(&source, &result);
    counts_graph_free(&result);
}

// cachegrind follows no calls, so that nobody would notice.
bool counts_switch(const struct supervisor_request *request, const struct followed *process,
                   bool on) {
    const struct counts_source source = {.file = process->counts};
    return !request->counts.cachegrind && counts_graph_switch(&source, on);
}

bool counts_are_on(const struct followed *process) {
    const struct counts_source source = {.file = process->counts};
    return counts_graph_is_on(&source);
}

// OPTION=@PC, as the target says it, with the function's name; to be freed.
static char *named_trigger(struct symbols *symbols, int pid, const char *trigger) {
    const char *at = strstr(trigger, "=@");
    struct symbol_frame frame;
    struct text text = {0};
    char *end = NULL;
    uint64_t pc = at ? strtoull(at + 2, &end, 16) : 0;
    if (strncmp(trigger, "--dump-", 7) == 0 && pc && !*end &&
        symbols_resolve(symbols, pid, pc, false, &frame, 1) && frame.name)
        text_format(&text, "%.*s=%s", (int)(at - trigger), trigger, frame.name);
    else
        text_string(&text, trigger);
    return text_take(&text);
}

void counts_asked(const struct supervisor_request *request, struct symbols *symbols,
                  struct followed *process, bool dump, const char *trigger) {
    struct counts_source source = source_of(request, symbols, process);
    if (dump) {
        char *named = named_trigger(symbols, process->pid, trigger);
        counts_dump(request, symbols, process, named);
        free(named);
    } else {
        counts_zero(request, symbols, process);
    }
    if (process->counts >= 0)
        counts_graph_answer(&source);
}
