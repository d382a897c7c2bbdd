#include "recorder/recorder.h"

#include <errno.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

// Slots tried in each level of the table: a cache line.
#define PROBES 8
// The main thread's stack grows downwards; the kernel keeps at least this much free below its top.
#define MAIN_STACK (64ul << 20)

// A word of memory that may not be there: alternate signal stacks, coroutines.
static bool read_word(void *context, uint64_t address, uint64_t *word) {
    struct iovec to = {word, sizeof *word};
    struct iovec from = {(void *)address, sizeof *word};
    int saved = errno;
    bool got = syscall(SYS_process_vm_readv, getpid(), &to, 1, &from, 1, 0) == sizeof *word;
    errno = saved;
    return got;
}

static void find_stack(struct recorder_thread *thread, uint64_t here) {
    uint64_t low;
    uint64_t high;
    bool is_main;
    if (!modules_mapping(here, &low, &high, &is_main))
        return;
    thread->stack_low = is_main && high > MAIN_STACK ? high - MAIN_STACK : low;
    thread->stack_high = high;
}

static uint64_t hash_of(const uint64_t *pcs, size_t count, bool truncated) {
    const uint64_t factor = 0x9e3779b97f4a7c15;
    uint64_t lanes[4] = {count + 1, 0x2545f4914f6cdd1d, truncated, 0x6a09e667f3bcc909};
    size_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (int lane = 0; lane < 4; lane++)
            lanes[lane] = (lanes[lane] ^ pcs[i + lane]) * factor ^ lanes[lane] >> 29;
    for (; i < count; i++)
        lanes[i % 4] = (lanes[i % 4] ^ pcs[i]) * factor ^ lanes[i % 4] >> 29;
    uint64_t hash = 0;
    for (int lane = 0; lane < 4; lane++) {
        hash = (hash ^ lanes[lane]) * factor;
        hash ^= hash >> 32;
    }
    return hash ? hash : 1;
}

// The table grows by further levels, so that a program with few stacks touches few pages. Every
// thread tries the same slots in the same order and none is ever emptied: a stack has one number.
// Two different stacks of one hash would be taken for one: with 64 bits and a million stacks the
// odds against that are ten million to one.
static uint32_t intern(struct recorder_thread *thread, const uint64_t *pcs, size_t count,
                       bool truncated) {
    _Atomic uint64_t *table = (_Atomic uint64_t *)((char *)recorder_area + WIRE_HEAP_STACKS_AT);
    uint64_t hash = hash_of(pcs, count, truncated);
    for (unsigned level = 0; level < WIRE_HEAP_LEVELS; level++) {
        uint32_t line = (uint32_t)hash % WIRE_HEAP_LEVEL_SIZE(level) / PROBES * PROBES;
        for (uint32_t probe = 0; probe < PROBES; probe++) {
            uint32_t id = WIRE_HEAP_LEVEL_START(level) + line + probe;
            uint64_t found = atomic_load_explicit(&table[id], memory_order_relaxed);
            if (found == hash)
                return id;
            if (found != 0 || id == 0)
                continue;
            if (atomic_compare_exchange_strong(&table[id], &found, hash)) {
                atomic_fetch_add_explicit(&recorder_area->stacks, 1, memory_order_relaxed);
                record_stack(thread, id, pcs, count, truncated);
                return id;
            }
            if (found == hash)
                return id;
        }
    }
    return 0;
}

uint32_t stacks_here(struct recorder_thread *thread) {
    struct unwind_registers registers;
    unwind_registers_here(&registers);
    uint64_t here = registers.value[UNWIND_RSP];
    if (UNLIKELY(!thread->stack_high))
        find_stack(thread, here);
    bool direct = here >= thread->stack_low && here < thread->stack_high;
    struct unwind_memory memory = {
        .low = here,
        .high = direct ? thread->stack_high : here,
        .read = read_word,
    };
    enum unwind_end end;
    size_t count = unwind_stack(&modules_space, &thread->unwind, &registers, &memory, thread->pcs,
                                (size_t)recorder_depth, &end);
    if (UNLIKELY(end == UNWIND_END_NO_MODULE) && count) {
        uint64_t page = thread->pcs[count - 1] >> 12;
        if (page != thread->unknown && modules_refresh())
            count = unwind_stack(&modules_space, &thread->unwind, &registers, &memory, thread->pcs,
                                 (size_t)recorder_depth, &end);
        thread->unknown = page;
    }
    size_t own = 0;
    while (own < count && modules_is_own(thread->pcs[own]))
        own++;
    bool truncated = unwind_end_is_truncated(end) &&
                     !(end == UNWIND_END_NO_RULE && modules_is_start(thread->pcs[count - 1]));
    return intern(thread, thread->pcs + own, count - own, truncated);
}
