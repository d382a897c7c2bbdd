// The example tool: counts what the target does. Small enough to read in one go, and it uses every
// kind of hook, so that the tests can hold the interface to its word.
//
// Counters are kept for each thread and added up when the thread or the process ends.
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tools/tools.h"

struct counts {
    uint64_t blocks, instructions, loads, stores, branches, calls, returns;
    uint64_t system_calls, signals;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct counts total;
static uint64_t threads, mappings, watched_calls, requests;

#define COUNTER(field) offsetof(struct counts, field)

static void on_block(struct tool_block *block, uint64_t pc) {
    tool_insert_add(block, COUNTER(blocks), 1);
}

static void on_instruction(struct tool_block *block, const struct tool_insn *insn) {
    tool_insert_add(block, COUNTER(instructions), 1);
    for (unsigned i = 0; i < insn->access_count; i++) {
        if (insn->accesses[i].reads)
            tool_insert_add(block, COUNTER(loads), 1);
        if (insn->accesses[i].writes)
            tool_insert_add(block, COUNTER(stores), 1);
    }
    if (insn->flow == TOOL_BRANCH)
        tool_insert_add(block, COUNTER(branches), 1);
    if (insn->flow == TOOL_CALL)
        tool_insert_add(block, COUNTER(calls), 1);
    if (insn->flow == TOOL_RETURN)
        tool_insert_add(block, COUNTER(returns), 1);
}

static void on_thread_started(void) {
    __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
}

static void on_thread_ended(void) {
    struct counts *mine = tool_thread_state();
    uint64_t *to = (uint64_t *)&total, *from = (uint64_t *)mine;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < sizeof total / sizeof *to; i++)
        to[i] += from[i];
    pthread_mutex_unlock(&lock);
    memset(mine, 0, sizeof *mine);
}

static void on_system_call(long number, const uint64_t arguments[6]) {
    ((struct counts *)tool_thread_state())->system_calls++;
}

static void on_signal(int number, uint64_t frame, uint64_t frame_end, uint64_t alternate_stack) {
    ((struct counts *)tool_thread_state())->signals++;
}

static void on_mapped(uint64_t start, uint64_t end, int prot) {
    __atomic_add_fetch(&mappings, 1, __ATOMIC_RELAXED);
}

static void on_watched_call(void) {
    __atomic_add_fetch(&watched_calls, 1, __ATOMIC_RELAXED);
}

static bool on_request(const uint64_t words[6], uint64_t *result) {
    __atomic_add_fetch(&requests, 1, __ATOMIC_RELAXED);
    return false;
}

static void on_end(void) {
    on_thread_ended();
    tool_say("blocks:        %lu", total.blocks);
    tool_say("instructions:  %lu", total.instructions);
    tool_say("loads:         %lu", total.loads);
    tool_say("stores:        %lu", total.stores);
    tool_say("branches:      %lu", total.branches);
    tool_say("calls:         %lu", total.calls);
    tool_say("returns:       %lu", total.returns);
    tool_say("system calls:  %lu", total.system_calls);
    tool_say("signals:       %lu", total.signals);
    tool_say("threads:       %lu", threads);
    tool_say("mappings:      %lu", mappings);
    tool_say("calls of malloc: %lu", watched_calls);
    tool_say("requests:      %lu", requests);
}

static const struct tool_symbol symbols[] = {
    {"*", "malloc", TOOL_WATCH, on_watched_call, NULL},
    {0},
};

const struct tool tool_lackey = {
    .name = "lackey",
    .thread_size = sizeof(struct counts),
    .symbols = symbols,
    .end = on_end,
    .block = on_block,
    .instruction = on_instruction,
    .thread_started = on_thread_started,
    .thread_ended = on_thread_ended,
    .before_system_call = on_system_call,
    .mapped = on_mapped,
    .signal_delivered = on_signal,
    .request = on_request,
};
