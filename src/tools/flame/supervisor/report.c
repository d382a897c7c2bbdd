// What flame says at the end: counts in the log, the flame graph and the stacks in files.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/template.h"
#include "supervisor/tool.h"
#include "tools/flame/supervisor/flame.h"
#include "wire/wire_samples.h"

#define TOP_MAX 10

static double percent(struct flame *flame, uint64_t part) {
    return flame->sample_count ? 100.0 * (double)part / (double)flame->sample_count : 0;
}

static uint64_t broken_count(struct flame *flame) {
    uint64_t broken = 0;
    for (unsigned end = 0; end < FLAME_END_COUNT; end++)
        broken += flame_end_is_broken(end) ? flame->ends[end] : 0;
    return broken;
}

static void show_top(struct flame *flame) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return;
    tree_text_functions(out, flame->tree, TOP_MAX);
    fclose(out);
    log_print(flame->run->log, flame->run->main_pid, LOG_USER, text);
    free(text);
}

// How complete the stacks are, and why others are not.
static void add_stacks(struct flame *flame, struct text *text) {
    uint64_t broken = broken_count(flame);
    if (flame->sample_count)
        text_format(text, "%.1f %% of the stacks are complete, %.1f %% cut short",
                    100 - percent(flame, broken), percent(flame, broken));
    else
        text_string(text, "The program took less CPU time than there is between two samples");
    if (flame->left_out)
        text_format(text,
                    "\nThe program has executed another, %s, which is sampled with "
                    "--trace-children=yes",
                    flame->left_out);
    for (unsigned end = 0; end < FLAME_END_COUNT; end++)
        if (flame_end_is_broken(end) && flame->ends[end])
            text_format(text, "\n  %.1f %%: %s", percent(flame, flame->ends[end]),
                        flame_end_text(end));
    if (flame->ends[FLAME_END_NO_USER])
        text_format(text, "\n%.1f %% of the samples are of the kernel alone (exec, exit)",
                    percent(flame, flame->ends[FLAME_END_NO_USER]));
}

static void add_python(struct text *text, const struct sampler_counts *counts) {
    unsigned major = counts->python >> 24, minor = counts->python >> 16 & 0xff;
    uint32_t state = counts->python_state;
    const char *problem = interpreted_problem(state);
    if (!counts->python)
        text_string(text, "\nFunctions of Python are not shown: there is no interpreter in the "
                          "program at its start");
    else
        text_format(text, "\nFunctions of Python %u.%u %s%s", major, minor,
                    problem                  ? "are not shown: "
                    : state == PYTHON_UNSEEN ? "are in no sample: none ran then, or this build\nof "
                                               "the interpreter is not supported yet"
                                             : "are shown, by timers only; "
                                               "--python-stacks=no\nsamples by perf, if permitted",
                    problem ? problem : "");
    if (!counts->python || problem)
        text_string(text, "\n--python-stacks=no samples by perf, if permitted");
}

// Who has sampled, and what is missing therefore.
static void add_way(struct flame *flame, struct text *text, const struct sampler_counts *counts) {
    if (counts->by_timers)
        text_format(
            text,
            "\nBy CPU timers, which the kernel looks after when its clock ticks: %llu stacks, "
            "each for\nthe time since the one before",
            (unsigned long long)counts->taken);
    if (counts->cause)
        text_format(text, "\nNot by perf: %s", counts->cause);
    if (counts->never_begun)
        text_string(text, "\nThe sampler was not loaded into the program: it does not allow "
                          "LD_PRELOAD");
    if (counts->by_timers && flame->settings.interpreters)
        add_python(text, counts);
    if (flame->settings.kernel_stacks_asked && counts->by_timers)
        text_string(text, "\nStacks end where the kernel was called: timers do not see further");
    else if (flame->settings.kernel_stacks_asked && counts->kernel_stacks &&
             !symbols_kernel_is_named(flame->symbols))
        text_string(text, "\nFunctions of the kernel have no names: it hides its addresses from "
                          "quern\n(kernel.kptr_restrict; root and CAP_SYSLOG may see them)");
    if (!counts->kernel_is_in && !flame->settings.without_kernel)
        text_string(text, "\nTime in the kernel is not sampled: kernel.perf_event_paranoid and the "
                          "capabilities\nof quern do not allow it");
}

static void show_counts(struct flame *flame) {
    struct sampler_counts counts = sampler_counts(flame->sampler);
    struct text text = {0};
    text_format(&text, "%llu samples at %u Hz, %.2f s of CPU time; %llu lost\n",
                (unsigned long long)flame->sample_count, flame->settings.frequency,
                (double)flame->sample_count / flame->settings.frequency,
                (unsigned long long)counts.lost);
    add_stacks(flame, &text);
    add_way(flame, &text, &counts);
    if (flame->tree->shortened)
        text_format(&text, "\n%.1f %% of the samples: the tree was full, inner calls are left out",
                    percent(flame, flame->tree->shortened));
    log_print(flame->run->log, flame->run->main_pid, LOG_USER, text.bytes);
    text_free(&text);
}

// A file by its template, written by `write`; its name, to be freed, or NULL after a message.
static char *write_file(struct flame *flame, const char *pattern,
                        void (*write)(struct flame *flame, FILE *out)) {
    char *reason = NULL;
    char *path = template_expand(pattern, flame->run->main_pid, 0, &reason);
    FILE *file = path ? fopen(path, "we") : NULL;
    bool written = file != NULL;
    if (file) {
        write(flame, file);
        written = !ferror(file);
        written &= fclose(file) == 0;
    }
    if (!written)
        log_cannot_write(flame->run->log, path ? path : pattern, reason ? reason : strerror(errno));
    free(reason);
    if (written)
        return path;
    free(path);
    return NULL;
}

// What the files say of the run; to be freed.
static struct stack_info describe_run(struct flame *flame) {
    struct text command = {0};
    struct text details = {0};
    present_command(&command, (const char *const *)flame->run->request->argv);
    text_format(&details, "%llu samples at %u Hz, %.1f %% of the stacks complete",
                (unsigned long long)flame->sample_count, flame->settings.frequency,
                100 - percent(flame, broken_count(flame)));
    return (struct stack_info){.command = text_take(&command),
                               .unit = base_copy("samples"),
                               .details = text_take(&details),
                               .frequency = flame->settings.frequency};
}

static struct stack_info describe_waits(struct flame *flame) {
    struct stack_info info = describe_run(flame);
    struct text details = {0};
    text_format(&details, "off CPU: %.3f s in %llu waits", (double)flame->waits.nanoseconds / 1e9,
                (unsigned long long)flame->waits.ended);
    free(info.details);
    free(info.unit);
    info.details = text_take(&details);
    info.unit = base_copy("microseconds");
    info.frequency = 0;
    return info;
}

static void put_graph(struct flame *flame, FILE *out, const struct calltree *of,
                      struct stack_info info) {
    flamegraph_write(out, of,
                     &(struct flamegraph_options){.title = info.command,
                                                  .details = info.details,
                                                  .unit = info.unit,
                                                  .inverted = flame->settings.inverted});
    stack_file_free(&info);
}

static void put_stacks(FILE *out, const struct calltree *of, struct stack_info info) {
    stack_file_write(out, of, &info);
    stack_file_free(&info);
}

static void write_graph(struct flame *flame, FILE *out) {
    put_graph(flame, out, flame->tree, describe_run(flame));
}

static void write_stacks(struct flame *flame, FILE *out) {
    put_stacks(out, flame->tree, describe_run(flame));
}

static void write_waits_graph(struct flame *flame, FILE *out) {
    put_graph(flame, out, flame->waits_tree, describe_waits(flame));
}

static void write_waits_stacks(struct flame *flame, FILE *out) {
    put_stacks(out, flame->waits_tree, describe_waits(flame));
}

static void write_folded(struct flame *flame, FILE *out) {
    folded_write(out, flame->tree);
}

static void say_where(struct flame *flame, const char *what, char *path) {
    if (path && log_shows(flame->run->log, 0))
        log_format(flame->run->log, flame->run->main_pid, LOG_USER, "%s: %s", what, path);
    free(path);
}

static void show_left_over(struct flame *flame, size_t left) {
    if (left && log_shows(flame->run->log, 0))
        log_format(flame->run->log, flame->run->main_pid, LOG_USER,
                   "%zu child process%s still running, not sampled any more", left,
                   left == 1 ? " is" : "es are");
}

static void report_waits(struct flame *flame) {
    if (log_shows(flame->run->log, 0))
        log_format(flame->run->log, flame->run->main_pid, LOG_USER,
                   "\nThreads waited %.3f s in all, %llu times",
                   (double)flame->waits.nanoseconds / 1e9, (unsigned long long)flame->waits.ended);
    say_where(flame, "Flame graph of waits",
              write_file(flame, flame->settings.waits_file, write_waits_graph));
    say_where(flame, "Stacks of waits",
              write_file(flame, flame->settings.waits_stacks_file, write_waits_stacks));
}

// Of this process alone.
static double own_seconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

void flame_report(struct flame *flame) {
    double before = own_seconds();
    show_left_over(flame, flame_gather(flame));
    if (log_shows(flame->run->log, 0)) {
        log_print(flame->run->log, flame->run->main_pid, LOG_USER, "");
        show_counts(flame);
        if (flame->sample_count) {
            log_print(flame->run->log, flame->run->main_pid, LOG_USER, "");
            show_top(flame);
            log_print(flame->run->log, flame->run->main_pid, LOG_USER, "");
        }
    }
    say_where(flame, "Flame graph", write_file(flame, flame->settings.out_file, write_graph));
    say_where(flame, "Stacks", write_file(flame, flame->settings.stacks_file, write_stacks));
    if (flame->settings.folded_file)
        say_where(flame, "Folded stacks",
                  write_file(flame, flame->settings.folded_file, write_folded));
    if (flame->waits_tree)
        report_waits(flame);
    if (log_shows(flame->run->log, 1))
        log_format(flame->run->log, flame->run->main_pid, LOG_USER,
                   "Quern's own CPU time: %.3f s until the program ended, %.3f s after that",
                   before, own_seconds() - before);
}
