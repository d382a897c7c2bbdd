#include "tools/callgrind/target/collect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/callgrind/target/counts.h"
#include "tools/callgrind/target/runs.h"

static uint64_t time_unit; // nanoseconds in a unit of system time; 0: not collected
static bool cpu_time, bus;
static uint64_t blocks_between, blocks_left; // dumps

void collect_start(void) {
    static const struct {
        const char *name;
        uint64_t unit;
    } units[] = {{"yes", 1000000}, {"msec", 1000000}, {"usec", 1000}, {"nsec", 1}};
    const char *time = tool_option("collect-systime"), *locked = tool_option("collect-bus");
    const char *every = tool_option("dump-every-bb");
    for (unsigned i = 0; time && i < sizeof units / sizeof *units; i++)
        if (strcmp(time, units[i].name) == 0)
            time_unit = units[i].unit;
    cpu_time = time_unit == 1;
    counts_shared->time_unit = time_unit;
    if (time_unit) {
        counts_count_event(COUNTS_SYS_COUNT);
        counts_count_event(COUNTS_SYS_TIME);
    }
    if (cpu_time)
        counts_count_event(COUNTS_SYS_CPU_TIME);
    bus = locked && strcmp(locked, "yes") == 0;
    if (bus)
        counts_count_event(COUNTS_GE);
    blocks_left = blocks_between = every ? strtoull(every, NULL, 10) : 0;
}

bool collect_system_calls(void) {
    return time_unit;
}

static void dump(void *unused) {
    char why[64];
    snprintf(why, sizeof why, "--dump-every-bb=%llu", (unsigned long long)blocks_between);
    counts_dump(true, why);
}

// ---- fast calls --------------------------------------------------------------------------------

#pragma GCC push_options
#pragma GCC target("general-regs-only")

// Blocks of all threads count together.
static void on_block_begins(uint32_t unused, uint64_t rsp, void *thread) {
    if (__atomic_sub_fetch(&blocks_left, 1, __ATOMIC_RELAXED) != 0)
        return;
    __atomic_store_n(&blocks_left, blocks_between, __ATOMIC_RELAXED);
    tool_with_vectors(dump, 0);
}

static void on_locked(uint32_t id, uint64_t rsp, void *thread) {
    thread_count(thread, id, 0, COUNTS_GE, 1);
}

static void on_system_call(uint32_t id, uint64_t rsp, void *state) {
    struct thread *thread = state;
    thread->system_call = id;
}

#pragma GCC pop_options

// ---- system calls ------------------------------------------------------------------------------

static uint64_t now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

void collect_before_call(long number, const uint64_t arguments[6]) {
    struct thread *thread = tool_thread_state();
    thread->system_wall = now(CLOCK_MONOTONIC);
    if (cpu_time)
        thread->system_cpu = now(CLOCK_THREAD_CPUTIME_ID);
}

// Times are rounded before they are subtracted, as Valgrind does it: calls that take no time add up
// to what they take together.
void collect_after_call(long number, const uint64_t arguments[6], long result) {
    struct thread *thread = tool_thread_state();
    uint32_t id = thread->system_call;
    thread->system_call = 0;
    if (!id)
        return;
    thread_count(thread, id, 0, COUNTS_SYS_COUNT, 1);
    thread_count(thread, id, 1, COUNTS_SYS_TIME,
                 now(CLOCK_MONOTONIC) / time_unit - thread->system_wall / time_unit);
    if (cpu_time)
        thread_count(thread, id, 2, COUNTS_SYS_CPU_TIME,
                     now(CLOCK_THREAD_CPUTIME_ID) - thread->system_cpu);
}

// ---- while code is translated ------------------------------------------------------------------

void collect_block(struct tool_block *block) {
    if (blocks_between)
        tool_insert_fast_call(block, TOOL_ALWAYS, on_block_begins, 0);
}

void collect_instruction(struct tool_block *block, const struct tool_insn *insn,
                         uint32_t function) {
    if (time_unit && insn->flow == TOOL_SYSTEM) {
        uint32_t id = counts_system_call(insn->pc, function, run_kind());
        if (id)
            tool_insert_fast_call(block, TOOL_ALWAYS, on_system_call, id);
    }
    if (bus && run_is_locked(insn)) {
        uint32_t id = counts_events(insn->pc, function, run_kind(), COUNTS_GE, COUNTS_GE, 0);
        if (id)
            tool_insert_fast_call(block, TOOL_ALWAYS, on_locked, id);
    }
}
