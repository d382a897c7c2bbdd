// How the supervisor sees callgrind and cachegrind.
#include <stdlib.h>
#include <string.h>

#include "tools/callgrind/supervisor/caches.h"
#include "tools/callgrind/supervisor/counts.h"
#include "tools/callgrind/supervisor/options.h"

// ---- settings ----------------------------------------------------------------------------------

// What is to be simulated: the engine gets the shapes of the caches.
static void choose_simulation(struct tool_setup *setup, bool is_cachegrind) {
    static const char *const names[CACHE_KINDS] = {"I1", "D1", "LL"};
    const struct option_values *values = setup->values;
    struct cache_shape shapes[CACHE_KINDS];
    struct text reason = {0};
    bool given = false;
    for (unsigned i = 0; i < CACHE_KINDS; i++)
        given |= option_given(values, names[i]);
    if (!is_cachegrind)
        given |= option_yes(values, "simulate-wb") || option_yes(values, "simulate-hwpref") ||
                 option_yes(values, "cacheuse");
    bool on = given || (option_given(values, "cache-sim") && option_yes(values, "cache-sim"));
    tool_send_option(setup, "simulate-branches=%s",
                     option_yes(values, "branch-sim") ? "yes" : "no");
    if (!on)
        return;
    caches_detect(shapes, &setup->remarks);
    for (unsigned i = 0; i < CACHE_KINDS && !setup->problem; i++) {
        const char *text = option_text(values, names[i]);
        if (text)
            cache_parse(text, &shapes[i], &reason);
        if (reason.size)
            tool_refuse(setup, "bad option: --%s=%s: %s", names[i], text, reason.bytes);
        tool_send_option(setup, "cache-%s=%llu,%u,%u", names[i], (unsigned long long)shapes[i].size,
                         shapes[i].assoc, shapes[i].line);
    }
    text_free(&reason);
    if (option_given(values, "LL"))
        text_free(&setup->remarks);
    tool_send_option(setup, "simulate-caches=yes");
}

static struct counts_settings *choose_counts(struct tool_setup *setup, bool is_cachegrind) {
    const struct option_values *values = setup->values;
    struct counts_settings *settings = base_allocate(sizeof *settings);
    *settings = (struct counts_settings){
        .file = option_text(values, is_cachegrind ? "cachegrind-out-file" : "callgrind-out-file"),
        .cachegrind = is_cachegrind,
        .separate_threads = option_yes(values, "separate-threads"),
        .combine = option_yes(values, "combine-dumps"),
        .plain_names = !is_cachegrind && !option_yes(values, "mangle-names"),
        // A cost has to be somewhere.
        .lines = option_yes(values, "dump-line") || !option_yes(values, "dump-instr"),
        .instructions = option_yes(values, "dump-instr"),
        .compress_strings = option_yes(values, "compress-strings"),
        .compress_positions = option_yes(values, "compress-pos"),
    };
    // Costs go to the function that a symbol names, as Valgrind's callgrind has it.
    setup->symbols->no_inlined = true;
    setup->symbols->keep_unmapped = true;
    choose_simulation(setup, is_cachegrind);
    return settings;
}

static void *callgrind_settings(struct tool_setup *setup) {
    return choose_counts(setup, false);
}

static void *cachegrind_settings(struct tool_setup *setup) {
    return choose_counts(setup, true);
}

// ---- the run -----------------------------------------------------------------------------------

static bool take_message(struct tool_run *run, struct followed *process,
                         const struct wire_message *message) {
    if (message->type == WIRE_FILE)
        counts_attach(process, message->fd);
    else if (message->type == WIRE_DUMP)
        counts_asked(run, process, message->text->level == 0, message->text->text);
    else
        return false;
    return true;
}

static void report(struct tool_run *run, struct followed *process) {
    if (process->own)
        counts_report(run, process);
    counts_detach(process);
}

static bool take_request(struct tool_run *run, const char *request, struct text *answer) {
    struct followed *process = followed_find(run->processes, run->main_pid);
    const struct counts_process *own = process ? process->own : NULL;
    if (!own)
        return false;
    if (strcmp(request, "dump") == 0 || strncmp(request, "dump ", 5) == 0)
        counts_dump(run, process, request[4] ? request + 5 : "quern ctl");
    else if (strcmp(request, "zero") == 0)
        counts_zero(run, process);
    else if (strcmp(request, "status") == 0)
        text_format(answer, "ok tool %s, processes %zu, dumps %u, counting %s",
                    run->request->tool->name, run->processes->count, own->dumps,
                    counts_are_on(process) ? "on" : "off");
    else if ((strcmp(request, "on") != 0 && strcmp(request, "off") != 0) ||
             !counts_switch(run, process, request[1] == 'n'))
        return false;
    if (!answer->size)
        text_string(answer, "ok");
    return true;
}

#define DUMP_REQUEST                                                                               \
    { "dump", "dump [WHY]", "write the counts since the last dump" }
#define ZERO_REQUEST                                                                               \
    { "zero", NULL, "reset all counts" }

static const struct tool_request callgrind_requests[] = {
    DUMP_REQUEST,       ZERO_REQUEST, {"off", "off, on", "pause or resume the measurement"},
    {"on", NULL, NULL}, {0},
};
static const struct tool_request cachegrind_requests[] = {DUMP_REQUEST, ZERO_REQUEST, {0}};

#define HOOKS .release = free, .message = take_message, .ended = report, .request = take_request

const struct supervisor_tool supervisor_callgrind = {
    .name = "callgrind",
    .help = "call graph with instruction and cache counts",
    .options = callgrind_options,
    .requests = callgrind_requests,
    .settings = callgrind_settings,
    HOOKS,
};

const struct supervisor_tool supervisor_cachegrind = {
    .name = "cachegrind",
    .help = "instruction and cache counts per source line",
    .options = cachegrind_options,
    .requests = cachegrind_requests,
    .settings = cachegrind_settings,
    HOOKS,
};
