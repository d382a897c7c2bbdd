#include "tools/races/target/order.h"

#include <time.h>

#include "profile/findings/finding.h"
#include "tools/races/target/races.h"
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

void order_start(void) {
}

void order_locking(uint64_t lock) {
}

static struct sync *object(uint64_t lock) {
    return sync_find(lock, SYNC_OBJECT, true);
}

void order_locked(uint64_t lock, bool writes, bool in_order) {
    struct races_thread *thread = races_thread();
    struct races_lock *own = held(lock);
    struct sync *sync = object(lock);
    if (!sync->made)
        sync->made = stack_here();
    if (writes) {
        __atomic_store_n(&sync->owner, thread->number, __ATOMIC_RELAXED);
        sync->depth++;
    }
    if (own) {
        own->count++;
        return;
    }
    if (thread->lock_count < RACES_LOCKS)
        thread->locks[thread->lock_count++] =
            (struct races_lock){.address = lock, .count = 1, .writes = writes};
}

bool order_writes(uint64_t lock) {
    const struct races_lock *own = held(lock);
    return own && own->writes;
}

void order_unlocking(uint64_t lock, const char *what) {
    struct races_thread *thread = races_thread();
    struct races_lock *own = held(lock);
    struct sync *sync = object(lock);
    if (own && own->writes && sync->depth && !--sync->depth)
        __atomic_store_n(&sync->owner, 0, __ATOMIC_RELAXED);
    if (own && !--own->count)
        *own = thread->locks[--thread->lock_count];
}

void order_waiting(uint64_t mutex) {
    order_unlocking(mutex, "mutex");
}

void order_made(uint64_t lock) {
    struct sync *sync = object(lock);
    sync_lock(sync);
    sync->owner = sync->depth = 0;
    sync->made = 0;
    sync_unlock(sync);
}

void order_destroyed(uint64_t lock) {
    order_made(lock);
}

void order_thread_ended(void) {
}
