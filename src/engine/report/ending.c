#include "engine/cache/block.h"
#include "engine/debug/debug.h"
#include "engine/hooks/hooks.h"
#include "engine/rlimits.h"
#include "engine/log.h"
#include "engine/report/ending.h"
#include "engine/report/track_descriptors.h"
#include "engine/stack/stack.h"
#include "engine/task.h"
#include "wire/wire_target.h"

enum { STACK_DEPTH = 500, SIGNALS_MOST = 100 };

static void print_stats(void) {
    log_debug("translated: %lu blocks, %lu instructions, %lu links, %lu indirect misses, "
              "%lu invalidated, %lu flushes",
              cache_stats.blocks, cache_stats.instructions, cache_stats.links,
              cache_stats.indirect_misses, cache_stats.invalidated, cache_stats.flushes);
}

// The other threads stand still, so that what the reports say stays true; not if some belong to
// another process.
static void end_others(void) {
    if (!self->is_borrowed && !task_shares_memory())
        task_end_others();
}

// Whoever waits for this process finds its reports in the log.
static void settle(void) {
    if (wire_is_settled())
        return;
    end_others();
    for (int i = 0; i < SIGNALS_MOST && !wire_is_settled(); i++)
        wire_settle();
}

void ending_by_signal(int number, const siginfo_t *info) {
    uint64_t pcs[STACK_DEPTH];
    debug_ending(true);
    rlimits_lift();
    end_others();
    if (!self->is_borrowed) { // the results are those of the process that goes on
        track_descriptors_end();
        hooks_end();
    }
    size_t count = stack_of_task(pcs, STACK_DEPTH);
    if (wire_option_yes("stats"))
        print_stats();
    wire_send_fatal_signal(number, info->si_code, (uint64_t)info->si_addr, self->tid, pcs, count);
    settle();
    debug_ended_by_signal(number);
}

int ending_by_exit(int status) {
    if (!self->is_borrowed) {
        rlimits_lift();
        track_descriptors_end();
        hooks_end();
        if (tool->exit_status)
            status = tool->exit_status(status);
        else if (track_descriptors_failed() && wire_option_number("error-exitcode", 0))
            status = (int)wire_option_number("error-exitcode", 0);
    }
    if (wire_option_yes("stats"))
        print_stats();
    wire_send_exiting(status);
    settle();
    debug_ended_by_exit(status);
    return status;
}
