#include "tools/flame/supervisor/sampler.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "tools/flame/supervisor/sampler_parts.h"

#define TIMERS_WAIT_NS 50000000

struct sampler {
    struct sampler_settings settings;
    struct sampler_sink sink;
    struct sampler_perf *perf;
    struct sampler_timers *timers;
    char *cause; // why not by perf
};

// What to say if neither way is open; takes the cause.
static char *neither(char *cause, const char *reason) {
    struct text text = {0};
    text_format(&text, "%s%s%s", cause ? cause : "", cause ? "; " : "", reason);
    free(cause);
    return text_take(&text);
}

struct sampler *sampler_new(const struct sampler_settings *settings, char **problem) {
    struct sampler *sampler = base_allocate(sizeof *sampler);
    *sampler = (struct sampler){.settings = *settings};
    if (settings->kind != FLAME_TIMERS)
        sampler->cause = sampler_perf_refusal(settings);
    bool perf_only = settings->kind == FLAME_PERF || settings->off_cpu || settings->without_kernel;
    if (settings->off_cpu && settings->kind == FLAME_TIMERS) {
        *problem = base_copy("--off-cpu=yes cannot be used with --sampler=timers");
    } else if (settings->without_kernel && settings->kind == FLAME_TIMERS) {
        *problem = base_copy("--kernel-time=no cannot be used with --sampler=timers");
    } else if (perf_only || (settings->kind == FLAME_ANY && !sampler->cause)) {
        *problem = sampler->cause;
        if (!sampler->cause)
            return sampler;
    } else if (settings->is_static) {
        *problem = neither(sampler->cause, "CPU timers cannot be used: the program is statically "
                                           "linked, so that nothing can be preloaded");
    } else if (!settings->agent) {
        *problem = neither(sampler->cause, "quern-sampler.so is missing; reinstall or rebuild "
                                           "Quern");
    } else {
        sampler->timers = sampler_timers_open(settings, problem);
        if (sampler->timers)
            return sampler;
        free(sampler->cause);
    }
    free(sampler);
    return NULL;
}

void sampler_enter(const struct sampler *sampler) {
    if (sampler->timers)
        sampler_timers_enter(sampler->timers);
}

bool sampler_open(struct sampler *sampler, pid_t pid, const struct sampler_sink *sink,
                  char **problem) {
    sampler->sink = *sink;
    if (sampler->timers)
        return true;
    sampler->perf = sampler_perf_open(pid, &sampler->settings, sink, problem);
    return sampler->perf != NULL;
}

void sampler_switch(struct sampler *sampler, bool on) {
    if (sampler->perf)
        sampler_perf_switch(sampler->perf, on);
    else
        sampler_timers_switch(sampler->timers, on);
}

void sampler_drain(struct sampler *sampler, bool last) {
    if (sampler->perf)
        sampler_perf_drain(sampler->perf, last);
    else
        sampler_timers_drain(sampler->timers, &sampler->sink, last);
}

int64_t sampler_interval(const struct sampler *sampler) {
    return sampler->perf ? sampler_perf_interval(sampler->perf) : TIMERS_WAIT_NS;
}

struct sampler_counts sampler_counts(const struct sampler *sampler) {
    if (sampler->perf)
        return sampler_perf_counts(sampler->perf);
    struct sampler_counts counts = sampler_timers_counts(sampler->timers);
    counts.cause = sampler->cause;
    return counts;
}

void sampler_close(struct sampler *sampler) {
    if (sampler->perf)
        sampler_perf_close(sampler->perf);
    if (sampler->timers)
        sampler_timers_close(sampler->timers);
    free(sampler->cause);
    free(sampler);
}
