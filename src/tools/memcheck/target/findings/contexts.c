#include "tools/memcheck/target/findings/contexts.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "engine/tool.h"
#include "tools/memcheck/target/findings/ledger.h"

// A context is in both tables; they are at most half full.
enum { SLOTS = LEDGER_CONTEXTS * 2, FEW_CALLERS = 2 };

struct slot {
    uint64_t key;
    uint32_t number; // plus 1; 0: the slot is free
};

static struct slot *by_four, *by_two;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void contexts_start(void) {
    struct slot *slots = mmap(NULL, 2 * SLOTS * sizeof *slots, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (slots == MAP_FAILED) {
        tool_say("memcheck: out of memory");
        _Exit(1);
    }
    by_four = slots;
    by_two = slots + SLOTS;
}

// Another thread may have held the lock when the process forked. What it had begun is either in a
// table or not.
void contexts_forked(void) {
    pthread_mutex_init(&lock, NULL);
}

static uint64_t key_of(unsigned kind, uint64_t detail, const uint64_t *pcs, size_t count) {
    uint64_t key = hash_add(hash_add(0x517cc1b727220a95, kind), detail);
    for (size_t i = 0; i < count; i++)
        key = hash_add(key, pcs[i]);
    return hash_add(key, count);
}

// The slot of the key, or the free one where it belongs.
static struct slot *find(struct slot *table, uint64_t key, uint32_t *number) {
    for (size_t i = key % SLOTS;; i = (i + 1) % SLOTS) {
        *number = __atomic_load_n(&table[i].number, __ATOMIC_ACQUIRE);
        if (!*number || table[i].key == key)
            return &table[i];
    }
}

static void enter(struct slot *slot, uint64_t key, uint32_t number) {
    slot->key = key;
    __atomic_store_n(&slot->number, number, __ATOMIC_RELEASE);
}

static uint32_t add(uint64_t key_four, uint64_t key_two, bool by_few, bool *is_new) {
    uint32_t number, number_two;
    pthread_mutex_lock(&lock);
    struct slot *two = find(by_two, key_two, &number_two);
    struct slot *four = find(by_four, key_four, &number);
    if (by_few)
        number = number_two;
    if (!number) {
        number = ledger_new_context();
        *is_new = number != 0;
        if (number && !four->number)
            enter(four, key_four, number);
        if (number && !number_two)
            enter(two, key_two, number);
    }
    pthread_mutex_unlock(&lock);
    return number;
}

uint32_t context_of(unsigned kind, uint64_t detail, const uint64_t *pcs, size_t count,
                    bool *is_new) {
    bool by_few = ledger_shown() >= CONTEXTS_IN_DETAIL;
    uint64_t key_four = key_of(kind, detail, pcs, count);
    uint64_t key_two = key_of(kind, detail, pcs, count < FEW_CALLERS ? count : FEW_CALLERS);
    uint32_t number;
    *is_new = false;
    find(by_few ? by_two : by_four, by_few ? key_two : key_four, &number);
    if (!number)
        number = add(key_four, key_two, by_few, is_new);
    return number - 1;
}
