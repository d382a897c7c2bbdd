#include "engine/rlimits.h"

#include <stdio.h>
#include <stdlib.h>

#include "engine/fatal.h"
#include "engine/task.h"

static struct limits process_limits = {.lock = PTHREAD_MUTEX_INITIALIZER};
// The kernel's limits before the first change.
static struct rlimit kernel[WIRE_LIMITS];

static bool is_enforced_by_kernel(enum wire_limit limit) {
    return limit == WIRE_LIMIT_FSIZE || limit == WIRE_LIMIT_NOFILE;
}

void rlimits_init(const struct rlimit limits[WIRE_LIMITS]) {
    for (int i = 0; i < WIRE_LIMITS; i++) {
        process_limits.of[i] = limits[i];
        getrlimit(wire_limit_resources[i], &kernel[i]);
    }
    process_limits.lifted = 1;
    self->limits = &process_limits;
}

void rlimits_enforce(void) {
    rlimits_restore();
}

uint64_t rlimits_soft(enum wire_limit limit) {
    return self->limits->of[limit].rlim_cur;
}

// Tells the kernel its soft limits: the target's, or none.
static void apply(const struct limits *limits) {
    for (int i = 0; i < WIRE_LIMITS; i++) {
        struct rlimit now = kernel[i];
        if (!is_enforced_by_kernel(i))
            continue;
        if (!limits->lifted && limits->of[i].rlim_cur < now.rlim_max)
            now.rlim_cur = limits->of[i].rlim_cur;
        else
            now.rlim_cur = now.rlim_max;
        setrlimit(wire_limit_resources[i], &now);
    }
}

void rlimits_set(enum wire_limit limit, const struct rlimit *value) {
    struct limits *limits = self->limits;
    pthread_mutex_lock(&limits->lock);
    limits->of[limit] = *value;
    apply(limits);
    pthread_mutex_unlock(&limits->lock);
}

struct limits *rlimits_copy(const struct limits *from) {
    struct limits *copy = malloc(sizeof *copy);
    if (!copy)
        fatal("out of memory for limits");
    *copy = *from;
    pthread_mutex_init(&copy->lock, NULL);
    copy->lifted = 0;
    return copy;
}

// Another thread may have lifted them when this process was made.
void rlimits_forked(void) {
    if (self->limits != &process_limits)
        process_limits = *self->limits;
    self->limits = &process_limits;
    pthread_mutex_init(&process_limits.lock, NULL);
    process_limits.lifted = 0;
    apply(&process_limits);
}

void rlimits_lift(void) {
    struct limits *limits = self->limits;
    if (!limits)
        return;
    pthread_mutex_lock(&limits->lock);
    if (limits->lifted++ == 0)
        apply(limits);
    pthread_mutex_unlock(&limits->lock);
}

void rlimits_restore(void) {
    struct limits *limits = self->limits;
    if (!limits)
        return;
    pthread_mutex_lock(&limits->lock);
    if (--limits->lifted == 0)
        apply(limits);
    pthread_mutex_unlock(&limits->lock);
}

void rlimits_give(void) {
    for (int i = 0; i < WIRE_LIMITS; i++)
        setrlimit(wire_limit_resources[i], &self->limits->of[i]);
}

// A hard limit that was lowered stays so, unless the process is privileged.
void rlimits_take_back(void) {
    for (int i = 0; i < WIRE_LIMITS; i++) {
        struct rlimit now;
        if (setrlimit(wire_limit_resources[i], &kernel[i]) == 0)
            continue;
        getrlimit(wire_limit_resources[i], &now);
        if (i == WIRE_LIMIT_STACK && now.rlim_max > kernel[i].rlim_cur)
            now.rlim_cur = kernel[i].rlim_cur;
        else
            now.rlim_cur = now.rlim_max;
        setrlimit(wire_limit_resources[i], &now);
        kernel[i] = now;
    }
    pthread_mutex_lock(&self->limits->lock);
    apply(self->limits);
    pthread_mutex_unlock(&self->limits->lock);
}

const char *rlimits_advice(void) {
    static char text[160];
    static const struct {
        enum wire_limit limit;
        const char *what;
        char option;
    } memory[] = {{WIRE_LIMIT_AS, "address space", 'v'}, {WIRE_LIMIT_DATA, "data", 'd'}};
    for (int i = 0; i < 2; i++) {
        rlim_t most = kernel[memory[i].limit].rlim_max;
        if (most != RLIM_INFINITY) {
            snprintf(text, sizeof text,
                     ": the hard limit on %s (ulimit -H%c) is %lu KiB, which holds for the engine "
                     "as well; lower only the soft limit: ulimit -S%c",
                     memory[i].what, memory[i].option, most / 1024, memory[i].option);
            return text;
        }
    }
    return "";
}
