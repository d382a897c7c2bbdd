#include "supervisor/heap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/template.h"
#include "base/text.h"
#include "profile/stacks.h"
#include "report/massif_out.h"
#include "supervisor/heap_source.h"
#include "supervisor/log.h"
#include "supervisor/present.h"

// How long to wait between looks at the rings: the less there was, the longer.
#define SHORTEST_WAIT 200000
#define LONGEST_WAIT  10000000
// Words in a look after which the next one is due at once.
#define BUSY_WORDS 8192

struct process {
    int pid;
    struct heap_source *source;
    struct stacks stacks;
    struct heap_names *names;
    struct massif *massif;
};

static const struct supervisor_request *request;
static struct symbols *symbols;
static int main_pid;
static bool main_seen;
static struct process **processes;
static size_t process_count;
static int64_t next_wait = SHORTEST_WAIT;

static const struct heap_settings *settings(void) {
    return &request->heap;
}

void heap_prepare(const struct supervisor_request *run, struct symbols *names, int pid) {
    request = run;
    symbols = names;
    main_pid = pid;
    if (settings()->note && log_shows(0))
        log_print(pid, LOG_USER, settings()->note);
}

static struct process *find(int pid) {
    for (size_t i = 0; i < process_count; i++)
        if (processes[i]->pid == pid)
            return processes[i];
    return NULL;
}

// ---- massif ----

static bool is_ignored(void *context, uint32_t stack) {
    struct process *process = context;
    return heap_names_ignored(process->names, stacks_get(&process->stacks, stack));
}

static void on_stack(void *context, uint32_t id, const uint64_t *pcs, size_t count,
                     bool truncated) {
    struct process *process = context;
    stacks_set(&process->stacks, id, pcs, count, truncated);
}

static void start_massif(struct process *process) {
    struct massif_options options = settings()->massif;
    if (settings()->names.ignore_fn_count)
        options.ignore = is_ignored;
    options.ignore_context = process;
    process->massif = massif_new(&options);
    struct heap_sink sink;
    massif_sink(process->massif, &sink);
    heap_source_add(process->source, &sink);
}

// The file that the tool's option names, open for writing; NULL after a message.
static FILE *open_out_file(int pid) {
    char *reason = NULL;
    char *path = template_expand(settings()->out_file, pid, 0, &reason);
    FILE *file = path ? fopen(path, "we") : NULL;
    if (!path)
        log_complain("cannot write '%s': %s", settings()->out_file, reason);
    else if (!file)
        log_complain("cannot write '%s': %s", path, strerror(errno));
    free(path);
    free(reason);
    return file;
}

static void report_massif(struct process *process) {
    FILE *file = open_out_file(process->pid);
    if (!file)
        return;
    struct text command = {0};
    present_command(&command, (const char *const *)request->argv);
    massif_out(file, process->massif, &process->stacks, process->names,
               &(struct massif_out_options){
                   .description = settings()->description,
                   .command = command.bytes,
                   .time_unit = settings()->massif.time_unit,
                   .threshold = settings()->threshold,
               });
    text_free(&command);
    bool failed = ferror(file);
    if (fclose(file) != 0 || failed)
        log_complain("cannot write '%s': %s", settings()->out_file, strerror(errno));
}

// ---- processes ----

void heap_attach(int pid, int fd, uint64_t size) {
    if (!request || !settings()->tool) {
        close(fd);
        return;
    }
    heap_finish(pid);
    const char *problem;
    struct heap_source *source = heap_source_open(fd, size, &problem);
    if (!source) {
        log_complain("the recording of process %d cannot be read: %s", pid, problem);
        return;
    }
    main_seen |= pid == main_pid;
    struct process *process = base_allocate(sizeof *process);
    *process = (struct process){.pid = pid, .source = source};
    process->names = heap_names_new(symbols, pid, &settings()->names);
    heap_source_add(source, &(struct heap_sink){.context = process, .stack = on_stack});
    start_massif(process);
    processes = base_reallocate(processes, (process_count + 1) * sizeof *processes);
    processes[process_count++] = process;
}

void heap_map(int pid, uint64_t start, uint64_t end, uint64_t offset, const char *path) {
    struct process *process = find(pid);
    if (process)
        heap_source_mapping(process->source, &(struct heap_mapping){start, end, offset, path});
}

static void complain_if_broken(struct process *process, bool was) {
    if (!was && heap_source_broken(process->source))
        log_complain("process %d has damaged what it shares with Quern; it is recorded up to there",
                     process->pid);
}

void heap_drain(void) {
    size_t words = 0;
    for (size_t i = 0; i < process_count; i++) {
        bool was = heap_source_broken(processes[i]->source);
        size_t got = heap_source_drain(processes[i]->source, false);
        words = got > words ? got : words;
        complain_if_broken(processes[i], was);
    }
    if (words >= BUSY_WORDS)
        next_wait = 0;
    else if (words)
        next_wait = SHORTEST_WAIT;
    else
        next_wait = next_wait * 2 > LONGEST_WAIT ? LONGEST_WAIT : next_wait * 2;
    if (!words && !next_wait)
        next_wait = SHORTEST_WAIT;
}

int64_t heap_timeout(void) {
    return process_count ? next_wait : -1;
}

static void say_what_was_lost(struct process *process) {
    struct heap_source_counts counts = heap_source_counts(process->source);
    if (counts.missed)
        log_format(process->pid, LOG_USER, "%llu heap events could not be recorded",
                   (unsigned long long)counts.missed);
}

static void free_process(struct process *process) {
    if (process->massif)
        massif_free(process->massif);
    heap_names_free(process->names);
    stacks_free(&process->stacks);
    heap_source_free(process->source);
    free(process);
}

void heap_finish(int pid) {
    struct process *process = find(pid);
    if (!process)
        return;
    bool was = heap_source_broken(process->source);
    heap_source_drain(process->source, true);
    complain_if_broken(process, was);
    heap_source_end(process->source);
    say_what_was_lost(process);
    report_massif(process);
    for (size_t i = 0; i < process_count; i++) {
        if (processes[i] == process) {
            processes[i] = processes[--process_count];
            break;
        }
    }
    free_process(process);
}

void heap_finish_all(void) {
    while (process_count)
        heap_finish(processes[0]->pid);
}

void heap_finish_main(void) {
    heap_finish(main_pid);
    if (settings()->tool && !main_seen)
        log_print(main_pid, LOG_USER,
                  "The program was not recorded: it is statically linked, or was started in a way\n"
                  "that does not allow LD_PRELOAD");
}
