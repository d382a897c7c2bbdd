// Threads that a fork has left behind. A forked child has one thread. The stacks of the others are
// still there, and the C library will use them again, with the blocks that hold their thread-local
// storage. It points to those blocks behind their start, so they would look possibly lost.
#include "tools/memcheck/target/leaks/search.h"

#include <stdlib.h>
#include <string.h>

enum {
    DTV_OFFSET = 8, // from the thread pointer to where the table of thread-local blocks is named
    DTV_HEAD = 16,  // what the table has before the place that is named
};

struct gone_threads {
    uint64_t *at; // thread pointers
    size_t count;
};

// Those of this process; those that a child will have, while a fork is made. The engine makes one
// fork at a time.
static struct gone_threads gone, gone_in_child;

static void count_thread(const struct tool_thread *thread, void *count) {
    ++*(size_t *)count;
}

static void note_thread(const struct tool_thread *thread, void *argument) {
    struct gone_threads *threads = argument;
    threads->at[threads->count++] = thread->fs_base;
}

// The calling thread is told first, and survives.
void leaks_forking(void) {
    size_t count = 0;
    tool_each_thread(count_thread, &count);
    gone_in_child = (struct gone_threads){0};
    if (count + gone.count == 1)
        return;
    gone_in_child.at = malloc((count + gone.count) * sizeof *gone_in_child.at);
    if (!gone_in_child.at)
        return;
    tool_each_thread(note_thread, &gone_in_child);
    memcpy(gone_in_child.at + count, gone.at, gone.count * sizeof *gone.at);
    gone_in_child.count = count + gone.count;
    gone_in_child.at[0] = 0;
}

void leaks_fork_made(void) {
    free(gone_in_child.at);
    gone_in_child = (struct gone_threads){0};
}

void leaks_forked(void) {
    free(gone.at);
    gone = gone_in_child;
    gone_in_child = (struct gone_threads){0};
}

static void forget_reused(const struct tool_thread *thread, void *unused) {
    for (size_t i = 0; i < gone.count; i++)
        if (gone.at[i] == thread->fs_base)
            gone.at[i] = 0;
}

void gone_each_table(const struct leak_blocks *blocks, leak_visit *visit, void *context) {
    if (!gone.count)
        return;
    tool_each_thread(forget_reused, NULL);
    for (size_t i = 0; i < gone.count; i++) {
        uint64_t holder = gone.at[i] + DTV_OFFSET, table;
        struct leak_block block;
        if (gone.at[i] && tool_read(&table, holder, sizeof table) == 0 &&
            blocks_find(blocks, table, &block) && table == block.start + DTV_HEAD)
            visit(context, 0, holder, block.start, &block);
    }
}
