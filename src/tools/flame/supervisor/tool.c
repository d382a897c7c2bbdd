// How the supervisor sees flame.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/flame/supervisor/flame.h"
#include "tools/flame/supervisor/options.h"

static enum flame_sampler sampler_of(const struct option_values *values) {
    return option_is(values, "sampler", "perf")     ? FLAME_PERF
           : option_is(values, "sampler", "timers") ? FLAME_TIMERS
                                                    : FLAME_ANY;
}

// Options for all tools that flame does not serve yet.
static void refuse_unserved(struct tool_setup *setup) {
    static const char *const names[] = {"trace-children-skip", "trace-children-skip-by-arg"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (option_given(setup->values, names[i]))
            tool_refuse(setup, "--%s is not supported yet by tool 'flame'", names[i]);
}

// Whether a file is python3, or a script for it.
static bool is_python(const char *path) {
    char head[128] = "";
    char *real = realpath(path, NULL);
    const char *slash = real ? strrchr(real, '/') : NULL;
    bool is_it = slash && strncmp(slash + 1, "python3", 7) == 0;
    FILE *file = real && !is_it ? fopen(real, "re") : NULL;
    if (file && fgets(head, sizeof head, file) && strncmp(head, "#!", 2) == 0)
        is_it = strstr(head, "/python3") || strstr(head, " python3");
    if (file)
        fclose(file);
    free(real);
    return is_it;
}

// The frames of Python are read from within, by the agent. So timers sample, unless the user has
// asked for something that only perf can do.
static void choose_python(struct flame_settings *settings, struct tool_setup *setup) {
    bool asked = option_is(setup->values, "python-stacks", "yes");
    bool perf_only = settings->sampler == FLAME_PERF || settings->off_cpu ||
                     settings->without_kernel || settings->kernel_stacks_asked ||
                     settings->is_static;
    bool wanted =
        asked || (option_is(setup->values, "python-stacks", "auto") && is_python(setup->program));
    if (asked && perf_only)
        tool_refuse(setup, "--python-stacks=yes needs --sampler=timers, which does not go with "
                           "--sampler=perf, --off-cpu, --kernel-time, --kernel-stacks or static "
                           "programs");
    settings->interpreters = wanted && !perf_only && settings->agent;
    if (settings->interpreters)
        settings->sampler = FLAME_TIMERS;
}

static void *flame_settings(struct tool_setup *setup) {
    const struct option_values *values = setup->values;
    struct flame *flame = base_allocate(sizeof *flame);
    *flame =
        (struct flame){.settings = {.frequency = (unsigned)option_number(values, "freq"),
                                    .stack_bytes = (size_t)option_number(values, "stack-bytes"),
                                    .children = option_yes(values, "trace-children"),
                                    .sampler = sampler_of(values),
                                    .agent = setup->find_part("quern-sampler.so", R_OK),
                                    .is_static = setup->is_static,
                                    .without_kernel = !option_yes(values, "kernel-time"),
                                    .kernel_stacks = option_yes(values, "kernel-stacks") &&
                                                     option_yes(values, "kernel-time"),
                                    .kernel_stacks_asked = option_given(values, "kernel-stacks") &&
                                                           option_yes(values, "kernel-stacks"),
                                    .fold_runtimes = option_yes(values, "fold-runtimes"),
                                    .fold_others = option_given(values, "mine"),
                                    .inverted = option_yes(values, "flame-inverted"),
                                    .python_lines = option_yes(values, "python-lines"),
                                    .off_cpu = option_yes(values, "off-cpu"),
                                    .waits_file = option_text(values, "off-cpu-out-file"),
                                    .waits_stacks_file = option_text(values, "off-cpu-stacks-file"),
                                    .all_inlined = option_given(values, "read-inline-info"),
                                    .out_file = option_text(values, "flame-out-file"),
                                    .stacks_file = option_text(values, "flame-stacks-file"),
                                    .folded_file = option_text(values, "flame-collapsed-file")}};
    setup->is_native = true;
    if (flame->settings.kernel_stacks_asked && flame->settings.without_kernel)
        tool_refuse(setup, "--kernel-stacks=yes cannot be used with --kernel-time=no");
    if (flame->settings.kernel_stacks_asked && flame->settings.sampler == FLAME_TIMERS)
        tool_refuse(setup, "--kernel-stacks=yes cannot be used with --sampler=timers");
    choose_python(&flame->settings, setup);
    refuse_unserved(setup);
    return flame;
}

static void flame_release(void *state) {
    struct flame *flame = state;
    flame_close(flame);
    free(flame->settings.agent);
    free(flame);
}

static void note_end(struct tool_run *run, struct followed *process) {
    if (process->pid != run->main_pid)
        return;
    flame_report(run->state);
    flame_close(run->state);
}

static const struct tool_request requests[] = {
    {"off", "off, on", "pause or resume the measurement"},
    {"on", NULL, NULL},
    {0},
};

const struct supervisor_tool supervisor_flame = {
    .name = "flame",
    .help = "flame graph of CPU time, sampled at native speed",
    .options = flame_options,
    .requests = requests,
    .settings = flame_settings,
    .release = flame_release,
    .choose = flame_choose,
    .enter = flame_enter,
    .open = flame_open,
    .ended = note_end,
    .request = flame_request,
    .timeout = flame_timeout,
    .drain = flame_drain,
};
