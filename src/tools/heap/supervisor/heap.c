// heap: the recording of a heap, and what it sums up to.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/map.h"
#include "profile/heap/summary.h"
#include "profile/recording/recording.h"
#include "supervisor/tool.h"
#include "tools/heap/supervisor/options.h"
#include "tools/shared/supervisor/recorded/recorded.h"

struct heap_state {
    struct recorded recorded;
    uint64_t max_size; // bytes of a recording; 0: any number
    size_t top;        // stacks in each list of a summary
};

// Of a process.
struct profile {
    struct recording_writer *writer; // NULL: the file cannot be written
    struct summary summary;
    char *path; // of the recording
};

static const struct heap_state *state_of(const struct recorded_process *process) {
    return (const struct heap_state *)process->recorded;
}

// ---- settings ----------------------------------------------------------------------------------

static const struct recorded_tool hooks;

static void *heap_settings(struct tool_setup *setup) {
    const struct option_values *values = setup->values;
    struct heap_state *state = base_allocate(sizeof *state);
    *state = (struct heap_state){
        .recorded = {.tool = &hooks,
                     .out_file = option_text(values, "heap-out-file"),
                     .names.depth = HEAP_FRAMES_MAX},
        .max_size = option_bytes(values, "max-size"),
        .top = (size_t)option_number(values, "top"),
    };
    recorded_settings(&state->recorded, setup, option_number(values, "heap-depth"), NULL);
    // As when the recording is read; losses are shown as memcheck shows them.
    bool finds_losses = state->recorded.leaks.check != LEAK_CHECK_NO;
    setup->symbols->plain_libc = setup->symbols->full_names = !finds_losses;
    return state;
}

static void heap_release(void *state) {
    recorded_release(state);
    free(state);
}

// ---- a process ---------------------------------------------------------------------------------

static void start(struct recorded_process *process) {
    struct profile *profile = base_allocate(sizeof *profile);
    *profile = (struct profile){0};
    process->profile = profile;
    process->stacks = &profile->summary.stacks;
    struct heap_sink sink;
    summary_sink(&profile->summary, &sink);
    heap_source_add(process->source, &sink);
    int fd = recorded_open_file(process, 0, &profile->path);
    if (fd < 0)
        return;
    char *command = recorded_command(process->recorded);
    profile->writer = recording_create(fd, &(struct recording_process){
                                               .pid = process->pid,
                                               .started = (uint64_t)time(NULL),
                                               .command = command,
                                           });
    free(command);
    recording_sink(profile->writer, &sink);
    heap_source_add(process->source, &sink);
    fleet_follow(process->recorded->run->request->fleet, process->pid, profile->path);
    struct stat file;
    if (state_of(process)->max_size && stat(profile->path, &file) == 0 && S_ISREG(file.st_mode))
        recording_set_most(profile->writer, state_of(process)->max_size);
    else if (state_of(process)->max_size)
        log_complain("'%s' is not a file that can be kept small: --max-size does not hold for it",
                     profile->path);
}

static void each_block(void *context, void (*replace)(void *context, struct heap_block *block),
                       void *replace_context) {
    heap_source_change(context, replace, replace_context);
}

// Writes the recording anew with less detail, beside the old one, which it then replaces.
static void merge_recording(struct recorded_process *process) {
    struct profile *profile = process->profile;
    struct text beside = {0};
    text_format(&beside, "%s.part", profile->path);
    int from = open(profile->path, O_RDONLY | O_CLOEXEC);
    int to = fd_move_high(open(beside.bytes, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    bool is_done = from >= 0 && to >= 0 &&
                   recording_merge(profile->writer, from, to,
                                   &(struct recording_places){process->source, each_block}) &&
                   rename(beside.bytes, profile->path) == 0;
    if (!is_done) {
        log_complain("'%s' cannot be kept small: %s", profile->path, strerror(errno));
        recording_set_most(profile->writer, 0);
        unlink(beside.bytes);
    }
    if (from >= 0)
        close(from);
    text_free(&beside);
}

static void show_line(void *context, const char *text) {
    struct recorded_process *process = context;
    log_print(process->log, process->pid, LOG_USER, text);
}

// Reading a long recording again would take as long as a user notices.
#define DIAGNOSED_BYTES (32 << 20)

static void show_diagnoses(struct recorded_process *process) {
    const struct supervisor_request *request = process->recorded->run->request;
    struct profile *profile = process->profile;
    struct stat status;
    if (!diagnosis_wanted(request, true))
        return;
    int fd = open(profile->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (!diagnosis_demanded(request) &&
        (fstat(fd, &status) < 0 || status.st_size > DIAGNOSED_BYTES)) {
        log_format(process->log, process->pid, LOG_USER,
                   "\nFor a diagnosis, run\n  quern diagnose %s", profile->path);
        close(fd);
        return;
    }
    struct heap_file file;
    struct diagnoses diagnoses = {0};
    char *problem = heap_file_read(fd, &file, NULL, 0);
    if (!problem)
        problem = diagnose(fd, &file, &diagnoses);
    diagnosis_tell(request, process->pid, &diagnoses, true);
    free(problem);
    heap_file_free(&file);
    close(fd);
}

static void show_summary(struct recorded_process *process, const struct recording_merges *merges) {
    struct profile *profile = process->profile;
    heap_text_totals(&profile->summary, show_line, process);
    heap_text_ending(&profile->summary, process->names, state_of(process)->top, show_line, process);
    char *notice = heap_text_merges(merges);
    if (notice)
        log_format(process->log, process->pid, LOG_USER, "\nmerged:     %s", notice);
    free(notice);
}

static void show_next(struct recorded_process *process) {
    const struct profile *profile = process->profile;
    log_format(process->log, process->pid, LOG_USER,
               "\nRecorded in %s: quern view %s, or quern print %s", profile->path, profile->path,
               profile->path);
}

// Who holds what may be growing, if leaks were searched for.
static void record_holders(struct recorded_process *process) {
    struct profile *profile = process->profile;
    for (size_t i = 0; process->holders && i < profile->summary.site_count; i++) {
        if (profile->summary.sites[i].peak_bytes < DIAGNOSIS_GROWTH_BYTES)
            continue;
        char *holder = recorded_holder_text(process, (uint32_t)i);
        if (*holder)
            recording_held(profile->writer, (uint32_t)i, holder);
        free(holder);
    }
}

// Names of generated code are known only while its perf map is there.
static void record_code(struct recorded_process *process) {
    struct profile *profile = process->profile;
    struct symbols *symbols = process->recorded->run->symbols;
    const struct stacks *stacks = &profile->summary.stacks;
    struct map_integers addresses = {0}, pieces = {0};
    struct symbol_code code;
    for (size_t i = 0; i < stacks->count; i++) {
        const struct stacks_entry *stack = stacks_get(stacks, (uint32_t)i);
        for (uint32_t j = 0; j < stack->count; j++) {
            bool is_new;
            map_integers_add(&addresses, stack->pcs[j], &is_new);
            if (!is_new ||
                !symbols_code(symbols, process->pid, stack->pcs[j] - 1, UINT64_MAX, &code))
                continue;
            map_integers_add(&pieces, code.start, &is_new);
            if (is_new)
                recording_code(profile->writer, &(struct heap_code){code.start, code.end, code.name,
                                                                    code.file, code.line});
        }
    }
    map_integers_free(&addresses);
    map_integers_free(&pieces);
}

static void report(struct recorded_process *process) {
    struct profile *profile = process->profile;
    const struct supervisor_request *request = process->recorded->run->request;
    struct heap_source_counts counts = heap_source_counts(process->source);
    struct recording_end end = {
        .time = profile->summary.time, .missed = counts.missed, .unknown = counts.unknown};
    struct recording_merges merges = {0};
    if (profile->writer) {
        if (recording_is_full(profile->writer))
            merge_recording(process);
        merges = recording_merges(profile->writer);
        record_holders(process);
        record_code(process);
        recording_set_sums(profile->writer, &profile->summary);
        int error = recording_close(profile->writer, &end);
        if (error) {
            log_cannot_write(process->log, profile->path, strerror(error));
            profile->writer = NULL;
        }
    }
    if (log_shows(process->log, 0))
        show_summary(process, &merges);
    if (profile->writer)
        show_diagnoses(process);
    if (profile->writer && log_shows(process->log, 0))
        show_next(process);
    struct budget_numbers numbers = {0};
    budgets_recorded(&numbers, &request->budgets, &profile->summary, profile->path);
    budgets_check(request, process->pid, &numbers);
}

static void release(struct recorded_process *process) {
    struct profile *profile = process->profile;
    fleet_ended(process->recorded->run->request->fleet, process->pid);
    free(profile->path);
    summary_free(&profile->summary);
    free(profile);
}

static uint64_t live_bytes(const struct recorded_process *process) {
    const struct profile *profile = process->profile;
    return profile->summary.total.live_bytes;
}

static void tick(struct recorded_process *process, uint64_t now) {
    struct profile *profile = process->profile;
    if (profile->writer)
        recording_tick(profile->writer, now);
    if (profile->writer && recording_is_full(profile->writer))
        merge_recording(process);
}

static void add_status(const struct recorded_process *process, struct text *answer) {
    const struct profile *profile = process->profile;
    char digits[32];
    if (profile->writer)
        text_format(answer, "; %s bytes recorded in %s",
                    text_number(digits, recording_size(profile->writer)), profile->path);
}

static void take_snapshot(struct recorded_process *process, struct text *answer) {
    struct profile *profile = process->profile;
    if (!profile->writer)
        return;
    recording_flush(profile->writer);
    text_format(answer, "%srecorded up to now in %s", answer->size > 2 ? "\n" : " ", profile->path);
}

static const struct recorded_tool hooks = {.start = start,
                                           .report = report,
                                           .release = release,
                                           .live_bytes = live_bytes,
                                           .drained = tick,
                                           .add_status = add_status,
                                           .snapshot = take_snapshot};

static const struct tool_request requests[] = {
    {"snapshot", NULL, "write what has been recorded so far"},
    RECORDED_LEAKS_REQUEST,
    {0},
};

const struct supervisor_tool supervisor_heap = {
    .name = "heap",
    .help = "recording and summary of the heap",
    .takes = TOOL_TAKES_RESULTS "|" TOOL_TAKES_SUPPRESSIONS,
    .is_exported = true,
    .options = heap_options,
    .requests = requests,
    .settings = heap_settings,
    .release = heap_release,
    RECORDED_HOOKS,
};
