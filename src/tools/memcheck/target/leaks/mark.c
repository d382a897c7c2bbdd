// Steps 1 and 2: what is reached from the roots.
//
// All threads take chunks of blocks to scan from one queue and put what they find at its end.
#include "tools/memcheck/target/leaks/search.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/memcheck/target/heap/heap.h"
#include "tools/memcheck/target/leaks/queue.h"

enum {
    WORTH = 200000, // blocks from which on further threads pay
    WAITING = 1024, // chunks that the second step lets wait before it goes on to seed
    SPINS = 256,    // before a thread that waits for work lets others run
    HELPER_STACK = 256 * 1024,
};

// How a block is held: the place of the pointer, or a register.
#define WAY_REGISTER (1ul << 62)

// ---- chunks ------------------------------------------------------------------------------------

struct marking {
    struct search *search;
    bool possible; // step 2
    struct leak_queue queue;
    atomic_int active;  // threads that may still put something in the queue
    atomic_bool failed; // out of memory
};

struct worker {
    struct marking *marking;
    struct leak_nearest nearest;
    bool is_seeding;        // from the roots
    uint64_t way;           // of what is found in registers, 0: in memory
    uint32_t steps;         // of what is found
    uint32_t last_held;     // in the chunk to be put
    struct leak_chunk *out; // NULL: none
    uint32_t count;         // blocks that are being scanned
    uint32_t numbers[CHUNK_WORDS], held[CHUNK_WORDS];
};

_Static_assert((int)CHUNK_WORDS <= (int)SCAN_MOST, "a chunk is scanned at once");

static void publish(struct worker *worker) {
    if (worker->out)
        queue_put(&worker->marking->queue, worker->out);
    worker->out = NULL;
}

static void found(struct worker *worker, uint32_t number, uint32_t held) {
    struct leak_chunk *out = worker->out;
    if (out && (out->count + 2 > CHUNK_WORDS || out->steps != worker->steps)) {
        publish(worker);
        out = NULL;
    }
    if (!out) {
        out = worker->out = queue_chunk(&worker->marking->queue);
        if (!out) {
            worker->marking->failed = true;
            return;
        }
        out->steps = worker->steps;
    }
    if (!out->count || worker->last_held != held)
        out->words[out->count++] = WORD_HELD | held;
    worker->last_held = held;
    out->words[out->count++] = number;
}

static void unpack(struct worker *worker, const struct leak_chunk *chunk) {
    uint32_t held = 0;
    worker->count = 0;
    for (uint32_t i = 0; i < chunk->count; i++) {
        uint32_t word = chunk->words[i];
        if (word & WORD_HELD) {
            held = word & ~(uint32_t)WORD_HELD;
            continue;
        }
        worker->numbers[worker->count] = word;
        worker->held[worker->count++] = held;
    }
    worker->steps = chunk->steps + 1;
}

// ---- what a pointer means ----------------------------------------------------------------------

// One more block that is held. Only one thread seeds.
static bool add_held(struct worker *worker, uint64_t holder, uint32_t *held) {
    struct search_list *list = &worker->marking->search->held;
    uint64_t *way = list->count < WORD_HELD - 1 ? list_add(list, sizeof *way) : NULL;
    if (!way) {
        worker->marking->failed = true;
        return false;
    }
    *way = worker->way ? worker->way : holder;
    *held = (uint32_t)list->count - 1;
    return true;
}

static void visit_reachable(void *context, uint32_t from, uint64_t holder, uint64_t value,
                            const struct leak_block *block) {
    struct worker *worker = context;
    struct search *search = worker->marking->search;
    uint8_t *state = &search->blocks.states[block->number];
    uint8_t old = __atomic_load_n(state, __ATOMIC_RELAXED);
    bool is_start = value == block->start;
    if ((old & STATE_KIND) == LEAK_REACHABLE && (old == LEAK_REACHABLE || !is_start))
        return;
    uint8_t new = LEAK_REACHABLE;
    if (!is_start) {
        int heuristic = heuristic_of(search, block, value);
        new = heuristic < 0 ? LEAK_POSSIBLE
                            : LEAK_REACHABLE | (unsigned)(heuristic + 1) * STATE_HEURISTIC;
    }
    // Changes only ever go up: possible, reachable by a heuristic, reachable.
    do {
        if (new == LEAK_POSSIBLE
                ? old != STATE_UNREACHED
                : (old & STATE_KIND) == LEAK_REACHABLE && (old == LEAK_REACHABLE || !is_start))
            return;
    } while (
        !__atomic_compare_exchange_n(state, &old, new, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    if (new == LEAK_POSSIBLE || (old & STATE_KIND) == LEAK_REACHABLE)
        return;
    uint32_t held = worker->held[from];
    if (worker->is_seeding && !add_held(worker, holder, &held))
        return;
    nearest_note(&worker->nearest, &(struct leak_near){.stack = block->stack,
                                                       .number = block->number,
                                                       .steps = worker->steps,
                                                       .held = held + 1});
    found(worker, block->number, held);
}

static void visit_possible(void *context, uint32_t from, uint64_t holder, uint64_t value,
                           const struct leak_block *block) {
    struct worker *worker = context;
    uint8_t old = STATE_UNREACHED;
    if (__atomic_compare_exchange_n(&worker->marking->search->blocks.states[block->number], &old,
                                    LEAK_POSSIBLE | STATE_QUEUED, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED))
        found(worker, block->number, 0);
}

// ---- the work ----------------------------------------------------------------------------------

// False: nothing waits.
static bool work_on_one(struct worker *worker) {
    struct marking *marking = worker->marking;
    struct leak_chunk *chunk = queue_take(&marking->queue);
    if (!chunk)
        return false;
    unpack(worker, chunk);
    queue_give_back(&marking->queue, chunk);
    scan_blocks(marking->search, worker->numbers, worker->count,
                marking->possible ? visit_possible : visit_reachable, worker);
    return true;
}

// Until nobody has anything to do. The caller counts as active.
static void work(struct worker *worker) {
    struct marking *marking = worker->marking;
    for (;;) {
        while (work_on_one(worker) || worker->out)
            if (!atomic_load_explicit(&marking->queue.waiting, memory_order_relaxed))
                publish(worker);
        atomic_fetch_sub(&marking->active, 1);
        for (unsigned spins = 1; !atomic_load(&marking->queue.waiting); spins++) {
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
    atomic_int resting, rested; // those that are done; that have handed over what they know
    struct marking *marking;
    pthread_t threads[LEAK_THREADS - 1];
};

static void futex(uint32_t *word, int operation, uint32_t value) {
    syscall(SYS_futex, word, operation, value, NULL, NULL, 0);
}

static void hand_over(struct worker *worker, int number) {
    if (!worker->marking->possible)
        worker->marking->search->nearest[number] = worker->nearest;
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
        struct marking *marking = helpers->marking;
        struct worker worker = {.marking = marking};
        work(&worker);
        int number = atomic_fetch_add(&helpers->resting, 1);
        hand_over(&worker, 1 + number);
        atomic_fetch_add(&helpers->rested, 1);
    }
}

struct leak_helpers *mark_prepare(void) {
    cpu_set_t cpus;
    if (heap_totals().live_blocks < WORTH || sched_getaffinity(0, sizeof cpus, &cpus) != 0)
        return NULL;
    int wanted = CPU_COUNT(&cpus);
    if (wanted > LEAK_THREADS)
        wanted = LEAK_THREADS;
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
    struct leak_block block;
    worker->way = WAY_REGISTER | (uint64_t)thread << 8 | number;
    if (blocks_find(&worker->marking->search->blocks, value, &block))
        visit_reachable(worker, 0, 0, value, &block);
}

static void mark_registers(const struct tool_thread *thread, void *argument) {
    for (unsigned i = 0; i < 16; i++)
        mark_register(argument, thread->registers[i], thread->id, i);
}

static void mark_roots(struct worker *worker) {
    struct search *search = worker->marking->search;
    worker->is_seeding = true;
    tool_each_thread(mark_registers, worker);
    worker->way = 0;
    gone_each_table(&search->blocks, visit_reachable, worker);
    for (size_t i = 0; i < search->roots.count; i++) {
        const struct leak_range *range = &search->roots.at[i];
        scan_range(search, range, visit_reachable, worker);
        search->bytes_searched += range->end - range->start;
    }
    worker->is_seeding = false;
}

static void mark_possible(struct worker *worker) {
    const struct leak_blocks *blocks = &worker->marking->search->blocks;
    struct leak_walk walk = {0};
    struct leak_block block;
    while (blocks_next(blocks, &walk, &block)) {
        uint8_t old = LEAK_POSSIBLE;
        if (__atomic_compare_exchange_n(&blocks->states[block.number], &old,
                                        LEAK_POSSIBLE | STATE_QUEUED, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            found(worker, block.number, 0);
        if (atomic_load_explicit(&worker->marking->queue.waiting, memory_order_relaxed) > WAITING)
            work_on_one(worker);
    }
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
        atomic_store(&helpers->rested, 0);
        next_round(helpers);
    }
    seed(&worker);
    work(&worker);
    hand_over(&worker, 0);
    // Helpers may not have looked yet that all is done.
    while (helpers && atomic_load(&helpers->rested) < count)
        syscall(SYS_sched_yield);
}

bool mark_all(struct search *search, struct leak_helpers *helpers) {
    struct marking marking = {.search = search, .queue = {.lock = ATOMIC_FLAG_INIT}};
    step(&marking, helpers, mark_roots);
    marking.possible = true;
    step(&marking, helpers, mark_possible);
    queue_free(&marking.queue);
    return !marking.failed;
}

void mark_holder(const struct search *search, const struct leak_near *near, struct loss *record) {
    uint64_t way = ((const uint64_t *)search->held.at)[near->held - 1];
    record->holder_steps = near->steps;
    record->holder_address = way & ~WAY_REGISTER;
    if (way & WAY_REGISTER) {
        record->holder = HELD_BY_REGISTER;
        record->holder_thread = (int)(record->holder_address >> 8);
        record->holder_address &= 0xff;
        return;
    }
    struct tool_frame frame;
    struct tool_mapping mapping;
    if (tool_frame_of(record->holder_address, &frame)) {
        record->holder = HELD_BY_STACK;
        record->holder_thread = frame.thread;
        record->holder_pc = frame.pc;
    } else if (tool_mapping_at(record->holder_address, &mapping) && mapping.is_module) {
        record->holder = HELD_BY_DATA;
    } else {
        record->holder = HELD_BY_MAPPING;
    }
}
