// The allocator of memcheck under threads, and in children that are forked meanwhile.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memcheck_heap_use.h"
#include "unit.h"

enum { THREADS = 4, SHARED = 256, ROUNDS = 60000 };

static _Atomic uint64_t shared[SHARED];
static atomic_uint damage;
static atomic_bool stop;

static uint64_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005 + 1442695040888963407;
    return *state >> 33;
}

// A block begins and ends with its size and holds a number made from its address.
static uint64_t make_marked(size_t size) {
    uint64_t block = make(size);
    ((uint64_t *)block)[0] = size;
    ((uint64_t *)block)[1] = block * 31;
    ((uint8_t *)block)[size - 1] = (uint8_t)size;
    return block;
}

static void drop_marked(uint64_t block) {
    size_t size = ((uint64_t *)block)[0];
    if (((uint64_t *)block)[1] != block * 31 || heap_size_of(block) != size ||
        ((uint8_t *)block)[size - 1] != (uint8_t)size)
        damage++;
    drop(block);
}

static void *churn(void *seed) {
    uint64_t state = (uint64_t)seed;
    engine_stack[0] = 0x7000 + state;
    for (unsigned i = 0; i < ROUNDS && !stop; i++) {
        size_t size = 17 + next_random(&state) % 300;
        if (i % 64 == 0)
            size = 17 + next_random(&state) % 100000;
        if (i % 4096 == 0)
            size = 3000000;
        uint64_t old = atomic_exchange(&shared[next_random(&state) % SHARED], make_marked(size));
        if (old)
            drop_marked(old);
    }
    heap_thread_ended();
    return NULL;
}

static void run_threads(void) {
    pthread_t threads[THREADS];
    for (uint64_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, churn, (void *)(i + 1));
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void drop_shared(void) {
    for (unsigned i = 0; i < SHARED; i++) {
        uint64_t old = atomic_exchange(&shared[i], 0);
        if (old)
            drop_marked(old);
    }
}

TEST(threads_free_what_others_have_made) {
    restart_with("freelist-vol", "300000");
    struct heap_totals before = heap_totals();
    damage = 0;
    stop = false;
    size_t mapped = 0;
    for (unsigned round = 0; round < 4; round++) {
        run_threads();
        drop_shared();
        if (round == 0)
            mapped = engine_mapped;
    }
    struct heap_totals after = heap_totals();
    CHECK_EQ(damage, 0);
    CHECK_EQ(engine_error_count, 0);
    CHECK_EQ(after.allocations - before.allocations, 4 * THREADS * ROUNDS);
    CHECK_EQ(after.live_blocks, before.live_blocks);
    CHECK_EQ(after.live_bytes, before.live_bytes);
    CHECK_EQ(after.live_blocks, live_count());
    NOTE("%zu KB mapped after one round, %zu KB after four", mapped >> 10, engine_mapped >> 10);
    // How much more the later rounds take goes by how the threads meet; four times as much is
    // without any of it used again.
    CHECK(engine_mapped < 2 * mapped);
    restart_with("freelist-vol", NULL);
}

enum { RACES = 3000 };

static uint64_t raced; // a block for both to free
static atomic_uint race_number, races_run;

static void *race_along(void *unused) {
    for (unsigned i = 1; i <= RACES; i++) {
        while (race_number < i)
            sched_yield();
        drop(raced);
        races_run++;
    }
    heap_thread_ended();
    return NULL;
}

TEST(two_frees_at_once_are_one_free_and_one_error) {
    restart_with("freelist-vol", "300000");
    pthread_t thread;
    struct heap_totals before = heap_totals();
    pthread_create(&thread, NULL, race_along, NULL);
    for (unsigned i = 1; i <= RACES; i++) {
        raced = make(32);
        race_number = i;
        drop(raced);
        while (races_run < i)
            sched_yield();
    }
    pthread_join(thread, NULL);
    CHECK_EQ(engine_error_count, RACES);
    CHECK_EQ(heap_totals().frees - before.frees, 2 * RACES); // calls
    CHECK_EQ(heap_totals().live_blocks, before.live_blocks);
    restart_with("freelist-vol", NULL);
}

static int use_heap_in_child(void) {
    heap_forked();
    for (unsigned i = 0; i < 20000; i++) {
        uint64_t block = make_marked(17 + i % 5000);
        if (i % 5 == 0)
            block = heap_resize(block, 100);
        if (heap_size_of(block) < 17)
            return 1;
        drop(block);
    }
    drop(make(5000000));
    for (unsigned i = 0; i < SHARED; i++)
        if (shared[i] && heap_size_of(shared[i]))
            drop(shared[i]);
    return 0;
}

TEST(a_child_forked_in_the_midst_of_it_can_go_on) {
    restart_with("freelist-vol", "300000");
    pthread_t threads[THREADS];
    stop = false;
    damage = 0;
    for (uint64_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, churn, (void *)(i + 10));
    int bad = 0;
    for (unsigned i = 0; i < 12; i++) {
        heap_forking();
        pid_t child = fork();
        if (child == 0) {
            alarm(600);
            _exit(use_heap_in_child());
        }
        heap_fork_made();
        int status = -1;
        waitpid(child, &status, 0);
        bad += status != 0;
    }
    stop = true;
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    drop_shared();
    CHECK_EQ(bad, 0);
    CHECK_EQ(damage, 0);
    restart_with("freelist-vol", NULL);
}

UNIT_MAIN_APART()
