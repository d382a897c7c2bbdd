#include "tools/races/target/graph.h"

#include <pthread.h>
#include <stdio.h>

#include "base/hash.h"
#include "profile/findings/finding.h"
#include "tools/races/target/order.h"
#include "tools/races/target/reports.h"

enum { EDGES = 1 << 15, SLOTS = 2 * EDGES, GATES = 6, DEPTH_MOST = 16, LOOKED_AT = 20000 };

bool graph_is_wanted;

// Nodes are numbers that locks get when they are first taken: a lock made anew is another one.
static struct edge {
    uint64_t from, to;
    uint64_t from_address, to_address;
    uint32_t from_stack, to_stack;
    uint64_t gates[GATES]; // other locks held then
    uint32_t next;         // of the same `from`; 0: none
} edges[EDGES];
static uint32_t edge_count = 1, slots[SLOTS], heads[SLOTS];
static uint64_t last_node;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void graph_forked(void) {
    pthread_mutex_init(&mutex, NULL);
}

// ---- memory that is handed out anew ------------------------------------------------------------

enum { PAGE_BITS = 12, PAGES = 1 << 16, PROBES = 64, LOCK_GRAIN = 4 };

// Pages that hold locks with a node, plus 1; nothing is ever taken out. Blocks are looked through
// only there.
static uint64_t pages[PAGES];
static bool pages_are_lacking; // one was not noted

static void note_page(uint64_t page) {
    uint64_t at = hash_add(3, page);
    for (unsigned i = 0; i < PROBES; i++) {
        uint64_t *slot = &pages[(at + i) % PAGES], known = 0;
        if (__atomic_compare_exchange_n(slot, &known, page + 1, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED) ||
            known == page + 1)
            return;
    }
    __atomic_store_n(&pages_are_lacking, true, __ATOMIC_RELAXED);
}

static bool has_locks(uint64_t page) {
    uint64_t at = hash_add(3, page);
    for (unsigned i = 0; i < PROBES; i++) {
        uint64_t known = __atomic_load_n(&pages[(at + i) % PAGES], __ATOMIC_RELAXED);
        if (!known || known == page + 1)
            return known;
    }
    return __atomic_load_n(&pages_are_lacking, __ATOMIC_RELAXED);
}

static void look_through(uint64_t page, uint64_t start, uint64_t end) {
    uint64_t low = page << PAGE_BITS, high = low + (1 << PAGE_BITS);
    for (uint64_t at = low < start ? start : low; at < end && at < high; at += LOCK_GRAIN)
        order_made(at);
}

// A mutex that is never destroyed (std::mutex) ends with its block.
void graph_memory_is_new(uint64_t start, uint64_t size) {
    uint64_t first = start >> PAGE_BITS, count = ((start + size - 1) >> PAGE_BITS) - first + 1;
    if (!graph_is_wanted || !size || !__atomic_load_n(&last_node, __ATOMIC_RELAXED))
        return;
    for (uint64_t i = 0; i < count && count <= PAGES; i++)
        if (has_locks(first + i))
            look_through(first + i, start, start + size);
    for (uint64_t i = 0; i < PAGES && count > PAGES; i++) {
        uint64_t page = __atomic_load_n(&pages[i], __ATOMIC_RELAXED) - 1;
        if (page - first < count)
            look_through(page, start, start + size);
    }
}

// ---- edges -------------------------------------------------------------------------------------

// Locks on stacks come and go without a word, so they have no order.
static uint64_t node_of(uint64_t lock) {
    struct sync *sync = sync_find(lock, SYNC_OBJECT, true);
    uint64_t start, end;
    if (tool_own_stack(&start, &end) && lock >= start && lock < end)
        return 0;
    if (!sync->order) {
        note_page(lock >> PAGE_BITS);
        sync->order = __atomic_add_fetch(&last_node, 1, __ATOMIC_RELAXED);
    }
    return sync->order;
}

static uint32_t *slot_of(uint64_t from, uint64_t to) {
    uint64_t at = hash_add(hash_add(1, from), to) % SLOTS;
    for (;; at = (at + 1) % SLOTS) {
        uint32_t known = __atomic_load_n(&slots[at], __ATOMIC_ACQUIRE);
        if (!known || (edges[known].from == from && edges[known].to == to))
            return &slots[at];
    }
}

static uint32_t *head_of(uint64_t node) {
    return &heads[hash_add(7, node) % SLOTS];
}

static bool has_gate(const uint64_t gates[GATES], uint64_t node) {
    for (unsigned i = 0; i < GATES; i++)
        if (gates[i] == node)
            return true;
    return false;
}

struct search {
    uint64_t path[DEPTH_MOST];
    unsigned depth, looked_at;
    uint32_t first, last; // edges of the path that was found
};

// Whether a path leads from one node to the other whose edges have none of these gates in common.
static bool find_path(struct search *search, uint64_t from, uint64_t to,
                      const uint64_t gates[GATES]) {
    if (search->depth == DEPTH_MOST)
        return false;
    search->path[search->depth++] = from;
    for (uint32_t at = *head_of(from); at && search->looked_at++ < LOOKED_AT; at = edges[at].next) {
        const struct edge *edge = &edges[at];
        uint64_t common[GATES] = {0};
        bool is_on_path = false, has_common = false;
        for (unsigned i = 0; i < search->depth; i++)
            is_on_path |= search->path[i] == edge->to;
        if (edge->from != from || is_on_path)
            continue;
        for (unsigned i = 0; i < GATES; i++)
            if (gates[i] && has_gate(edge->gates, gates[i])) {
                common[i] = gates[i];
                has_common = true;
            }
        if (edge->to == to ? !has_common : find_path(search, edge->to, to, common)) {
            if (edge->to == to)
                search->last = at;
            search->first = at;
            return true;
        }
    }
    search->depth--;
    return false;
}

static void report(const struct races_lock *held, uint64_t lock, uint32_t stack,
                   const struct search *search) {
    char text[256];
    snprintf(text, sizeof text, "Thread #%u: lock order \"0x%lx before 0x%lx\" violated",
             races_thread()->number, lock, held->address);
    struct lock_order order = {
        .text = text,
        .held = held->address,
        .taken = lock,
        .observed = {held->stack, stack},
        .required = {edges[search->first].from_stack, edges[search->last].to_stack}};
    reports_order(&order);
}

static void add_edge(uint32_t *slot, const struct edge *edge) {
    if (edge_count == EDGES)
        return;
    uint32_t *head = head_of(edge->from);
    edges[edge_count] = *edge;
    edges[edge_count].next = *head;
    *head = edge_count;
    __atomic_store_n(slot, edge_count++, __ATOMIC_RELEASE);
}

static void look_at(struct races_thread *thread, unsigned index, uint64_t lock, uint32_t stack) {
    const struct races_lock *held = &thread->locks[index];
    struct edge edge = {.from = node_of(held->address),
                        .to = node_of(lock),
                        .from_address = held->address,
                        .to_address = lock,
                        .from_stack = held->stack,
                        .to_stack = stack};
    struct search search = {0};
    if (!edge.from || !edge.to || edge.from == edge.to || *slot_of(edge.from, edge.to))
        return;
    for (unsigned i = 0, gate = 0; i < thread->lock_count && gate < GATES; i++)
        if (i != index)
            edge.gates[gate++] = node_of(thread->locks[i].address);
    pthread_mutex_lock(&mutex);
    uint32_t *slot = slot_of(edge.from, edge.to);
    bool is_new = !*slot;
    bool has_path = is_new && find_path(&search, edge.to, edge.from, edge.gates);
    if (is_new)
        add_edge(slot, &edge);
    pthread_mutex_unlock(&mutex);
    if (has_path)
        report(held, lock, stack, &search);
}

void graph_add(struct races_thread *thread, uint64_t lock, uint32_t stack) {
    for (unsigned i = 0; graph_is_wanted && i < thread->lock_count; i++)
        look_at(thread, i, lock, stack);
}
