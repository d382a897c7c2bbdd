// dhat --mode=native: blocks and lifetimes of a recorded heap, without accesses.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "profile/heap/lifetimes.h"
#include "tools/dhat/supervisor/dhat.h"
#include "tools/dhat/supervisor/native_file.h"

static void start(struct recorded_process *process) {
    struct lifetimes *lifetimes = base_allocate(sizeof *lifetimes);
    struct heap_sink sink;
    *lifetimes = (struct lifetimes){.is_dhat = true, .brief = DHAT_NATIVE_BRIEF * 1000};
    process->profile = lifetimes;
    recorded_keep_stacks(process);
    lifetimes_sink(lifetimes, &sink);
    heap_source_add(process->source, &sink);
}

static void tell_left(void *context, uint64_t address, const struct heap_block *block) {
    struct lifetimes *lifetimes = context;
    lifetimes_left(lifetimes, block, lifetimes->time);
}

static void say_sums(const struct recorded_process *process, const char *path) {
    const struct lifetimes *lifetimes = process->profile;
    const struct lifetimes_site *total = &lifetimes->total;
    const struct {
        const char *what;
        uint64_t bytes, blocks;
    } lines[] = {{"\nTotal:    ", total->bytes, total->blocks},
                 {"At t-gmax:", total->peak_bytes, total->peak},
                 {"At t-end: ", total->live_bytes, total->live}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char bytes[32], blocks[32];
        log_format(process->log, process->pid, LOG_USER, "%s %s bytes in %s blocks", lines[i].what,
                   text_number(bytes, lines[i].bytes), text_number(blocks, lines[i].blocks));
    }
    log_format(process->log, process->pid, LOG_USER,
               "\nTo view the resulting profile, run\n  quern print %s\n"
               "or open it in Valgrind's dh_view.html",
               path);
}

static void report(struct recorded_process *process) {
    struct lifetimes *lifetimes = process->profile;
    heap_source_blocks(process->source, tell_left, lifetimes);
    char *path;
    int fd = recorded_open_file(process, 0, &path);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (file) {
        char *command = recorded_command(process->recorded);
        dhat_native(file, lifetimes, process->stacks, process->names, command, process->pid);
        free(command);
        bool failed = ferror(file);
        if (fclose(file) != 0 || failed)
            log_cannot_write(process->log, path, strerror(errno));
    }
    if (file && log_shows(process->log, 0))
        say_sums(process, path);
    struct budget_numbers numbers = {0};
    budget_number(&numbers, BUDGET_PEAK, lifetimes->total.peak_bytes);
    budget_number(&numbers, BUDGET_LEAKED, lifetimes->total.live_bytes);
    budget_number(&numbers, BUDGET_ALLOCATIONS, lifetimes->total.blocks);
    budgets_check(process->recorded->run->request, process->pid, &numbers);
    free(path);
}

static void release(struct recorded_process *process) {
    lifetimes_free(process->profile);
    free(process->profile);
}

static uint64_t live_bytes(const struct recorded_process *process) {
    const struct lifetimes *lifetimes = process->profile;
    return lifetimes->total.live_bytes;
}

const struct recorded_tool dhat_native_hooks = {
    .start = start, .report = report, .release = release, .live_bytes = live_bytes};
