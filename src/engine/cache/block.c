#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/cache/block.h"
#include "base/hash.h"
#include "base/search.h"
#include "engine/cache/gates.h"
#include "engine/fatal.h"
#include "engine/layout.h"
#include "engine/rlimits.h"
#include "engine/task.h"

enum {
    PAGE_BITS = 17,
    FIRST_BITS = 17, // of the table of blocks; it grows by GROW_BITS
    GROW_BITS = 2,
    LINK_BITS = 23, // link records are recycled in turn, long after their blocks are gone
    LINKS_MOST = (1 << LINK_BITS) * 3 / 4, // then flush
    BLOCKS_MAX = 1 << 22,
    ROOM = 64 * 1024,             // more than any block needs, hot and cold
    TABLE_CODE = TABLE_PIECE / 4, // code bytes of a piece of the jump table
    SYSCALL_TABLE = 1 << 16,
    FAR_SIZE = 1 << 16, // entries of a struct far_table
};

struct code_page {
    uint64_t number;
    struct block *blocks;
    struct code_page *next;
};

// The blocks by pc and version. Tables that it has outgrown stay until the next flush.
struct block_table {
    struct block_table *outgrown;
    unsigned bits;
    struct block *buckets[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block_table *table; // the one in use
static unsigned block_count;      // in it
static struct code_page *pages[1 << PAGE_BITS];
static struct link *links;
static uint32_t next_link, links_used; // used: since the last flush
static struct block **by_code;         // every block since the last flush, by rising code offset
static uint32_t by_code_count;
static uint8_t *hot_end, *cold_begin;
static uint8_t table_mapped[TABLE_CODE_END / TABLE_CODE];

// Blocks, states and pages come from an arena that is emptied by a flush.
static struct chunk {
    struct chunk *next;
    char memory[];
} * chunks;
static char *arena_at, *arena_end;

static struct far_table high_code, versions;

uint32_t cache_epoch;
uint64_t cache_start, cache_end;
enum cache_lookup cache_lookup;
uint8_t *cache_syscall_table;
static bool syscalls_forbidden;
struct cache_stats cache_stats;

static unsigned hash_of_page(uint64_t number) {
    return hash_bucket(number, PAGE_BITS);
}

static void *arena_allocate(size_t size) {
    size = (size + 7) & ~7ul;
    if ((size_t)(arena_end - arena_at) < size) {
        const size_t chunk_size = 1 << 20;
        struct chunk *chunk =
            mmap(NULL, chunk_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (chunk == MAP_FAILED)
            fatal("out of memory for translations");
        chunk->next = chunks;
        chunks = chunk;
        arena_at = chunk->memory;
        arena_end = (char *)chunk + chunk_size;
    }
    void *result = arena_at;
    arena_at += size;
    return result;
}

static void arena_empty(void) {
    for (struct chunk *next, *chunk = chunks; chunk; chunk = next) {
        next = chunk->next;
        munmap(chunk, 1 << 20);
    }
    chunks = NULL;
    arena_at = arena_end = NULL;
}

// ---- the table of blocks -----------------------------------------------------------------------

static size_t table_size(unsigned bits) {
    return sizeof(struct block_table) + (sizeof(struct block *) << bits);
}

static struct block_table *make_table(unsigned bits, struct block_table *outgrown) {
    struct block_table *made = mmap(NULL, table_size(bits), PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made == MAP_FAILED)
        fatal("out of memory for the table of translations");
    made->outgrown = outgrown;
    made->bits = bits;
    return made;
}

// Leaves a small table that is empty.
static void empty_table(void) {
    for (struct block_table *next; table; table = next) {
        next = table->outgrown;
        munmap(table, table_size(table->bits));
    }
    table = make_table(FIRST_BITS, NULL);
    block_count = 0;
}

static struct block **bucket_in(struct block_table *in, uint64_t pc, unsigned version) {
    return &in->buckets[hash_bucket(pc + ((uint64_t)version << 40), in->bits)];
}

static struct block **bucket_of(uint64_t pc, unsigned version) {
    return bucket_in(table, pc, version);
}

// Blocks are in one list, so a look-up in the old table may end in a list of the new one without
// having met its block. Who finds nothing looks again with the lock held.
static void grow_table(void) {
    struct block_table *old = table, *made = make_table(old->bits + GROW_BITS, old);
    for (size_t i = 0; i < (size_t)1 << old->bits; i++)
        for (struct block *next, *block = old->buckets[i]; block; block = next) {
            struct block **head = bucket_in(made, block->pc, block->version);
            next = block->hash_next;
            __atomic_store_n(&block->hash_next, *head, __ATOMIC_RELEASE);
            *head = block;
        }
    __atomic_store_n(&table, made, __ATOMIC_RELEASE);
}

static void add_to_table(struct block *block) {
    if (++block_count > 1u << table->bits)
        grow_table();
    struct block **head = bucket_of(block->pc, block->version);
    block->hash_next = *head;
    __atomic_store_n(head, block, __ATOMIC_RELEASE);
}

static void remove_from_table(struct block *block) {
    struct block **at = bucket_of(block->pc, block->version);
    while (*at && *at != block)
        at = &(*at)->hash_next;
    if (!*at)
        return;
    __atomic_store_n(at, block->hash_next, __ATOMIC_RELEASE);
    block_count--;
}

// ---- the whole ---------------------------------------------------------------------------------

// An empty place has a key that no destination fits which is looked for there.
static void far_clear(const struct far_table *table) {
    memset(table->keys, 0, FAR_SIZE * sizeof *table->keys);
    table->keys[0] = 1;
}

// All memory of the cache is as it was mapped: there are no blocks and no gates.
static void begin(void) {
    far_clear(&high_code);
    far_clear(&versions);
    by_code_count = 0;
    links_used = 0;
    hot_end = (uint8_t *)cache_start + CACHE_GATES_SIZE;
    cold_begin = cache_syscall_table;
    cache_write_gates(&high_code, &versions);
}

static void map_cache(uint64_t start, uint64_t end) {
    void *cache = mmap((void *)start, end - start, PROT_READ | PROT_WRITE | PROT_EXEC,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (cache != (void *)start)
        fatal("cannot map the code cache at 0x%lx%s", start, rlimits_advice());
    uint64_t *last = (uint64_t *)end;
    high_code = (struct far_table){last - 2 * FAR_SIZE, last - FAR_SIZE};
    versions = (struct far_table){last - 4 * FAR_SIZE, last - 3 * FAR_SIZE};
    cache_syscall_table = (uint8_t *)versions.keys - SYSCALL_TABLE;
    cache_start = start;
    cache_end = end;
}

void cache_init(uint64_t start, uint64_t end) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    links = mmap(NULL, sizeof *links << LINK_BITS, PROT_READ | PROT_WRITE, flags, -1, 0);
    by_code = mmap(NULL, sizeof *by_code * BLOCKS_MAX, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (links == MAP_FAILED || by_code == MAP_FAILED)
        fatal("cannot map the tables of the code cache");
    next_link = 1;
    empty_table();
    map_cache(start, end);
    memset(cache_syscall_table, 1, SYSCALL_TABLE);
    begin();
}

void cache_move(uint64_t start, uint64_t end) {
    uint64_t old_start = cache_start, old_end = cache_end;
    const uint8_t *permitted = cache_syscall_table;
    map_cache(start, end);
    memcpy(cache_syscall_table, permitted, SYSCALL_TABLE);
    munmap((void *)old_start, old_end - old_start);
    begin();
}

void cache_permit_syscall(long number) {
    if (!syscalls_forbidden)
        cache_syscall_table[number] = 0;
}

void cache_forbid_syscalls(void) {
    syscalls_forbidden = true;
    memset(cache_syscall_table, 1, SYSCALL_TABLE);
}

void cache_lock(void) {
    pthread_mutex_lock(&lock);
}

void cache_unlock(void) {
    pthread_mutex_unlock(&lock);
}

void cache_forked(void) {
    pthread_mutex_init(&lock, NULL);
}

// ---- look-up -----------------------------------------------------------------------------------

__attribute__((target("general-regs-only"))) struct block *block_find(uint64_t pc,
                                                                      unsigned version) {
    struct block_table *in = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
    struct block *block = __atomic_load_n(bucket_in(in, pc, version), __ATOMIC_ACQUIRE);
    while (block && (block->pc != pc || block->version != version))
        block = __atomic_load_n(&block->hash_next, __ATOMIC_ACQUIRE);
    return block;
}

struct block *block_at(uint64_t address) {
    if (!cache_contains(address))
        return NULL;
    uint32_t offset = address - cache_start;
    uint32_t count = __atomic_load_n(&by_code_count, __ATOMIC_ACQUIRE);
    uint32_t behind = search_first(at, 0, count, by_code[at]->code > offset);
    if (behind == 0)
        return NULL;
    struct block *block = by_code[behind - 1];
    return offset - block->code < block->code_size ? block : NULL;
}

const struct block_state *block_state_at(const struct block *block, uint64_t address) {
    uint32_t offset = address - cache_start - block->code;
    // The first one holds from the beginning.
    return &block->states[search_first(at, 1, block->state_count, block->states[at].host > offset) -
                          1];
}

// ---- pages -------------------------------------------------------------------------------------

static struct code_page *page_find(uint64_t number) {
    struct code_page *page = pages[hash_of_page(number)];
    while (page && page->number != number)
        page = page->next;
    return page;
}

static void page_add(uint64_t number, struct block *block, unsigned slot) {
    struct code_page *page = page_find(number);
    if (!page) {
        page = arena_allocate(sizeof *page);
        *page = (struct code_page){.number = number, .next = pages[hash_of_page(number)]};
        pages[hash_of_page(number)] = page;
    }
    block->page_next[slot] = page->blocks;
    page->blocks = block;
}

static unsigned page_slot(const struct block *block, uint64_t number) {
    return number == block->pc / 4096 ? 0 : 1;
}

static void page_remove(uint64_t number, struct block *block) {
    struct code_page *page = page_find(number);
    struct block **at = &page->blocks;
    while (*at != block)
        at = &(*at)->page_next[page_slot(*at, number)];
    *at = block->page_next[page_slot(block, number)];
}

// ---- blocks and links --------------------------------------------------------------------------

struct block *block_allocate(void) {
    return memset(arena_allocate(sizeof(struct block)), 0, sizeof(struct block));
}

struct block_state *block_states_allocate(unsigned count) {
    return arena_allocate(count * sizeof(struct block_state));
}

struct inserted_call *inserted_call_allocate(void) {
    return arena_allocate(sizeof(struct inserted_call));
}

void *block_memory(unsigned size) {
    return arena_allocate(size);
}

uint32_t link_begin(unsigned most) {
    if (next_link + most > 1u << LINK_BITS)
        next_link = 1;
    return next_link;
}

void link_end(unsigned used) {
    next_link += used;
    links_used += used;
}

struct link *link_get(uint32_t index) {
    return &links[index];
}

bool cache_room(uint8_t **hot, uint8_t **cold) {
    if (cold_begin - hot_end < 2 * ROOM || by_code_count == BLOCKS_MAX || links_used > LINKS_MOST)
        return false;
    *hot = hot_end;
    *cold = cold_begin;
    return true;
}

void cache_commit(uint8_t *hot, uint8_t *cold) {
    hot_end = hot;
    cold_begin = cold;
}

void block_publish_code(struct block *block) {
    by_code[by_code_count] = block;
    __atomic_store_n(&by_code_count, by_code_count + 1, __ATOMIC_RELEASE);
}

void block_publish(struct block *block) {
    uint64_t first_page = block->pc / 4096, last_page = (block->pc + block->guest_size - 1) / 4096;
    page_add(first_page, block, 0);
    if (last_page != first_page)
        page_add(last_page, block, 1);
    block_publish_code(block);
    add_to_table(block);
    cache_stats.blocks++;
}

// Replaces the distance of a jump that other threads may be running.
static void patch_jump(uint32_t site, uint64_t destination) {
    uint64_t at = cache_start + site;
    __atomic_store_n((uint32_t *)at, (uint32_t)(destination - (at + 4)), __ATOMIC_RELEASE);
}

static uint64_t direct_entry(const struct block *block) {
    return cache_start + block->code + block->direct_entry;
}

void block_link(struct link *link, struct block *to) {
    if (!link->site || link->linked || link->from->dead || to->dead)
        return;
    link->linked = true;
    link->to = to;
    link->next_incoming = to->incoming;
    to->incoming = link;
    patch_jump(link->site, direct_entry(to));
    cache_stats.links++;
}

// ---- where indirect branches look --------------------------------------------------------------

uint64_t table_piece_place(uint64_t pc) {
    return pc >= TABLE_CODE_END || cache_lookup == LOOKUP_KEYS
               ? 0
               : JUMP_TABLE + pc / TABLE_CODE * TABLE_PIECE;
}

bool table_has_piece(uint64_t pc) {
    return table_mapped[pc / TABLE_CODE];
}

bool table_add_piece(uint64_t pc) {
    void *at = (void *)table_piece_place(pc);
    void *got = mmap(at, TABLE_PIECE, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got != at)
        return false;
    __atomic_store_n(&table_mapped[pc / TABLE_CODE], 1, __ATOMIC_RELEASE);
    return true;
}

uint64_t table_drop_piece(uint64_t from) {
    for (unsigned i = from ? (from - JUMP_TABLE) / TABLE_PIECE : 0; i < sizeof table_mapped; i++) {
        if (!table_mapped[i])
            continue;
        uint64_t at = JUMP_TABLE + (uint64_t)i * TABLE_PIECE;
        munmap((void *)at, TABLE_PIECE);
        table_mapped[i] = 0;
        return at;
    }
    return 0;
}

__attribute__((target("general-regs-only"))) bool cache_takes_table(uint64_t start, uint64_t end) {
    if (start >= JUMP_TABLE_END || end <= JUMP_TABLE)
        return false;
    uint64_t i = start < JUMP_TABLE ? 0 : (start - JUMP_TABLE) / TABLE_PIECE;
    for (; i < sizeof table_mapped && JUMP_TABLE + i * TABLE_PIECE < end; i++)
        if (table_mapped[i])
            return true;
    return false;
}

__attribute__((target("general-regs-only"))) bool cache_takes(uint64_t start, uint64_t end) {
    return (start < cache_end && end > cache_start) || cache_takes_table(start, end);
}

static uint32_t *table_entry(uint64_t pc) {
    return table_piece_place(pc) && table_has_piece(pc) ? (uint32_t *)(JUMP_TABLE + 4 * pc) : NULL;
}

uint64_t cache_version_key(unsigned version) {
    return (uint64_t)version << 48 | version * 4099ul;
}

// A reader takes the key, the code and the key again: it never pairs a key with another block's
// code.
static void enter_far(const struct far_table *table, uint64_t key, const struct block *block) {
    unsigned index = key % FAR_SIZE;
    __atomic_store_n(&table->keys[index], index == 0, __ATOMIC_RELEASE);
    __atomic_store_n(&table->codes[index], cache_start + block->code, __ATOMIC_RELEASE);
    __atomic_store_n(&table->keys[index], -key, __ATOMIC_RELEASE);
}

// The key goes; the code stays, because a reader may be between the two look-ups. It runs the old
// translation once more, as a processor may that has fetched the old code.
static void leave_far(const struct far_table *table, uint64_t key) {
    unsigned index = key % FAR_SIZE;
    if (table->keys[index] == -key)
        __atomic_store_n(&table->keys[index], index == 0, __ATOMIC_RELEASE);
}

void block_enter_in_table(struct block *block) {
    cache_stats.indirect_misses++;
    if (block->dead)
        return;
    if (block->version) {
        enter_far(&versions, block->pc + cache_version_key(block->version), block);
        return;
    }
    uint32_t *entry = table_entry(block->pc);
    if (entry)
        __atomic_store_n(entry, block->code, __ATOMIC_RELEASE);
    else if (!table_piece_place(block->pc))
        enter_far(&high_code, block->pc, block);
}

static void leave_table(struct block *block) {
    if (block->version)
        leave_far(&versions, block->pc + cache_version_key(block->version));
    else if (!table_piece_place(block->pc))
        leave_far(&high_code, block->pc);
    else if (table_has_piece(block->pc))
        __atomic_store_n((uint32_t *)(JUMP_TABLE + 4 * block->pc), 0, __ATOMIC_RELEASE);
}

static void unlink_exit(struct link *link) {
    patch_jump(link->site, link->stub);
    link->linked = false;
    link->to = NULL;
}

static void block_kill(struct block *block) {
    block->dead = true;
    leave_table(block);
    remove_from_table(block);
    for (struct link *next, *link = block->incoming; link; link = next) {
        next = link->next_incoming;
        unlink_exit(link);
    }
    block->incoming = NULL;
    for (uint32_t i = 0; i < block->link_count; i++) {
        struct link *link = &links[block->first_link + i];
        if (!link->linked)
            continue;
        struct link **incoming = &link->to->incoming;
        while (*incoming != link)
            incoming = &(*incoming)->next_incoming;
        *incoming = link->next_incoming;
        unlink_exit(link);
    }
    uint64_t first = block->pc / 4096, last = (block->pc + block->guest_size - 1) / 4096;
    page_remove(first, block);
    if (last != first)
        page_remove(last, block);
    cache_stats.invalidated++;
}

static unsigned page_invalidate(uint64_t number, uint64_t start, uint64_t end) {
    struct code_page *page = page_find(number);
    unsigned killed = 0;
    struct block *block = page ? page->blocks : NULL;
    while (block) {
        struct block *next = block->page_next[page_slot(block, number)];
        if (block->pc < end && block->pc + block->guest_size > start) {
            block_kill(block);
            killed++;
        }
        block = next;
    }
    return killed;
}

unsigned cache_invalidate(uint64_t start, uint64_t end) {
    unsigned killed = 0;
    uint64_t first = start / 4096, last = (end - 1) / 4096;
    if (last - first < 1 << PAGE_BITS) {
        for (uint64_t number = first; number <= last; number++)
            killed += page_invalidate(number, start, end);
        return killed;
    }
    for (unsigned i = 0; i < 1 << PAGE_BITS; i++)
        for (struct code_page *page = pages[i]; page; page = page->next)
            if (page->number >= first && page->number <= last)
                killed += page_invalidate(page->number, start, end);
    return killed;
}

void cache_flush(void) {
    empty_table();
    memset(pages, 0, sizeof pages);
    for (unsigned i = 0; i < sizeof table_mapped; i++)
        if (table_mapped[i])
            madvise((void *)(JUMP_TABLE + (uint64_t)i * TABLE_PIECE), TABLE_PIECE, MADV_DONTNEED);
    arena_empty();
    begin();
    cache_epoch++;
    cache_stats.flushes++;
}
