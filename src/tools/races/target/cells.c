#include "tools/races/target/cells.h"

#include "base/hash.h"

enum {
    WORDS_HALF = 1 << 25, // of nodes; a node is its count and its entries
    TABLE_HALF = 1 << 22,
    TABLE_PROBES = 64,
};

static uint32_t *words, *table; // both halves, as of segments
static uint32_t words_used[2];
static uint32_t make_lock;

static void make_tables(void) {
    spin_lock(&make_lock);
    if (!words) {
        table = races_memory(2ul * TABLE_HALF * sizeof *table);
        __atomic_store_n(&words, races_memory(2ul * WORDS_HALF * sizeof *words), __ATOMIC_RELEASE);
    }
    spin_unlock(&make_lock);
}

uint32_t cell_entries(uint32_t cell, uint32_t entries[NODE_MOST]) {
    uint32_t half = __atomic_load_n(&segments_half, __ATOMIC_RELAXED) & 1;
    if (!cell)
        return 0;
    if (!(cell & CELL_NODE)) {
        entries[0] = cell;
        return segment_half(cell_segment(cell)) == half;
    }
    const uint32_t *node = words + (cell & ~CELL_NODE);
    uint32_t count = node[0];
    if ((cell & ~CELL_NODE) / WORDS_HALF != half || count > NODE_MOST)
        return 0;
    for (uint32_t i = 0; i < count; i++)
        entries[i] = node[i + 1];
    return count;
}

static bool is_node(uint32_t at, const uint32_t *entries, uint32_t count) {
    if (words[at] != count)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (words[at + 1 + i] != entries[i])
            return false;
    return true;
}

uint32_t cell_make(const uint32_t *entries, uint32_t count, bool *is_full) {
    if (count <= 1)
        return count ? entries[0] : 0;
    if (!__atomic_load_n(&words, __ATOMIC_ACQUIRE))
        make_tables();
    uint32_t half = __atomic_load_n(&segments_half, __ATOMIC_RELAXED) & 1, made = 0;
    uint64_t hash = count;
    for (uint32_t i = 0; i < count; i++)
        hash = hash_add(hash, entries[i]);
    uint32_t *slots = table + (uint64_t)half * TABLE_HALF;
    for (unsigned probe = 0; probe < TABLE_PROBES; probe++) {
        uint32_t *slot = &slots[(hash + probe) % TABLE_HALF];
        uint32_t known = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
        if (known && is_node(known, entries, count))
            return CELL_NODE | known;
        if (known)
            continue;
        if (!made) {
            uint32_t at = __atomic_fetch_add(&words_used[half], count + 1, __ATOMIC_RELAXED);
            if (at + count + 1 >= WORDS_HALF - NODE_MOST)
                break;
            made = half * WORDS_HALF + at + 1; // the first word stays free
            words[made] = count;
            for (uint32_t i = 0; i < count; i++)
                words[made + 1 + i] = entries[i];
        }
        if (__atomic_compare_exchange_n(slot, &known, made, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            return CELL_NODE | made;
        if (is_node(known, entries, count))
            return CELL_NODE | known;
    }
    *is_full = true;
    return 0;
}

// Called before segments take the other half.
void cells_renew(void) {
    uint32_t half = (segments_half + 1) & 1;
    if (!words)
        return;
    for (uint32_t i = 0; i < TABLE_HALF; i++)
        table[(uint64_t)half * TABLE_HALF + i] = 0;
    words_used[half] = 0;
}
