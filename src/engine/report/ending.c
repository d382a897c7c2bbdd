#include "engine/cache/block.h"
#include "engine/hooks/hooks.h"
#include "engine/log.h"
#include "engine/report/ending.h"
#include "engine/stack/stack.h"
#include "engine/task.h"
#include "wire/wire_target.h"

enum { STACK_DEPTH = 500 };

static void print_stats(void) {
    log_debug("translated: %lu blocks, %lu instructions, %lu links, %lu indirect misses, "
              "%lu invalidated, %lu flushes",
              cache_stats.blocks, cache_stats.instructions, cache_stats.links,
              cache_stats.indirect_misses, cache_stats.invalidated, cache_stats.flushes);
}

void ending_by_signal(int number, const siginfo_t *info) {
    uint64_t pcs[STACK_DEPTH];
    hooks_end();
    size_t count = stack_of_task(pcs, STACK_DEPTH);
    if (wire_option_yes("stats"))
        print_stats();
    wire_send_fatal_signal(number, info->si_code, (uint64_t)info->si_addr, self->tid, pcs, count);
}

int ending_by_exit(int status) {
    if (!self->is_borrowed) {
        hooks_end();
        if (tool->exit_status)
            status = tool->exit_status(status);
    }
    if (wire_option_yes("stats"))
        print_stats();
    wire_send_exiting(status);
    return status;
}
