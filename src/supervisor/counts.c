#include "supervisor/counts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/template.h"
#include "config.h"
#include "report/callgrind.h"
#include "report/event_text.h"
#include "supervisor/counts_graph.h"
#include "supervisor/log.h"

static void write_out(const struct supervisor_request *request, int pid, const struct text *text) {
    char *error = NULL;
    char *name = template_expand(request->counts.file, pid, 1, &error);
    if (!name) {
        log_complain("--%s-out-file: %s", request->tool, error);
        free(error);
        return;
    }
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int failure = fd < 0 ? errno : fd_write_all(fd, text->bytes, text->size);
    if (fd >= 0 && close(fd) != 0 && !failure)
        failure = errno;
    if (failure)
        log_complain("cannot write '%s': %s", name, strerror(failure));
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
                         struct counts_result *result) {
    struct text out = {0};
    char *caches[3];
    struct callgrind_options options = {.lines = request->counts.lines,
                                        .instructions = request->counts.instructions,
                                        .compress_strings = request->counts.compress_strings,
                                        .compress_positions = request->counts.compress_positions,
                                        .creator = "quern-" QUERN_VERSION,
                                        .command = process->command ? process->command : "",
                                        .pid = process->pid,
                                        .part = 1,
                                        .trigger = "Program termination"};
    for (unsigned i = 0; i < 3; i++)
        options.caches[i] = caches[i] = cache_text(&result->caches[i]);
    if (request->counts.cachegrind)
        cachegrind_write(&result->graph, &options, &out);
    else
        callgrind_write(&result->graph, &options, &out);
    write_out(request, process->pid, &out);
    for (unsigned i = 0; i < 3; i++)
        free(caches[i]);
    text_free(&out);
}

void counts_report(const struct supervisor_request *request, struct symbols *symbols,
                   const struct followed *process) {
    if (!request->counts.file)
        return;
    struct counts_source source = {.file = process->counts,
                                   .pid = process->pid,
                                   .symbols = symbols,
                                   .show_below_main = request->stacks.show_below_main,
                                   .cachegrind = request->counts.cachegrind};
    struct counts_result result;
    if (counts_graph_read(&source, &result)) {
        write_report(request, process, &result);
        if (!process->muted)
            say_totals(request, process->pid, &result.graph);
        if (result.incomplete)
            log_complain("the counts of process %d are not complete: it has more code, threads or "
                         "calls than there is room for",
                         process->pid);
    } else {
        log_complain("the counts of process %d cannot be read", process->pid);
    }
    counts_graph_free(&result);
}
