// Steps 1 and 2: what is reached from the roots.
//
// All threads take blocks to scan from one queue and put what they find at its end. A block is
// queued once in both steps together, so the queue is an array as long as there are blocks, and
// what is found first is the nearest.
#include "tools/memcheck/leaks_search.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/memcheck/heap.h"

enum {
    FOUND = 256,    // kept by a thread before others may see them
    TAKEN = 64,     // taken from the queue at once
    THREADS = 8,    // at most
    WORTH = 200000, // blocks from which on further threads pay
    SPINS = 256,    // before a thread that waits for work lets others run
    HELPER_STACK = 256 * 1024,
};

// ---- how a reachable block is held -------------------------------------------------------------
//
// Either HELD and the place of the pointer in a root; or the number of the block that a root holds
// and how many pointers lead from there.

#define HELD             (1ul << 63)
#define HELD_BY_REGISTER (HELD | 1ul << 62)

static uint64_t way_through(uint32_t block, uint64_t way) {
    if (way & HELD)
        return (uint64_t)block << 32 | 1;
    return (uint32_t)way == UINT32_MAX ? way : way + 1;
}

// ---- the queue ---------------------------------------------------------------------------------

struct marking {
    struct search *search;
    bool possible; // step 2
    _Atomic uint32_t head, tail;
    atomic_int active; // threads that may still put something in the queue
};

struct worker {
    struct marking *marking;
    uint64_t way; // of what is found in registers, 0: in memory
    unsigned found_count;
    uint32_t found[FOUND];
};

// Entries are numbers plus 1; one that reads 0 is about to be written.
static void publish(struct worker *worker) {
    struct marking *marking = worker->marking;
    uint32_t *queue = marking->search->queue;
    uint32_t at = atomic_fetch_add(&marking->tail, worker->found_count);
    for (unsigned i = 0; i < worker->found_count; i++)
        __atomic_store_n(&queue[at + i], worker->found[i] + 1, __ATOMIC_RELEASE);
    worker->found_count = 0;
}

static unsigned take(struct marking *marking, uint32_t taken[TAKEN]) {
    const uint32_t *queue = marking->search->queue;
    uint32_t head = atomic_load(&marking->head), count;
    do {
        uint32_t tail = atomic_load(&marking->tail);
        if (head >= tail)
            return 0;
        count = tail - head < TAKEN ? tail - head : TAKEN;
    } while (!atomic_compare_exchange_weak(&marking->head, &head, head + count));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t entry;
        while (!(entry = __atomic_load_n(&queue[head + i], __ATOMIC_ACQUIRE)))
            __builtin_ia32_pause();
        taken[i] = entry - 1;
    }
    return count;
}

static void found(struct worker *worker, uint32_t block) {
    worker->found[worker->found_count++] = block;
    if (worker->found_count == FOUND)
        publish(worker);
}

// ---- what a pointer means ----------------------------------------------------------------------

static void visit_reachable(void *context, uint32_t from, uint64_t holder, uint64_t value,
                            uint32_t number) {
    struct worker *worker = context;
    struct search *search = worker->marking->search;
    struct leak_block *block = &search->blocks.blocks[number];
    uint8_t old = __atomic_load_n(&block->state, __ATOMIC_RELAXED);
    bool is_start = value == search->blocks.starts[number];
    if ((old & STATE_KIND) == LEAK_REACHABLE && (old == LEAK_REACHABLE || !is_start))
        return;
    uint8_t new = LEAK_REACHABLE;
    if (!is_start) {
        int heuristic = heuristic_of(search, number, value);
        new = heuristic < 0 ? LEAK_POSSIBLE
                            : LEAK_REACHABLE | (unsigned)(heuristic + 1) * STATE_HEURISTIC;
    }
    // Changes only ever go up: possible, reachable by a heuristic, reachable.
    do {
        if (new == LEAK_POSSIBLE
                ? old != STATE_UNREACHED
                : (old & STATE_KIND) == LEAK_REACHABLE && (old == LEAK_REACHABLE || !is_start))
            return;
    } while (!__atomic_compare_exchange_n(&block->state, &old, new, true, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    if (new == LEAK_POSSIBLE || (old & STATE_KIND) == LEAK_REACHABLE)
        return;
    if (from != NO_BLOCK)
        block->way = way_through(from, search->blocks.blocks[from].way);
    else
        block->way = worker->way ? worker->way : HELD | holder;
    found(worker, number);
}

static void visit_possible(void *context, uint32_t from, uint64_t holder, uint64_t value,
                           uint32_t number) {
    struct worker *worker = context;
    uint8_t old = STATE_UNREACHED;
    if (__atomic_compare_exchange_n(&worker->marking->search->blocks.blocks[number].state, &old,
                                    LEAK_POSSIBLE, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        found(worker, number);
}

// ---- the work ----------------------------------------------------------------------------------

// Until nobody has anything to do. The caller counts as active.
static void work(struct worker *worker) {
    struct marking *marking = worker->marking;
    uint32_t taken[TAKEN];
    for (;;) {
        unsigned count;
        while ((count = take(marking, taken)) != 0 || worker->found_count) {
            if (count)
                scan_blocks(marking->search, taken, count,
                            marking->possible ? visit_possible : visit_reachable, worker);
            else
                publish(worker);
        }
        atomic_fetch_sub(&marking->active, 1);
        for (unsigned spins = 1; atomic_load(&marking->head) >= atomic_load(&marking->tail);
             spins++) {
            if (atomic_load(&marking->active) == 0)
                return;
            if (spins % SPINS == 0)
                syscall(SYS_sched_yield);
            __builtin_ia32_pause();
        }
        atomic_fetch_add(&marking->active, 1);
    }
}

// ---- helpers -----------------------------------------------------------------------------------

struct leak_helpers {
    uint32_t round; // futex word: raised for each step
    uint32_t quit;
    int count;
    atomic_int resting;
    struct marking *marking;
    pthread_t threads[THREADS - 1];
};

static void futex(uint32_t *word, int operation, uint32_t value) {
    syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

static void *help(void *argument) {
    struct leak_helpers *helpers = argument;
    uint32_t seen = 0;
    for (;;) {
        uint32_t round;
        while ((round = __atomic_load_n(&helpers->round, __ATOMIC_ACQUIRE)) == seen)
            futex(&helpers->round, FUTEX_WAIT_PRIVATE, seen);
        seen = round;
        if (helpers->quit)
            return NULL;
        struct worker worker = {.marking = helpers->marking};
        work(&worker);
        atomic_fetch_add(&helpers->resting, 1);
    }
}

struct leak_helpers *mark_prepare(void) {
    cpu_set_t cpus;
    if (heap_totals().live_blocks < WORTH || sched_getaffinity(0, sizeof cpus, &cpus) != 0)
        return NULL;
    int wanted = CPU_COUNT(&cpus);
    if (wanted > THREADS)
        wanted = THREADS;
    struct leak_helpers *helpers = wanted > 1 ? search_map(sizeof *helpers) : NULL;
    if (!helpers)
        return NULL;
    // Signals are for the target's threads; a fault of their own still reaches the engine.
    sigset_t asynchronous, before;
    sigfillset(&asynchronous);
    sigdelset(&asynchronous, SIGSEGV);
    sigdelset(&asynchronous, SIGBUS);
    pthread_sigmask(SIG_BLOCK, &asynchronous, &before);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, HELPER_STACK);
    while (helpers->count < wanted - 1 &&
           pthread_create(&helpers->threads[helpers->count], &attributes, help, helpers) == 0)
        helpers->count++;
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return helpers;
}

static void next_round(struct leak_helpers *helpers) {
    __atomic_add_fetch(&helpers->round, 1, __ATOMIC_RELEASE);
    futex(&helpers->round, FUTEX_WAKE_PRIVATE, INT32_MAX);
}

void mark_release(struct leak_helpers *helpers) {
    if (!helpers)
        return;
    helpers->quit = 1;
    next_round(helpers);
    for (int i = 0; i < helpers->count; i++)
        pthread_join(helpers->threads[i], NULL);
    search_unmap(helpers, sizeof *helpers);
}

// ---- the steps ---------------------------------------------------------------------------------

static void mark_register(struct worker *worker, uint64_t value, int thread, unsigned number) {
    uint32_t block = blocks_find(&worker->marking->search->blocks, value);
    worker->way = HELD_BY_REGISTER | (uint64_t)thread << 8 | number;
    if (block != NO_BLOCK)
        visit_reachable(worker, NO_BLOCK, 0, value, block);
}

static void mark_registers(const struct tool_thread *thread, void *argument) {
    for (unsigned i = 0; i < 16; i++)
        mark_register(argument, thread->registers[i], thread->id, i);
}

static void mark_roots(struct worker *worker) {
    struct search *search = worker->marking->search;
    tool_each_thread(mark_registers, worker);
    worker->way = 0;
    for (size_t i = 0; i < search->roots.count; i++) {
        const struct leak_range *range = &search->roots.at[i];
        scan_range(search, range, visit_reachable, worker);
        search->bytes_searched += range->end - range->start;
    }
}

static void mark_possible(struct worker *worker) {
    const struct leak_blocks *blocks = &worker->marking->search->blocks;
    for (uint32_t i = 0; i < blocks->count; i++)
        if (blocks->blocks[i].state == LEAK_POSSIBLE)
            found(worker, i);
}

// A step begins with what `seed` finds and ends when nothing new is found.
static void step(struct marking *marking, struct leak_helpers *helpers,
                 void (*seed)(struct worker *)) {
    struct worker worker = {.marking = marking};
    int count = helpers ? helpers->count : 0;
    atomic_store(&marking->active, 1 + count);
    if (helpers) {
        helpers->marking = marking;
        atomic_store(&helpers->resting, 0);
        next_round(helpers);
    }
    seed(&worker);
    work(&worker);
    // Helpers may not have looked yet that all is done.
    while (helpers && atomic_load(&helpers->resting) < count)
        syscall(SYS_sched_yield);
}

bool mark_all(struct search *search, struct leak_helpers *helpers) {
    search->queue = search_map(((size_t)search->blocks.count + 1) * sizeof *search->queue);
    if (!search->queue)
        return false;
    struct marking marking = {.search = search};
    step(&marking, helpers, mark_roots);
    marking.possible = true;
    step(&marking, helpers, mark_possible);
    return true;
}

unsigned mark_steps(const struct leak_block *block) {
    return block->way & HELD ? 0 : (uint32_t)block->way;
}

void mark_holder(const struct search *search, const struct leak_block *block,
                 struct loss_record *record) {
    uint64_t way = block->way;
    record->holder_steps = mark_steps(block);
    if (!(way & HELD))
        way = search->blocks.blocks[way >> 32].way;
    record->holder_address = way & ~HELD_BY_REGISTER;
    if ((way & HELD_BY_REGISTER) == HELD_BY_REGISTER) {
        record->holder = HOLDER_REGISTER;
        record->holder_thread = (int)(record->holder_address >> 8);
        record->holder_address &= 0xff;
        return;
    }
    struct tool_frame frame;
    struct tool_mapping mapping;
    if (tool_frame_of(record->holder_address, &frame)) {
        record->holder = HOLDER_STACK;
        record->holder_thread = frame.thread;
        record->holder_pc = frame.pc;
    } else if (tool_mapping_at(record->holder_address, &mapping) && mapping.is_module) {
        record->holder = HOLDER_DATA;
    } else {
        record->holder = HOLDER_MAPPING;
    }
}
