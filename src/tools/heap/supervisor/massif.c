// massif: snapshots of a recorded heap over time.
#include "tools/heap/supervisor/massif.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/heap/summary.h"
#include "supervisor/tool.h"
#include "tools/heap/supervisor/options.h"

// Of a process.
struct profile {
    struct massif *massif;
    struct summary summary; // for limits
    unsigned files;         // written on demand
};

static const struct massif_state *state_of(const struct recorded_process *process) {
    return (const struct massif_state *)process->recorded;
}

static const struct supervisor_request *request_of(const struct recorded_process *process) {
    return process->recorded->run->request;
}

static struct profile *profile_of(const struct recorded_process *process) {
    return process->profile;
}

// ---- settings ----------------------------------------------------------------------------------

static enum massif_time time_unit(const char *text) {
    if (strcmp(text, "i") == 0)
        return MASSIF_INSTRUCTIONS;
    return strcmp(text, "B") == 0 ? MASSIF_BYTES : MASSIF_MILLISECONDS;
}

// The options of massif that were given, as the head of its file shows them; to be freed. NULL:
// none.
static char *given_options(const struct option_values *values) {
    struct text line = {0};
    for (const struct option *option = massif_options; option->name; option++) {
        const struct option_value *value = option_items(values, option->name);
        for (size_t i = 0; i < value->count; i++)
            text_format(&line, "%s--%s=%s", line.size ? " " : "", option->name, value->items[i]);
    }
    return line.size ? text_take(&line) : NULL;
}

// Why the target is to run translated although its heap is all that matters; NULL: it is not.
static const char *engine_reason(const struct option_values *values) {
    if (option_yes(values, "pages-as-heap"))
        return "Pages are followed by the engine: the program runs translated, which is slower";
    if (option_yes(values, "stacks"))
        return "Stacks are followed by the engine: the program runs translated, which is slower";
    if (option_is(values, "time-unit", "i"))
        return "Instructions are counted by the engine: the program runs translated, which is "
               "slower";
    return NULL;
}

static void refuse_contradictions(struct tool_setup *setup) {
    const struct option_values *values = setup->values;
    bool is_pages = option_yes(values, "pages-as-heap");
    if (is_pages && option_yes(values, "stacks"))
        tool_refuse(setup, "--pages-as-heap=yes and --stacks=yes cannot be used together");
    if (option_is(values, "xtree-memory", "full"))
        tool_refuse(setup, "--xtree-memory=full: massif does not note where memory is freed; "
                           "--tool=memcheck does, and --xtree-memory=allocs works here");
    if (is_pages && !option_is(values, "xtree-memory", "none"))
        tool_refuse(setup, "--pages-as-heap=yes and --xtree-memory cannot be used together yet");
}

static void choose_names(const struct option_values *values, struct heap_names_options *names) {
    const struct option_value *alloc = option_items(values, "alloc-fn");
    const struct option_value *ignore = option_items(values, "ignore-fn");
    *names = (struct heap_names_options){
        .alloc_fns = (const char *const *)alloc->items,
        .alloc_fn_count = alloc->count,
        .ignore_fns = (const char *const *)ignore->items,
        .ignore_fn_count = ignore->count,
        .depth = (size_t)option_number(values, "depth"),
    };
}

static const struct recorded_tool hooks;

static void *massif_settings(struct tool_setup *setup) {
    const struct option_values *values = setup->values;
    bool pages = option_yes(values, "heap") && option_yes(values, "pages-as-heap");
    struct massif_state *state = base_allocate(sizeof *state);
    *state = (struct massif_state){
        .recorded = {.tool = &hooks, .out_file = option_text(values, "massif-out-file")},
        .description = given_options(values),
        .threshold = option_decimal(values, "threshold"),
        .options = {.time_unit = time_unit(option_text(values, "time-unit")),
                    .no_heap = !option_yes(values, "heap"),
                    .is_pages = pages,
                    .heap_admin = pages ? 0 : (unsigned)option_number(values, "heap-admin"),
                    .max_snapshots = (unsigned)option_number(values, "max-snapshots"),
                    .detailed_freq = (unsigned)option_number(values, "detailed-freq"),
                    .peak_inaccuracy = option_decimal(values, "peak-inaccuracy")},
        .xtree_compress = option_yes(values, "xtree-compress-strings"),
    };
    refuse_contradictions(setup);
    choose_names(values, &state->recorded.names);
    // Frames below main, and alloc functions, are taken off later.
    recorded_settings(&state->recorded, setup, option_number(values, "depth") + 40,
                      engine_reason(values));
    tool_send_option(setup, "follow-forks=yes");
    if (!option_is(values, "xtree-memory", "none"))
        state->xtree_memory = option_text(values, "xtree-memory-file");
    if (!option_given(values, "time-unit") && !state->recorded.note)
        state->recorded.note =
            "Time is in milliseconds; --time-unit=i counts instructions (slower)";
    return state;
}

static void massif_release(void *of) {
    struct massif_state *state = of;
    recorded_release(&state->recorded);
    free(state->description);
    free(state);
}

static bool massif_knows(const void *of, enum budget_kind kind) {
    const struct massif_state *state = of;
    return kind != BUDGET_GROWTH || state->options.time_unit == MASSIF_MILLISECONDS;
}

// ---- a process ---------------------------------------------------------------------------------

static bool is_ignored(void *context, uint32_t stack) {
    struct recorded_process *process = context;
    return heap_names_ignored(process->names, stacks_get(process->stacks, stack));
}

static void start(struct recorded_process *process) {
    struct massif_options options = state_of(process)->options;
    struct profile *profile = base_allocate(sizeof *profile);
    struct heap_sink sink;
    *profile = (struct profile){0};
    process->profile = profile;
    if (process->recorded->names.ignore_fn_count)
        options.ignore = is_ignored;
    options.ignore_context = process;
    profile->massif = massif_new(&options);
    recorded_keep_stacks(process);
    massif_sink(profile->massif, &sink);
    heap_source_add(process->source, &sink);
    if (!budgets_any(request_of(process)->budgets.limits))
        return;
    summary_sink(&profile->summary, &sink);
    heap_source_add(process->source, &sink);
}

// Writes the file as of now; its name gets `.number` at the end unless that is 0. The name, to be
// freed; NULL after a message.
static char *write_file(struct recorded_process *process, unsigned number) {
    const struct massif_state *state = state_of(process);
    char *path;
    int fd = recorded_open_file(process, number, &path);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!file) {
        free(path);
        return NULL;
    }
    char *command = recorded_command(process->recorded);
    massif_out(file, profile_of(process)->massif, process->stacks, process->names,
               &(struct massif_out_options){
                   .description = state->description,
                   .command = command,
                   .time_unit = state->options.time_unit,
                   .is_pages = state->options.is_pages,
                   .threshold = state->threshold,
               });
    free(command);
    bool failed = ferror(file);
    if (fclose(file) == 0 && !failed)
        return path;
    log_cannot_write(process->log, path, strerror(errno));
    free(path);
    return NULL;
}

// How the heap grew is only in the file.
static void check_limits(struct recorded_process *process, const char *path) {
    const struct budget_settings *limits = &request_of(process)->budgets;
    struct budget_numbers numbers = {0};
    struct massif_file file = {0};
    FILE *in = limits->limits[BUDGET_GROWTH].is_set && path ? fopen(path, "re") : NULL;
    if (!budgets_any(limits->limits))
        return;
    if (in) {
        char *problem = massif_file_read(in, &file);
        if (!problem)
            budgets_massif(&numbers, &file);
        free(problem);
        massif_file_free(&file);
        fclose(in);
    }
    budgets_recorded(&numbers, limits, &profile_of(process)->summary, NULL);
    budgets_check(process->recorded->run->request, process->pid, &numbers);
}

static void report(struct recorded_process *process) {
    char *path = write_file(process, 0);
    check_limits(process, path);
    massif_write_xtree(process);
    if (path)
        present_file(request_of(process), process->pid, path);
    free(path);
}

static void release(struct recorded_process *process) {
    struct profile *profile = profile_of(process);
    massif_free(profile->massif);
    summary_free(&profile->summary);
    free(profile);
}

static uint64_t live_bytes(const struct recorded_process *process) {
    return massif_bytes(profile_of(process)->massif);
}

// Who follows stacks is to report only what can make a snapshot.
static void publish_gate(struct recorded_process *process, uint64_t now) {
    enum massif_time unit = state_of(process)->options.time_unit;
    if (process->recorded->recorder)
        return;
    struct massif_gate gate = massif_gate(profile_of(process)->massif);
    heap_source_gate(process->source, gate.total,
                     unit == MASSIF_INSTRUCTIONS ? gate.time : UINT64_MAX,
                     unit == MASSIF_MILLISECONDS ? gate.time * 1000000 : UINT64_MAX);
}

static void take_snapshot(struct recorded_process *process, struct text *answer) {
    massif_snapshot_now(profile_of(process)->massif);
    char *path = write_file(process, ++profile_of(process)->files);
    text_format(answer, "%s%s", answer->size > 2 ? "\n" : " ", path ? path : "not written");
    free(path);
}

static const struct recorded_tool hooks = {.start = start,
                                           .report = report,
                                           .release = release,
                                           .live_bytes = live_bytes,
                                           .drained = publish_gate,
                                           .snapshot = take_snapshot};

static const struct tool_request requests[] = {
    {"snapshot", NULL, "write what has been recorded so far"},
    RECORDED_LEAKS_REQUEST,
    {0},
};

const struct supervisor_tool supervisor_massif = {
    .name = "massif",
    .help = "heap profile over time",
    .takes = TOOL_TAKES_RESULTS "|" TOOL_TAKES_SUPPRESSIONS,
    .options = massif_options,
    .requests = requests,
    .settings = massif_settings,
    .release = massif_release,
    .knows = massif_knows,
    RECORDED_HOOKS,
};
