// What the two samplers share with sampler.c; nobody else includes it.
#ifndef QUERN_SUPERVISOR_SAMPLER_PARTS_H
#define QUERN_SUPERVISOR_SAMPLER_PARTS_H

#include "tools/flame/supervisor/sampler.h"

// ---- sampler_events.c, sampler_perf.c: the kernel samples ----

struct sampler_perf;
struct sampler_perf *sampler_perf_open(pid_t pid, const struct sampler_settings *,
                                       const struct sampler_sink *, char **problem);
// NULL, or why the kernel will not sample processes of this user, to be freed.
char *sampler_perf_refusal(const struct sampler_settings *);
void sampler_perf_switch(struct sampler_perf *, bool on);
void sampler_perf_drain(struct sampler_perf *, bool last);
int64_t sampler_perf_interval(const struct sampler_perf *);
struct sampler_counts sampler_perf_counts(const struct sampler_perf *);
void sampler_perf_close(struct sampler_perf *);

// ---- sampler_timers.c: the target samples itself ----

struct sampler_timers;
// Before the target is forked. NULL, and in *problem why, to be freed.
struct sampler_timers *sampler_timers_open(const struct sampler_settings *, char **problem);
// In the forked child: what it executes next samples itself.
void sampler_timers_enter(const struct sampler_timers *);
void sampler_timers_switch(struct sampler_timers *, bool on);
void sampler_timers_drain(struct sampler_timers *, const struct sampler_sink *, bool last);
struct sampler_counts sampler_timers_counts(const struct sampler_timers *);
void sampler_timers_close(struct sampler_timers *);

#endif
