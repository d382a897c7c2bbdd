#include "tools/callgrind/supervisor/counts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/template.h"
#include "config.h"
#include "supervisor/tool.h"
#include "tools/callgrind/supervisor/event_text.h"
#include "tools/callgrind/supervisor/base.h"
#include "tools/callgrind/supervisor/graph.h"

static const struct counts_settings *settings_of(const struct tool_run *run) {
    return run->state;
}

void counts_attach(struct followed *process, int file) {
    struct counts_process *own = base_allocate(sizeof *own);
    counts_detach(process);
    *own = (struct counts_process){.file = fd_move_high(file)};
    process->own = own;
}

void counts_detach(struct followed *process) {
    struct counts_process *own = process->own;
    if (!own)
        return;
    close(own->file);
    counts_base_free(own->base);
    free(own);
    process->own = NULL;
}

// Dumps have their number behind the name, but for the last one and those that are combined;
// threads have theirs after a dash.
static void write_out(const struct tool_run *run, const struct counts_source *source, unsigned part,
                      bool appends, const struct text *text) {
    char *error = NULL;
    char *base = template_expand(settings_of(run)->file, source->pid, 1, &error);
    if (!base) {
        log_complain("--%s-out-file: %s", run->request->tool->name, error);
        free(error);
        return;
    }
    struct text path = {0};
    text_string(&path, base);
    free(base);
    if (part && !settings_of(run)->combine)
        text_format(&path, ".%u", part);
    if (source->thread >= 0)
        text_format(&path, "-%02d", source->thread + 1);
    char *name = text_take(&path);
    int fd = open(name, O_WRONLY | O_CREAT | (appends ? O_APPEND : O_TRUNC) | O_CLOEXEC, 0600);
    int failure = fd < 0 ? errno : fd_write_all(fd, text->bytes, text->size);
    if (fd >= 0 && close(fd) != 0 && !failure)
        failure = errno;
    if (failure)
        log_cannot_write(run->log, name, strerror(failure));
    else if (!part)
        present_file(run->request, source->pid, name);
    free(name);
}

static void say_totals(const struct tool_run *run, int pid, const struct call_graph *graph) {
    struct text lines = {0};
    if (!log_shows(run->log, 0))
        return;
    event_text(graph, settings_of(run)->cachegrind, &lines);
    log_format(run->log, pid, LOG_USER, "%s%s", settings_of(run)->cachegrind ? "" : "\n",
               lines.bytes);
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

static void write_report(const struct tool_run *run, const struct followed *process,
                         const struct counts_source *source, struct counts_result *result,
                         const char *trigger) {
    struct text out = {0};
    char *caches[3];
    const struct counts_process *own = process->own;
    bool appends = settings_of(run)->combine && own->dumps;
    struct callgrind_options options = {.lines = settings_of(run)->lines,
                                        .instructions = settings_of(run)->instructions,
                                        // Numbers of names would mean others in each part.
                                        .compress_strings =
                                            settings_of(run)->compress_strings && !appends,
                                        .compress_positions = settings_of(run)->compress_positions,
                                        .creator = "quern-" QUERN_VERSION,
                                        .command = process->command ? process->command : "",
                                        .pid = process->pid,
                                        .part = own->dumps + 1,
                                        .continues = appends,
                                        .thread = source->thread + 1,
                                        .trigger = trigger ? trigger : "Program termination"};
    for (unsigned i = 0; i < 3; i++)
        options.caches[i] = caches[i] = cache_text(&result->caches[i]);
    if (settings_of(run)->cachegrind)
        cachegrind_write(&result->graph, &options, &out);
    else
        callgrind_write(&result->graph, &options, &out);
    write_out(run, source, trigger ? own->dumps + 1 : 0, appends, &out);
    for (unsigned i = 0; i < 3; i++)
        free(caches[i]);
    text_free(&out);
}

static struct counts_source source_of(const struct tool_run *run, const struct followed *process) {
    const struct counts_process *own = process->own;
    return (struct counts_source){.file = own->file,
                                  .pid = process->pid,
                                  .symbols = run->symbols,
                                  .show_below_main = run->request->stacks.show_below_main,
                                  .cachegrind = settings_of(run)->cachegrind,
                                  .plain_names = settings_of(run)->plain_names,
                                  .thread = -1,
                                  .base = own->base};
}

// One file, or one for each thread; totals of all of them are added to `sum`.
static bool write_all(const struct tool_run *run, const struct followed *process,
                      const char *trigger, bool *incomplete, struct call_graph *sum) {
    struct counts_source source = source_of(run, process);
    uint32_t threads = settings_of(run)->separate_threads ? counts_graph_threads(&source) : 1;
    bool sound = true;
    for (uint32_t i = 0; i < threads && sound; i++) {
        struct counts_result result;
        source.thread = settings_of(run)->separate_threads ? (int)i : -1;
        sound = counts_graph_read(&source, &result);
        if (sound) {
            write_report(run, process, &source, &result, trigger);
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

void counts_report(const struct tool_run *run, const struct followed *process) {
    struct call_graph sum = {0};
    bool incomplete = false;
    if (write_all(run, process, NULL, &incomplete, &sum)) {
        if (!process->muted)
            say_totals(run, process->pid, &sum);
        if (incomplete)
            log_complain("the counts of process %d are not complete: it has more code, threads or "
                         "calls than there is room for",
                         process->pid);
    } else {
        log_complain("the counts of process %d cannot be read", process->pid);
    }
}

void counts_dump(const struct tool_run *run, struct followed *process, const char *trigger) {
    struct call_graph sum = {0};
    bool incomplete = false;
    struct counts_process *own = process->own;
    if (!own)
        return;
    if (!own->base)
        own->base = counts_base_new();
    if (!write_all(run, process, trigger, &incomplete, &sum))
        log_complain("the counts of process %d cannot be read", process->pid);
    own->dumps++;
}

void counts_zero(const struct tool_run *run, struct followed *process) {
    struct counts_process *own = process->own;
    if (!own)
        return;
    if (!own->base)
        own->base = counts_base_new();
    struct counts_source source = source_of(run, process);
    struct counts_result result;
    source.forget = true;
    counts_graph_read(&source, &result);
    counts_graph_free(&result);
}

// cachegrind follows no calls, so that nobody would notice.
bool counts_switch(const struct tool_run *run, const struct followed *process, bool on) {
    const struct counts_process *own = process->own;
    const struct counts_source source = {.file = own->file};
    return !settings_of(run)->cachegrind && counts_graph_switch(&source, on);
}

bool counts_are_on(const struct followed *process) {
    const struct counts_process *own = process->own;
    const struct counts_source source = {.file = own->file};
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

void counts_asked(const struct tool_run *run, struct followed *process, bool dump,
                  const char *trigger) {
    if (!process->own)
        return;
    struct counts_source source = source_of(run, process);
    if (dump) {
        char *named = named_trigger(run->symbols, process->pid, trigger);
        counts_dump(run, process, named);
        free(named);
    } else {
        counts_zero(run, process);
    }
    counts_graph_answer(&source);
}
