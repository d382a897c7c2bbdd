#include "tools/races/target/order.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "profile/findings/finding.h"
#include "tools/races/target/graph.h"
#include "tools/races/target/reports.h"
#include "tools/shared/stacks.h"

void order_wait_until(const uint32_t *a, const uint32_t *b) {
    enum { STEPS = 200, STEP_NS = 100000 };
    for (unsigned i = 0; i < STEPS; i++) {
        if (__atomic_load_n(a, __ATOMIC_ACQUIRE) == __atomic_load_n(b, __ATOMIC_ACQUIRE))
            return;
        nanosleep(&(struct timespec){.tv_nsec = STEP_NS}, NULL);
    }
}

static struct races_lock *held(uint64_t lock) {
    struct races_thread *thread = races_thread();
    for (uint32_t i = thread->lock_count; i-- > 0;)
        if (thread->locks[i].address == lock)
            return &thread->locks[i];
    return NULL;
}

static struct sync *object(uint64_t lock) {
    return sync_find(lock, SYNC_OBJECT, true);
}

void order_start(void) {
    const char *option = tool_option("track-lockorders");
    graph_is_wanted = !option || strcmp(option, "no") != 0;
}

// ---- what the C library knows of a mutex -------------------------------------------------------

struct mutex {
    int32_t lock;
    uint32_t count;
    int32_t owner;
    uint32_t users;
    int32_t kind;
};

enum { KIND_TYPE = 3, KIND_KNOWN = 0x7f, KIND_NORMAL = 0 };

// False: it is not there, or of a kind that is not looked at.
static bool read_mutex(uint64_t address, struct mutex *mutex) {
    return tool_read(mutex, address, sizeof *mutex) == 0 && !(mutex->kind & ~KIND_KNOWN);
}

static bool is_own(const struct mutex *mutex) {
    return mutex->owner == (int32_t)syscall(SYS_gettid);
}

__attribute__((format(printf, 3, 4))) static void say(unsigned kind, uint64_t lock,
                                                      const char *format, ...) {
    char text[256], body[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(body, sizeof body, format, arguments);
    va_end(arguments);
    snprintf(text, sizeof text, "Thread #%u%s", races_thread()->number, body);
    reports_misuse(kind, text, lock);
}

// ---- locking -----------------------------------------------------------------------------------

void order_locking(uint64_t lock) {
    struct mutex mutex;
    const struct races_lock *own = held(lock);
    if (own && own->is_mutex && read_mutex(lock, &mutex) && mutex.lock && is_own(&mutex) &&
        (mutex.kind & KIND_TYPE) == KIND_NORMAL)
        say(FINDING_MISUSE, 0, ": Attempt to re-lock a non-recursive lock I already hold");
}

void order_locked(uint64_t lock, bool writes, bool in_order, bool is_mutex) {
    struct races_thread *thread = races_thread();
    struct races_lock *own = held(lock);
    struct sync *sync = object(lock);
    uint32_t stack = stack_here();
    if (!sync->made)
        sync->made = stack;
    if (own) {
        own->count++;
        return;
    }
    if (in_order && thread->lock_count)
        graph_add(thread, lock, stack);
    if (thread->lock_count < RACES_LOCKS)
        thread->locks[thread->lock_count++] = (struct races_lock){
            .address = lock, .stack = stack, .count = 1, .writes = writes, .is_mutex = is_mutex};
}

bool order_writes(uint64_t lock) {
    const struct races_lock *own = held(lock);
    return own && own->writes;
}

static void forget_lock(uint64_t lock) {
    struct races_thread *thread = races_thread();
    struct races_lock *own = held(lock);
    if (!own || --own->count)
        return;
    for (struct races_lock *last = &thread->locks[--thread->lock_count]; own < last; own++)
        own[0] = own[1];
}

void order_unlocking(uint64_t lock) {
    forget_lock(lock);
}

void order_unlocking_mutex(uint64_t lock) {
    struct mutex mutex;
    if (!held(lock) && read_mutex(lock, &mutex)) {
        if (!mutex.lock)
            say(FINDING_UNLOCK_UNLOCKED, lock, " unlocked a not-locked lock at 0x%lx", lock);
        else if (mutex.owner && !is_own(&mutex))
            say(FINDING_UNLOCK_FOREIGN, lock,
                " unlocked lock at 0x%lx currently held by another thread", lock);
    }
    forget_lock(lock);
}

void order_waiting(uint64_t lock) {
    struct mutex mutex;
    if (!held(lock) && read_mutex(lock, &mutex)) {
        if (!mutex.lock)
            say(FINDING_MISUSE, lock, ": pthread_cond_{timed}wait called with un-held mutex");
        else if (mutex.owner && !is_own(&mutex))
            say(FINDING_MISUSE, lock,
                ": pthread_cond_{timed}wait called with mutex held by a different thread");
    }
    forget_lock(lock);
}

void order_failed(const char *function, int error) {
    const char *name = strerrorname_np(error);
    say(FINDING_PTHREAD, 0, "'s call to %s failed with error code %d (%s: %s)", function, error,
        name ? name : "?", strerror(error));
}

// ---- making and destroying ---------------------------------------------------------------------

// Memory that held a lock has another one, or none.
void order_made(uint64_t lock) {
    struct sync *sync = sync_find(lock, SYNC_OBJECT, false);
    if (!sync)
        return;
    sync_lock(sync);
    sync->order = 0;
    sync->made = 0;
    sync_unlock(sync);
}

void order_destroying_mutex(uint64_t lock) {
    struct mutex mutex;
    if (read_mutex(lock, &mutex) && mutex.lock)
        say(FINDING_MISUSE, lock, ": pthread_mutex_destroy of a locked mutex");
    order_made(lock);
}

void order_thread_ended(void) {
    const struct races_thread *thread = races_thread();
    unsigned count = 0;
    for (uint32_t i = 0; i < thread->lock_count; i++) {
        struct mutex mutex;
        count += thread->locks[i].is_mutex && read_mutex(thread->locks[i].address, &mutex) &&
                 mutex.lock && is_own(&mutex);
    }
    if (count)
        say(FINDING_MISUSE, 0, ": Exiting thread still holds %u lock%s", count,
            count > 1 ? "s" : "");
}
