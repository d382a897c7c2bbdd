// Events of the heap, and the one lock. General registers only.
//
// A thread writes what it does into a log of its own, and touches nothing that other threads write.
// When a log is full, its thread takes the lock and applies the events of all logs in their order
// (wire/dhat_events.h), so that peaks are exact.
//
// The order is that of the processor's clock, which goes alike on all of its cores. Who merges
// notes the time first, then reads the logs, and leaves what is later for the next time. An event
// that is not in its log yet although it is earlier is one that nothing in the logs can depend on:
// what depends on it came after it was written. It is applied late, in another order that the
// threads might as well have had.
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "tools/dhat/target/dhat.h"
#include "wire/dhat_events.h"

enum {
    LINE = 64,   // bytes, of the processor's cache
    ALONE = 128, // events in the log of a thread that is alone: they stay near
    AGAIN = 64,  // events until a thread tries again to have them applied
};

static _Alignas(LINE) atomic_uint lock; // 0: free, 1: taken, 2: somebody waits
_Alignas(LINE) atomic_uint events_gate;
static atomic_uint threads;
static _Alignas(LINE) bool free_logs[DHAT_LOGS]; // of those that have been in use
static struct dhat_pending pending[DHAT_LOGS];

// ---- the lock ----------------------------------------------------------------------------------

static void futex(atomic_uint *word, int operation, unsigned value) {
    long result;
    register long no_timeout __asm__("r10") = 0;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(SYS_futex), "D"(word), "S"(operation), "d"(value), "r"(no_timeout)
                     : "rcx", "r11", "memory");
}

static bool try_lock(void) {
    unsigned free = 0;
    return atomic_compare_exchange_weak_explicit(&lock, &free, 1, memory_order_acquire,
                                                 memory_order_relaxed);
}

void events_lock(void) {
    for (unsigned i = 0; i < 100; i++) {
        if (LIKELY(try_lock()))
            return;
        __builtin_ia32_pause();
    }
    while (atomic_exchange(&lock, 2))
        futex(&lock, FUTEX_WAIT_PRIVATE, 2);
}

void events_unlock(void) {
    if (UNLIKELY(atomic_exchange_explicit(&lock, 0, memory_order_release) == 2))
        futex(&lock, FUTEX_WAKE_PRIVATE, 1);
}

// ---- logs --------------------------------------------------------------------------------------

static struct dhat_log *log_at(uint32_t number) {
    return (struct dhat_log *)(HEAP_NOTES + DHAT_AT_LOGS) + number;
}

static uint64_t clock_now(void) {
    return __builtin_ia32_rdtsc();
}

static void note_applied(uint32_t log, uint64_t applied) {
    __atomic_store_n(&log_at(log)->applied, applied, __ATOMIC_RELEASE);
}

static void apply_until(uint64_t until) {
    atomic_thread_fence(memory_order_seq_cst);
    dhat_merge(dhat_header, point_at(0), log_at(0), dhat_header->logs, pending, until,
               note_applied);
}

// Everything that the thread itself has done, and what the others have done by now.
static void apply(const struct dhat_thread *thread) {
    bool is_alone = atomic_load_explicit(&threads, memory_order_relaxed) <= 1;
    apply_until(is_alone ? UINT64_MAX : clock_now());
    if (UNLIKELY(thread->log && thread->log->applied != thread->written))
        apply_until(UINT64_MAX); // it has come to a core whose clock is behind
}

// Instructions of the thread that have not been told yet.
static uint64_t take_ticks(struct dhat_thread *thread) {
    uint64_t now = 0;
    for (unsigned i = 0; i < TOOL_WORDS; i++)
        now += thread->words[i];
    uint64_t ticks = now - thread->told;
    thread->told = now;
    return ticks;
}

void events_tick(void) {
    struct dhat_thread *thread = tool_thread_state();
    apply(thread);
    dhat_header->time += take_ticks(thread);
}

// A log is emptied when it is half full, unless somebody else is at it: nobody waits as a rule.
static __attribute__((noinline)) void make_room(struct dhat_thread *thread) {
    struct dhat_log *log = thread->log;
    bool is_alone = atomic_load_explicit(&threads, memory_order_relaxed) <= 1;
    uint64_t most = __atomic_load_n(&log->applied, __ATOMIC_ACQUIRE) + DHAT_LOG_EVENTS;
    if (thread->written >= most) {
        events_lock();
    } else if (!try_lock()) {
        thread->room_until = thread->written + AGAIN < most ? thread->written + AGAIN : most;
        return;
    }
    apply(thread);
    if (is_alone)
        log->written = log->applied = thread->written = 0;
    events_unlock();
    thread->room_until = thread->written + (is_alone ? ALONE : DHAT_LOG_EVENTS / 2);
}

struct dhat_event *events_begin(struct dhat_thread *thread) {
    if (UNLIKELY(!thread->log))
        return &thread->unlogged;
    if (UNLIKELY(thread->written >= thread->room_until))
        make_room(thread);
    return &thread->log->events[thread->written % DHAT_LOG_EVENTS];
}

// There are more threads than logs.
static void apply_unlogged(struct dhat_thread *thread) {
    thread->unlogged.ticks = take_ticks(thread);
    events_lock();
    apply(thread);
    dhat_apply(dhat_header, point_at(0), &thread->unlogged);
    events_unlock();
}

void events_end(struct dhat_thread *thread) {
    if (UNLIKELY(!thread->log)) {
        apply_unlogged(thread);
        return;
    }
    struct dhat_event *event = &thread->log->events[thread->written % DHAT_LOG_EVENTS];
    bool is_alone = atomic_load_explicit(&threads, memory_order_relaxed) <= 1;
    event->ticks = take_ticks(thread);
    event->stamp = is_alone ? 0 : clock_now();
    __atomic_store_n(&thread->log->written, ++thread->written, __ATOMIC_RELEASE);
}

void events_add(uint32_t point, uint64_t size) {
    struct dhat_thread *thread = tool_thread_state();
    struct dhat_event *event = events_begin(thread);
    event->point = point;
    event->kind = DHAT_ADD;
    event->size = size;
    events_end(thread);
}

// ---- threads -----------------------------------------------------------------------------------

// With the lock.
static struct dhat_log *take_log(void) {
    for (uint32_t i = 0; i < dhat_header->logs; i++)
        if (free_logs[i]) {
            free_logs[i] = false;
            return log_at(i);
        }
    return dhat_header->logs < DHAT_LOGS ? log_at(dhat_header->logs++) : NULL;
}

static void open_log(struct dhat_thread *thread) {
    thread->log = take_log();
    if (thread->log) {
        thread->written = thread->log->written;
        thread->room_until = thread->written + ALONE;
    }
}

void events_thread_started(struct dhat_thread *thread) {
    events_lock();
    atomic_fetch_add(&threads, 1);
    open_log(thread);
    events_unlock();
}

void events_thread_ended(struct dhat_thread *thread) {
    events_lock();
    events_tick();
    if (thread->log)
        free_logs[thread->log - log_at(0)] = true;
    thread->log = NULL;
    atomic_fetch_sub(&threads, 1);
    events_unlock();
}

// ---- fork --------------------------------------------------------------------------------------

enum { MEMBARRIER_PRIVATE = 1 << 3, MEMBARRIER_REGISTER = 1 << 4 };

static long plain_call(long number, long argument) {
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(argument), "S"(0), "d"(0)
                     : "rcx", "r11", "memory");
    return result;
}

void events_start(void) {
    plain_call(SYS_membarrier, MEMBARRIER_REGISTER);
}

void events_wait_at_gate(struct dhat_log *log) {
    do {
        __atomic_store_n(&log->is_changing, 0, __ATOMIC_RELEASE);
        while (atomic_load(&events_gate))
            futex(&events_gate, FUTEX_WAIT_PRIVATE, 1);
        __atomic_store_n(&log->is_changing, 1, __ATOMIC_SEQ_CST);
    } while (atomic_load(&events_gate));
}

// The barrier stands in for one on every thread that begins a change: either it sees the gate, or
// it is seen to have begun.
void events_close_gate(void) {
    const struct dhat_log *own = ((struct dhat_thread *)tool_thread_state())->log;
    atomic_store(&events_gate, 1);
    bool is_sure = plain_call(SYS_membarrier, MEMBARRIER_PRIVATE) == 0;
    for (uint32_t i = 0; is_sure && i < dhat_header->logs; i++)
        while (log_at(i) != own && __atomic_load_n(&log_at(i)->is_changing, __ATOMIC_ACQUIRE))
            plain_call(SYS_sched_yield, 0);
    events_lock();
    if (is_sure)
        apply_until(UINT64_MAX);
    events_tick();
}

void events_open_gate(void) {
    events_unlock();
    atomic_store(&events_gate, 0);
    futex(&events_gate, FUTEX_WAKE_PRIVATE, INT32_MAX);
}

// Nobody else is left. What was in the logs had been applied before the copy was made.
void events_forked(void) {
    atomic_store(&lock, 0);
    atomic_store(&events_gate, 0);
    atomic_store(&threads, 1);
    for (uint32_t i = 0; i < DHAT_LOGS; i++)
        free_logs[i] = false;
    dhat_header->logs = 0;
    open_log(tool_thread_state());
}
