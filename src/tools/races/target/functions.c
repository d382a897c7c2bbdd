// Functions by which threads synchronise, found by symbol. A release takes place before the
// function runs, an acquisition when it has returned.
#include <stddef.h>

#include "base/x86.h"
#include "profile/findings/finding.h"
#include "tools/races/target/copies.h"
#include "tools/races/target/order.h"
#include "tools/races/target/races.h"
#include "tools/shared/arguments.h"
#include "tools/shared/stacks.h"

// ---- returns -----------------------------------------------------------------------------------

static void set_count(struct races_thread *thread, uint32_t count) {
    tool_thread_words()[RACES_RETURNS_WORD] = count;
}

static uint32_t count_of_returns(void) {
    return (uint32_t)tool_thread_words()[RACES_RETURNS_WORD];
}

// Functions that have been left by a jump or an exception are forgotten.
static uint32_t drop_left(struct races_thread *thread, uint64_t stack_pointer) {
    uint32_t count = count_of_returns();
    while (count && thread->returns[count - 1].stack_pointer < stack_pointer)
        count--;
    return count;
}

void races_push_return(void (*done)(const struct races_return *, uint64_t), uint64_t a, uint64_t b,
                       uint64_t c) {
    struct races_thread *thread = races_thread();
    uint64_t stack_pointer = tool_register(RSP);
    uint32_t count = drop_left(thread, stack_pointer);
    if (count == RACES_RETURNS)
        return;
    thread->returns[count++] = (struct races_return){stack_pointer, done, {a, b, c}, false};
    set_count(thread, count);
}

void races_returns_allocation(void) {
    uint32_t count = count_of_returns();
    if (count)
        races_thread()->returns[count - 1].is_allocation = true;
}

struct finished {
    struct races_return call;
    uint64_t result;
};

static void finish(void *argument) {
    struct finished *finished = argument;
    finished->call.done(&finished->call, finished->result);
}

__attribute__((target("general-regs-only"))) void races_returned(void *unused) {
    struct races_thread *thread = races_thread();
    uint64_t stack_pointer = tool_register(RSP);
    uint32_t count = drop_left(thread, stack_pointer);
    if (count && thread->returns[count - 1].stack_pointer == stack_pointer) {
        struct finished finished = {thread->returns[--count], tool_register(RESULT)};
        set_count(thread, count);
        tool_with_vectors(finish, &finished);
        return;
    }
    set_count(thread, count);
}

// ---- objects -----------------------------------------------------------------------------------

static struct sync *object(uint64_t address) {
    return sync_find(address, SYNC_OBJECT, true);
}

static void acquire(uint64_t address) {
    sync_acquire(races_thread(), object(address));
}

static void release(uint64_t address) {
    if (races_has_threads)
        sync_release(races_thread(), object(address));
}

// ---- mutexes and spin locks --------------------------------------------------------------------

static void mutex_locked(const struct races_return *call, uint64_t result) {
    enum { OWNER_DEAD = 130 };
    int error = (int)result;
    if (error == 0 || error == OWNER_DEAD) {
        acquire(call->words[0]);
        order_locked(call->words[0], true, call->words[1], call->words[2]);
    } else if (call->words[1] && call->words[2]) {
        order_failed("pthread_mutex_lock", error);
    }
}

static void mutex_lock(void) {
    order_locking(argument(0));
    races_push_return(mutex_locked, argument(0), true, true);
}

static void mutex_trylock(void) {
    races_push_return(mutex_locked, argument(0), false, true);
}

static void mutex_unlocked(const struct races_return *call, uint64_t result) {
    if ((int)result)
        order_failed("pthread_mutex_unlock", (int)result);
}

static void mutex_unlock(void) {
    order_unlocking_mutex(argument(0));
    release(argument(0));
    races_push_return(mutex_unlocked, 0, 0, 0);
}

static void lock_wait(void) {
    races_push_return(mutex_locked, argument(0), true, false);
}

static void lock_try(void) {
    races_push_return(mutex_locked, argument(0), false, false);
}

static void spin_unlocking(void) {
    order_unlocking(argument(0));
    release(argument(0));
}

static void mutex_destroy(void) {
    order_destroying_mutex(argument(0));
}

static void lock_destroy(void) {
    order_made(argument(0));
}

// A lock that is made where another one was.
static void lock_init(void) {
    order_made(argument(0));
}

// ---- read-write locks --------------------------------------------------------------------------

static void read_locked(const struct races_return *call, uint64_t result) {
    struct sync *sync = object(call->words[0]);
    if ((int)result != 0)
        return;
    sync_acquire_clock(races_thread(), sync, &sync->writers);
    order_locked(call->words[0], false, call->words[1], false);
}

static void read_lock(void) {
    races_push_return(read_locked, argument(0), true, 0);
}

static void read_trylock(void) {
    races_push_return(read_locked, argument(0), false, 0);
}

static void rwlock_unlock(void) {
    struct races_thread *thread = races_thread();
    struct sync *sync = object(argument(0));
    bool writes = order_writes(argument(0));
    order_unlocking(argument(0));
    if (!races_has_threads)
        return;
    if (writes) {
        races_take_pending(thread);
        sync_lock(sync);
        clock_join(&sync->writers, &thread->clock);
        sync_unlock(sync);
    }
    sync_release(thread, sync);
}

// ---- files -------------------------------------------------------------------------------------

static void file_locked(const struct races_return *call, uint64_t result) {
    acquire(call->words[0]);
}

static void file_lock(void) {
    races_push_return(file_locked, argument(0), 0, 0);
}

static void file_unlock(void) {
    release(argument(0));
}

// ---- condition variables -----------------------------------------------------------------------

static void wait_ended(const struct races_return *call, uint64_t result) {
    acquire(call->words[1]);
    order_locked(call->words[1], true, false, true);
    if ((int)result == 0)
        acquire(call->words[0]);
}

static void cond_wait(void) {
    order_waiting(argument(1));
    release(argument(1));
    races_push_return(wait_ended, argument(0), argument(1), 0);
}

static void cond_signal(void) {
    release(argument(0));
}

// ---- barriers ----------------------------------------------------------------------------------
//
// A round has a clock of its own, so that those who leave late do not know what others have done
// on their way to the next.

static struct clock *round_clock(struct sync *sync, uint32_t generation) {
    return generation % 2 ? &sync->writers : &sync->all;
}

static void barrier_init(void) {
    struct sync *sync = object(argument(0));
    sync_lock(sync);
    sync->limit = (uint32_t)argument(2);
    sync->arrived = 0;
    sync_unlock(sync);
}

static void barrier_left(const struct races_return *call, uint64_t result) {
    struct sync *sync = object(call->words[0]);
    sync_acquire_clock(races_thread(), sync, round_clock(sync, (uint32_t)call->words[1]));
}

static void barrier_wait(void) {
    struct sync *sync = object(argument(0));
    struct races_thread *thread = races_thread();
    races_take_pending(thread);
    sync_lock(sync);
    uint32_t generation = sync->generation;
    if (!sync->arrived)
        clock_clear(round_clock(sync, generation));
    clock_join(round_clock(sync, generation), &thread->clock);
    if (++sync->arrived >= sync->limit && sync->limit) {
        sync->arrived = 0;
        sync->generation++;
    }
    sync_unlock(sync);
    if (races_has_threads)
        races_released(thread);
    races_push_return(barrier_left, argument(0), generation, 0);
}

// ---- semaphores --------------------------------------------------------------------------------

static void sem_waited(const struct races_return *call, uint64_t result) {
    if ((uint32_t)result == 0)
        acquire(call->words[0]);
}

static void sem_wait_(void) {
    races_push_return(sem_waited, argument(0), 0, 0);
}

static void sem_post_(void) {
    release(argument(0));
}

// ---- once --------------------------------------------------------------------------------------
//
// Who comes while it is not done leaves together: one of them has run the function, and which one
// is known when all have returned.

enum { ONCE_DONE = 2 };

static void once_left(const struct races_return *call, uint64_t result) {
    struct sync *sync = object(call->words[0]);
    if (call->words[1]) {
        sync_release(races_thread(), sync);
        __atomic_add_fetch(&sync->arrived, 1, __ATOMIC_RELEASE);
    }
    order_wait_until(&sync->arrived, &sync->limit);
    sync_acquire(races_thread(), sync);
}

static void once(void) {
    int32_t state = 0;
    struct sync *sync = object(argument(0));
    tool_read(&state, argument(0), sizeof state);
    if (state != ONCE_DONE)
        __atomic_add_fetch(&sync->limit, 1, __ATOMIC_RELEASE);
    races_push_return(once_left, argument(0), state != ONCE_DONE, 0);
}

// ---- creating and joining
// -----------------------------------------------------------------------------------

static void created(const struct races_return *call, uint64_t result) {
    races_thread()->creating = 0;
}

static void create(void) {
    races_thread()->creating = stack_here();
    races_push_return(created, 0, 0, 0);
}

static void joined(const struct races_return *call, uint64_t result) {
    struct sync *sync = sync_find(call->words[0], SYNC_EXIT, false);
    if ((int)result == 0 && sync)
        sync_acquire(races_thread(), sync);
}

static void join(void) {
    races_push_return(joined, argument(0), 0, 0);
}

// ---- the table ---------------------------------------------------------------------------------

#define LIBC "libc.so*|libc-*.so|libpthread*.so*|ld-musl-*|libc.musl-*"
#define REPLACE(name, hook)                                                                        \
    { LIBC, name, TOOL_REPLACE, hook, NULL }
#define WATCH(name, hook)                                                                          \
    { LIBC, name, TOOL_WATCH, hook, NULL }

const struct tool_symbol races_symbols[] = {
    WATCH("pthread_mutex_lock", mutex_lock),
    WATCH("pthread_mutex_trylock", mutex_trylock),
    WATCH("pthread_mutex_timedlock", mutex_trylock),
    WATCH("pthread_mutex_clocklock", mutex_trylock),
    WATCH("pthread_mutex_unlock", mutex_unlock),
    WATCH("pthread_mutex_init", lock_init),
    WATCH("pthread_mutex_destroy", mutex_destroy),
    WATCH("pthread_spin_init", lock_init),
    WATCH("pthread_spin_lock", lock_wait),
    WATCH("pthread_spin_trylock", lock_try),
    WATCH("pthread_spin_unlock", spin_unlocking),
    WATCH("pthread_spin_destroy", lock_destroy),
    WATCH("pthread_rwlock_init", lock_init),
    WATCH("pthread_rwlock_rdlock", read_lock),
    WATCH("pthread_rwlock_tryrdlock", read_trylock),
    WATCH("pthread_rwlock_timedrdlock", read_trylock),
    WATCH("pthread_rwlock_clockrdlock", read_trylock),
    WATCH("pthread_rwlock_wrlock", lock_wait),
    WATCH("pthread_rwlock_trywrlock", lock_try),
    WATCH("pthread_rwlock_timedwrlock", lock_try),
    WATCH("pthread_rwlock_clockwrlock", lock_try),
    WATCH("pthread_rwlock_unlock", rwlock_unlock),
    WATCH("pthread_rwlock_destroy", lock_destroy),
    WATCH("flockfile", file_lock),
    WATCH("funlockfile", file_unlock),
    WATCH("pthread_cond_wait", cond_wait),
    WATCH("pthread_cond_timedwait", cond_wait),
    WATCH("pthread_cond_clockwait", cond_wait),
    WATCH("pthread_cond_signal", cond_signal),
    WATCH("pthread_cond_broadcast", cond_signal),
    WATCH("pthread_barrier_init", barrier_init),
    WATCH("pthread_barrier_wait", barrier_wait),
    WATCH("sem_wait", sem_wait_),
    WATCH("sem_trywait", sem_wait_),
    WATCH("sem_timedwait", sem_wait_),
    WATCH("sem_clockwait", sem_wait_),
    WATCH("sem_post", sem_post_),
    WATCH("pthread_once", once),
    WATCH("pthread_create", create),
    WATCH("pthread_join", join),
    WATCH("pthread_tryjoin_np", join),
    WATCH("pthread_timedjoin_np", join),
    WATCH("pthread_clockjoin_np", join),
    WATCH("thrd_join", join),
    REPLACE("memcpy", copies_memcpy),
    REPLACE("memmove", copies_memcpy),
    REPLACE("__memcpy_chk", copies_memcpy),
    REPLACE("__memmove_chk", copies_memcpy),
    REPLACE("mempcpy", copies_mempcpy),
    REPLACE("__mempcpy_chk", copies_mempcpy),
    REPLACE("bcopy", copies_bcopy),
    REPLACE("memset", copies_memset),
    REPLACE("__memset_chk", copies_memset),
    {LIBC, "syscall", TOOL_LOCATE, NULL, &races_syscall},
    WATCH("malloc", races_block_malloc),
    WATCH("calloc", races_block_calloc),
    WATCH("realloc", races_block_realloc),
    WATCH("reallocarray", races_block_reallocarray),
    WATCH("free", races_block_free),
    WATCH("memalign", races_block_memalign),
    WATCH("aligned_alloc", races_block_memalign),
    WATCH("posix_memalign", races_block_posix_memalign),
    WATCH("valloc", races_block_valloc),
    WATCH("pvalloc", races_block_valloc),
    {0},
};
