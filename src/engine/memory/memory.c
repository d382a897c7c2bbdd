#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "engine/layout.h"
#include "engine/memory/memory.h"
#include "engine/cache/block.h"
#include "engine/enter.h"

enum {
    PAGE = 4096,
    WATCH_BITS = 12,
    FAULTS_MAX = 12, // after so many writes a page is left writable and its blocks are checked
};

// A page from which code was translated while the target may write it.
struct watch {
    uint64_t page;
    struct watch *next;
    unsigned faults;
    bool watched; // read-only natively now
};

struct space target_space;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct watch *watches[1 << WATCH_BITS]; // guarded by the cache lock
static unsigned watched_count;

void memory_read_lock(void) {
    pthread_rwlock_rdlock(&lock);
}

void memory_write_lock(void) {
    pthread_rwlock_wrlock(&lock);
}

void memory_unlock(void) {
    pthread_rwlock_unlock(&lock);
}

void memory_forked(void) {
    pthread_rwlock_init(&lock, NULL);
}

// ---- watched pages -----------------------------------------------------------------------------

static struct watch **watch_slot(uint64_t page) {
    struct watch **at = &watches[hash_bucket(page, WATCH_BITS)];
    while (*at && (*at)->page != page)
        at = &(*at)->next;
    return at;
}

static void watch_end(struct watch *watch) {
    if (!watch->watched)
        return;
    struct space_range range;
    uint64_t start = watch->page * PAGE;
    if (space_find(&target_space, start, &range) && range.start <= start)
        mprotect((void *)start, PAGE, space_native_prot(range.attributes.prot));
    watch->watched = false;
    watched_count--;
}

// Makes sure that writes to the page are noticed. False if its blocks must check for themselves.
static bool watch_begin(uint64_t page) {
    struct watch **slot = watch_slot(page), *watch = *slot;
    if (!watch) {
        watch = calloc(1, sizeof *watch);
        if (!watch)
            return false;
        watch->page = page;
        *slot = watch;
    }
    if (watch->watched)
        return true;
    if (watch->faults >= FAULTS_MAX || mprotect((void *)(page * PAGE), PAGE, PROT_READ) != 0)
        return false;
    // The kernel cannot write to such a page: calls must come to the engine from now on.
    cache_forbid_syscalls();
    watch->watched = true;
    watched_count++;
    return true;
}

bool memory_write_fault(uint64_t address) {
    bool was_watched = false;
    uint64_t page = address / PAGE;
    memory_read_lock();
    cache_lock();
    struct watch *watch = *watch_slot(page);
    if (watch && watch->watched) {
        was_watched = true;
        watch->faults++;
        cache_invalidate(page * PAGE, (page + 1) * PAGE);
        watch_end(watch);
    } else if (watch) {
        // Another thread's fault on the same page may have come first.
        struct space_range range;
        was_watched = watch->faults && space_find(&target_space, address, &range) &&
                      range.start <= address && range.attributes.prot & PROT_WRITE;
    }
    cache_unlock();
    memory_unlock();
    return was_watched;
}

bool memory_unwatch_all(void) {
    memory_read_lock();
    cache_lock();
    bool any = watched_count > 0;
    for (unsigned i = 0; any && i < 1 << WATCH_BITS; i++) {
        for (struct watch *watch = watches[i]; watch; watch = watch->next) {
            if (!watch->watched)
                continue;
            cache_invalidate(watch->page * PAGE, (watch->page + 1) * PAGE);
            watch_end(watch);
        }
    }
    cache_unlock();
    memory_unlock();
    return any;
}

static void forget_watch(struct watch **slot) {
    struct watch *watch = *slot;
    if (watch->watched)
        watched_count--;
    *slot = watch->next;
    free(watch);
}

static void forget_code(uint64_t start, uint64_t end) {
    cache_lock();
    cache_invalidate(start, end);
    if ((end - start) / PAGE < 1 << WATCH_BITS) {
        for (uint64_t page = start / PAGE; page < end / PAGE; page++) {
            struct watch **slot = watch_slot(page);
            if (*slot)
                forget_watch(slot);
        }
    } else {
        for (unsigned i = 0; i < 1 << WATCH_BITS; i++)
            for (struct watch **slot = &watches[i]; *slot;)
                if ((*slot)->page >= start / PAGE && (*slot)->page < end / PAGE)
                    forget_watch(slot);
                else
                    slot = &(*slot)->next;
    }
    cache_unlock();
}

// Code only comes from what is executable: large mappings of data cost nothing here.
void memory_changed(uint64_t start, uint64_t end) {
    struct space_range range;
    for (uint64_t at = start; space_next(&target_space, &at, end, &range);)
        if (range.attributes.prot & PROT_EXEC)
            forget_code(range.start, range.end);
}

void memory_discarded(uint64_t start, uint64_t end) {
    struct space_range range;
    memory_read_lock();
    for (uint64_t at = start; space_next(&target_space, &at, end, &range);) {
        if (!(range.attributes.prot & PROT_EXEC))
            continue;
        cache_lock();
        cache_invalidate(range.start, range.end);
        cache_unlock();
    }
    memory_unlock();
}

// ---- reading code ------------------------------------------------------------------------------

// Whether blocks from this page of the range can rely on being told about writes.
static bool page_is_stable(const struct space_range *range, uint64_t page) {
    if (range->attributes.flags & SPACE_SHARED)
        return false; // may be written through another mapping
    return !(range->attributes.prot & PROT_WRITE) || watch_begin(page);
}

int memory_fetch_code(uint64_t pc, struct code_bytes *code) {
    struct space_range range;
    if (!space_find(&target_space, pc, &range) || range.start > pc)
        return SEGV_MAPERR;
    if (!(range.attributes.prot & PROT_EXEC))
        return SEGV_ACCERR;
    code->pc = pc;
    code->size = 0;
    code->checked = false;
    code->mapping = range.start;
    code->is_module = range.attributes.flags & SPACE_FILE && !(range.attributes.prot & PROT_WRITE);
    // Page by page, so that only pages the block touches are watched. One instruction may cross
    // into the next page; a whole block needs no more than that.
    for (uint64_t at = pc; code->size < 1024;) {
        if (range.start > at || !(range.attributes.prot & PROT_EXEC))
            break;
        bool needs_watch =
            range.attributes.prot & PROT_WRITE || range.attributes.flags & SPACE_SHARED;
        if (needs_watch && code->size >= 15)
            break;
        if (!page_is_stable(&range, at / PAGE))
            code->checked = true;
        uint64_t page_end = (at / PAGE + 1) * PAGE;
        unsigned count = page_end - at;
        if (count > 1024 - code->size)
            count = 1024 - code->size;
        if (copy_guarded(code->bytes + code->size, (void *)at, count) != 0)
            break;
        code->size += count;
        at += count;
        if (at >= range.end && !space_find(&target_space, at, &range))
            break;
    }
    return code->size ? 0 : SEGV_MAPERR;
}

bool memory_is_targets(uint64_t address) {
    struct space_range range;
    memory_read_lock();
    bool found = space_find(&target_space, address, &range) && range.start <= address &&
                 range.attributes.tag != SPACE_GUARD && range.attributes.tag != SPACE_ENGINE;
    memory_unlock();
    return found;
}
