// What to make of two accesses that are not in order.
//
// Whether an instruction is part of an atomic operation is not in the code: a load is a load. Debug
// information tells, and the supervisor reads it. So the first conflict of each pair of
// instructions is sent, and the thread waits for the verdict, which holds for the pair. Plain.
#include <time.h>

#include "base/hash.h"
#include "tools/races/target/races.h"
#include "tools/races/target/reports.h"
#include "tools/shared/stacks.h"

enum { PAIRS = 1 << 16, PAIRS_MOST = PAIRS / 2 };

static struct pair {
    uint64_t key;
    uint32_t verdict; // enum verdict, plus 1; 0: it is being found out
    uint32_t context;
} * pairs;
static uint32_t pair_count;

// The pair of these instructions; *is_new: the caller is to find the verdict out.
static struct pair *pair_of(uint64_t key, bool *is_new) {
    *is_new = false;
    for (uint64_t i = key % PAIRS;; i = (i + 1) % PAIRS) {
        uint64_t known = __atomic_load_n(&pairs[i].key, __ATOMIC_ACQUIRE);
        if (known == key)
            return &pairs[i];
        if (known)
            continue;
        if (pair_count >= PAIRS_MOST)
            return NULL;
        if (__atomic_compare_exchange_n(&pairs[i].key, &known, key, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
            __atomic_add_fetch(&pair_count, 1, __ATOMIC_RELAXED);
            *is_new = true;
            return &pairs[i];
        }
        if (known == key)
            return &pairs[i];
    }
}

static void wait_a_little(void *unused) {
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

static enum verdict wait_for(struct pair *pair) {
    enum { STEPS = 300000 }; // a minute
    uint32_t verdict = 0;
    for (unsigned i = 0; i < STEPS && !verdict; i++) {
        verdict = __atomic_load_n(&pair->verdict, __ATOMIC_ACQUIRE);
        if (!verdict)
            tool_with_vectors(wait_a_little, NULL);
    }
    return verdict ? (enum verdict)(verdict - 1) : VERDICT_ATOMIC;
}

// The instruction and its function's caller: copies are made for many.
static uint64_t key_of(uint64_t key, uint32_t stack) {
    const uint64_t *pcs;
    size_t count = stack_pcs(stack, &pcs);
    for (size_t i = 0; i < count && i < 2; i++)
        key = hash_add(key, pcs[i]);
    return key;
}

// An access whose other side is not known any more is taken for an atomic one: no report is better
// than a false one.
enum verdict conflict_judge(uint64_t address, unsigned size, unsigned kind, uint32_t segment,
                            unsigned kinds) {
    const struct segment *other = segment_at(segment);
    struct conflict conflict = {.address = address,
                                .size = size,
                                .kind = kind,
                                .stack = stack_here(),
                                .other_thread = other->thread};
    bool is_new;
    if (!history_find(other->slot, segment, address, size, kinds, &conflict.other))
        return VERDICT_ATOMIC;
    uint64_t key = key_of(key_of(1, conflict.stack), event_stack(&conflict.other));
    struct pair *pair = pair_of(key ? key : 1, &is_new);
    if (!pair)
        return VERDICT_ATOMIC;
    if (is_new) {
        tool_with_vectors(reports_judge, &conflict);
        pair->context = conflict.context;
        __atomic_store_n(&pair->verdict, conflict.verdict + 1u, __ATOMIC_RELEASE);
    }
    enum verdict verdict = wait_for(pair);
    if (verdict == VERDICT_RACE)
        reports_count(pair->context);
    return verdict;
}

void conflicts_start(void) {
    pairs = races_memory(PAIRS * sizeof *pairs);
}
