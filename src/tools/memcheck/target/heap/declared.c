// Blocks that the target declares itself: anywhere, of any size, some of them inside others'
// blocks. They are kept in a tree ordered by address, under a lock.
//
// The tree is a treap: an entry's rank is drawn from its address, and no entry has a higher rank
// than its parent. Blocks do not overlap; freed ones make room for new ones.
#include <stdlib.h>

#include "base/hash.h"
#include "engine/tool.h"
#include "tools/memcheck/target/heap/blocks.h"
#include "tools/memcheck/target/shadow/shadow.h"
#include "tools/memcheck/target/heap/sites.h"
#include "tools/shared/stacks.h"

enum { FREED_MOST = 100000 }; // freed blocks that are remembered

struct declared {
    struct heap_block block;
    size_t red_zone;
    struct declared *left, *right;
    struct declared *older, *newer; // among the freed
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct declared *root;
static size_t live_count, freed_count;
static struct declared *oldest, *newest;
static uint64_t allocations, frees, bytes, live_bytes;

void declared_lock(void) {
    pthread_mutex_lock(&lock);
}

void declared_unlock(void) {
    pthread_mutex_unlock(&lock);
}

void declared_forked(void) {
    pthread_mutex_init(&lock, NULL);
}

// ---- the tree ----------------------------------------------------------------------------------

static uint64_t rank_of(const struct declared *entry) {
    return entry->block.start * HASH_FACTOR;
}

// What lies below an address, and the rest.
static void split(struct declared *tree, uint64_t start, struct declared **below,
                  struct declared **rest) {
    while (tree) {
        if (tree->block.start < start) {
            *below = tree;
            below = &tree->right;
            tree = tree->right;
        } else {
            *rest = tree;
            rest = &tree->left;
            tree = tree->left;
        }
    }
    *below = *rest = NULL;
}

static void join(struct declared **into, struct declared *below, struct declared *above) {
    while (below && above) {
        if (rank_of(below) > rank_of(above)) {
            *into = below;
            into = &below->right;
            below = below->right;
        } else {
            *into = above;
            into = &above->left;
            above = above->left;
        }
    }
    *into = below ? below : above;
}

static void insert(struct declared *entry) {
    struct declared **at = &root;
    while (*at && rank_of(*at) >= rank_of(entry))
        at = (*at)->block.start < entry->block.start ? &(*at)->right : &(*at)->left;
    split(*at, entry->block.start, &entry->left, &entry->right);
    *at = entry;
}

static void take_out(struct declared *entry) {
    struct declared **at = &root;
    while (*at != entry)
        at = (*at)->block.start < entry->block.start ? &(*at)->right : &(*at)->left;
    join(at, entry->left, entry->right);
}

// The entry with the highest start that is not above the address; the next one.
static struct declared *at_or_below(uint64_t address, struct declared **above) {
    struct declared *found = NULL;
    *above = NULL;
    for (struct declared *entry = root; entry;) {
        if (entry->block.start <= address) {
            found = entry;
            entry = entry->right;
        } else {
            *above = entry;
            entry = entry->left;
        }
    }
    return found;
}

static struct declared *starting_at(uint64_t start) {
    struct declared *above;
    struct declared *entry = at_or_below(start, &above);
    return entry && entry->block.start == start ? entry : NULL;
}

static void forget(struct declared *entry) {
    *(entry->older ? &entry->older->newer : &oldest) = entry->newer;
    *(entry->newer ? &entry->newer->older : &newest) = entry->older;
    freed_count--;
    take_out(entry);
    free(entry);
}

static void forget_freed_in(uint64_t start, uint64_t end) {
    struct declared *above;
    struct declared *entry = at_or_below(start, &above);
    if (entry && entry->block.state == HEAP_FREED && entry->block.start + entry->block.size > start)
        forget(entry);
    for (;;) {
        at_or_below(start, &above);
        if (!above || above->block.start >= end || above->block.state != HEAP_FREED)
            return;
        forget(above);
    }
}

// ---- blocks ------------------------------------------------------------------------------------

static void paint_around(uint64_t start, size_t size, size_t red_zone) {
    if (red_zone) {
        shadow_make_noaccess(start - red_zone, red_zone);
        shadow_make_noaccess(start + size, red_zone);
    }
}

uint32_t heap_making_stack(void) {
    return heap_options.keep_made ? stack_here() : 0;
}

void heap_declare(uint64_t start, size_t size, size_t red_zone, bool zeroed) {
    struct declared *entry = malloc(sizeof *entry);
    if (!entry)
        return;
    *entry = (struct declared){.block = {.start = start,
                                         .size = size,
                                         .state = HEAP_LIVE,
                                         .maker = HEAP_CLIENT,
                                         .made_at = heap_making_stack(),
                                         .alignment = 1},
                               .red_zone = red_zone};
    declared_lock();
    forget_freed_in(start, start + (size ? size : 1));
    bool is_known = starting_at(start);
    if (!is_known) {
        insert(entry);
        live_count++;
        allocations++;
        bytes += size;
        live_bytes += size;
        if (sites_wanted)
            sites_made(entry->block.made_at, size);
    }
    declared_unlock();
    if (is_known) {
        free(entry);
        return;
    }
    paint_around(start, size, red_zone);
    if (zeroed)
        shadow_make_defined(start, size);
    else
        shadow_make_undefined(start, size);
}

// From now on it is one of the freed; it is in the tree.
static void remember_freed(struct declared *entry, uint32_t stack) {
    entry->block.state = HEAP_FREED;
    entry->block.freed_at = stack;
    if (heap_options.freed_over_made)
        entry->block.made_at = 0;
    entry->older = newest;
    entry->newer = NULL;
    *(newest ? &newest->newer : &oldest) = entry;
    newest = entry;
    if (++freed_count > FREED_MOST)
        forget(oldest);
}

static void keep_freed(struct declared *entry, uint32_t stack, bool is_counted) {
    live_count--;
    frees += is_counted;
    live_bytes -= entry->block.size;
    remember_freed(entry, stack);
}

static bool undeclare(uint64_t start, size_t red_zone, bool is_counted) {
    uint32_t stack = heap_freeing_stack();
    declared_lock();
    struct declared *entry = starting_at(start);
    bool is_live = entry && entry->block.state == HEAP_LIVE;
    struct heap_block block = {0};
    if (is_live) {
        block = entry->block;
        keep_freed(entry, heap_options.keep_freed ? stack : 0, is_counted);
    }
    declared_unlock();
    if (is_live && sites_wanted)
        sites_freed(block.made_at, stack, block.size);
    if (is_live)
        shadow_make_noaccess(start - red_zone, block.size + 2 * red_zone);
    return is_live;
}

bool heap_undeclare(uint64_t start, size_t red_zone) {
    return undeclare(start, red_zone, true);
}

bool heap_undeclare_with_chunk(uint64_t start) {
    return undeclare(start, 0, false);
}

bool heap_redeclare(uint64_t start, size_t old_size, size_t new_size, size_t red_zone) {
    declared_lock();
    struct declared *entry = starting_at(start);
    bool is_live = entry && entry->block.state == HEAP_LIVE && entry->block.size == old_size;
    if (is_live) {
        entry->block.size = new_size;
        live_bytes += new_size - old_size;
        if (sites_wanted)
            sites_resized(entry->block.made_at, old_size, new_size);
    }
    declared_unlock();
    if (!is_live)
        return false;
    if (new_size > old_size)
        shadow_make_undefined(start + old_size, new_size - old_size);
    else
        shadow_make_noaccess(start + new_size, old_size - new_size);
    shadow_make_noaccess(start + new_size, red_zone);
    return true;
}

bool declared_is_live(uint64_t start) {
    declared_lock();
    struct declared *entry = starting_at(start);
    bool is_live = entry && entry->block.state == HEAP_LIVE;
    declared_unlock();
    return is_live;
}

// ---- for others --------------------------------------------------------------------------------

__attribute__((target("general-regs-only"))) bool declared_any(void) {
    return __atomic_load_n(&root, __ATOMIC_RELAXED);
}

bool declared_find(uint64_t address, struct heap_block *block) {
    struct declared *above;
    if (!declared_any())
        return false;
    declared_lock();
    struct declared *entry = at_or_below(address, &above);
    if (entry && address - entry->block.start >= entry->block.size + entry->red_zone &&
        address != entry->block.start)
        entry = NULL;
    if (above && above->block.start - address > above->red_zone)
        above = NULL;
    if (!entry || (above && above->block.state == HEAP_LIVE && entry->block.state == HEAP_FREED &&
                   address >= entry->block.start + entry->block.size))
        entry = above;
    if (entry)
        *block = entry->block;
    declared_unlock();
    return entry;
}

// Whether a block that the target has declared reaches into the range.
static bool has_live_in(uint64_t start, uint64_t end) {
    struct declared *above;
    const struct declared *entry = at_or_below(start, &above);
    return (entry && entry->block.state == HEAP_LIVE &&
            entry->block.start + entry->block.size > start) ||
           (above && above->block.state == HEAP_LIVE && above->block.start < end);
}

void heap_chunk_freed(uint64_t start, size_t size, size_t red_zone, uint32_t made_at) {
    uint32_t stack = heap_options.keep_freed ? stack_here() : 0;
    struct declared *entry = malloc(sizeof *entry);
    if (!entry)
        return;
    *entry = (struct declared){.block = {.start = start,
                                         .size = size,
                                         .maker = HEAP_CLIENT,
                                         .made_at = made_at,
                                         .alignment = 1},
                               .red_zone = red_zone};
    uint64_t end = start + (size ? size : 1);
    declared_lock();
    forget_freed_in(start, end);
    bool has_room = !has_live_in(start, end);
    if (has_room) {
        insert(entry);
        remember_freed(entry, stack);
    }
    declared_unlock();
    if (!has_room)
        free(entry);
}

void heap_chunk_made(uint64_t start, size_t size) {
    declared_lock();
    allocations++;
    bytes += size;
    forget_freed_in(start, start + (size ? size : 1));
    declared_unlock();
}

struct heap_totals declared_totals(void) {
    return (struct heap_totals){allocations, frees, bytes, live_count, live_bytes};
}

bool declared_next(uint64_t from, struct heap_block *block) {
    struct declared *entry = NULL;
    for (struct declared *at = root; at;) {
        if (at->block.start >= from) {
            entry = at;
            at = at->left;
        } else {
            at = at->right;
        }
    }
    while (entry && entry->block.state != HEAP_LIVE)
        at_or_below(entry->block.start, &entry);
    if (entry)
        *block = entry->block;
    return entry;
}
