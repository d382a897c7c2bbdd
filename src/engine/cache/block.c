#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/cache/block.h"
#include "engine/fatal.h"
#include "engine/layout.h"
#include "engine/run/enter.h"
#include "engine/task.h"
#include "engine/translate/emit.h"

enum {
    HASH_BITS = 17,
    LINK_BITS = 23, // link records are recycled in turn, long after their blocks are gone
    LINKS_MOST = (1 << LINK_BITS) * 3 / 4, // then flush
    BLOCKS_MAX = 1 << 22,
    GATES_SIZE = 16384,
    ROOM = 64 * 1024,      // more than any block needs, hot and cold
    TABLE_CHUNK = 1 << 20, // code bytes for which a piece of the jump table is mapped
    SYSCALL_TABLE = 1 << 16,
    HIGH_BITS = 16, // entries of the look-up for code above 4 GiB
};

struct code_page {
    uint64_t number;
    struct block *blocks;
    struct code_page *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *hash[1 << HASH_BITS];
static struct code_page *pages[1 << HASH_BITS];
static struct link *links;
static uint32_t next_link, links_used; // used: since the last flush
static struct block **by_code;         // every block since the last flush, by rising code offset
static uint32_t by_code_count;
static uint8_t *hot_end, *cold_begin;
static uint64_t gates_end;
static uint8_t table_mapped[CACHE_START / TABLE_CHUNK];

// Blocks, states and pages come from an arena that is emptied by a flush.
static struct chunk {
    struct chunk *next;
    char memory[];
} * chunks;
static char *arena_at, *arena_end;

// The look-up for high code: key and code by the low 16 bits of the destination. Keys are stored
// negated, so that key + destination is zero exactly when they match (no flags needed). The same
// for versions other than 0, where the destination has the version's key added.
static uint64_t *high_keys, *high_codes, *version_keys, *version_codes;

uint32_t cache_epoch;
bool cache_high_code;
uint64_t cache_gate_link, cache_gate_high_lookup, cache_gate_version_lookup, cache_gate_follow,
    cache_gate_replace, cache_gate_hidden;
uint8_t *cache_syscall_table;
static bool syscalls_forbidden;
struct cache_stats cache_stats;

static unsigned hash_of(uint64_t value) {
    return value * 0x9e3779b97f4a7c15ull >> (64 - HASH_BITS);
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

// ---- gates -------------------------------------------------------------------------------------

static void emit_leave(struct emitter *e, unsigned reason) {
    emit_store_field_imm(e, TASK_EXIT_REASON, reason);
    while ((emit_address(e) + 6) % 8) // the target may check alignment
        emit8(e, 0x90);
    emit_bytes(e, (uint8_t[]){0xff, 0x25, 0, 0, 0, 0}, 6); // jmp [rip]
    emit64(e, (uint64_t)cache_leave);
}

// Goes on if the key of the destination in rdx is in its place.
static void emit_compare_key(struct emitter *e, const uint64_t *keys) {
    emit_bytes(e, (uint8_t[]){0x0f, 0xb7, 0xca}, 3);       // movzx ecx, dx
    emit_bytes(e, (uint8_t[]){0x48, 0x8b, 0x0c, 0xcd}, 4); // mov rcx, [rcx*8 + keys]
    emit32(e, (uint64_t)keys);
    emit_add_address(e, RCX, RCX, RDX);
    emit_bytes(e, (uint8_t[]){0xe3, 14}, 2); // jrcxz over the next two
    emit_unspill(e, RDX);
    emit_jump(e, CACHE_START);
}

// Looks self->jump_target up in the table for high code. rcx is spilled; flags are live. For
// versions, rcx holds what is to be added.
static void emit_far_lookup(struct emitter *e, uint64_t *keys, uint64_t *codes) {
    emit_spill(e, RDX);
    emit_load_field(e, RDX, TASK_JUMP_TARGET);
    if (keys == version_keys)
        emit_add_address(e, RDX, RDX, RCX);
    emit_compare_key(e, keys);
    emit_bytes(e, (uint8_t[]){0x0f, 0xb7, 0xca}, 3);       // movzx ecx, dx
    emit_bytes(e, (uint8_t[]){0x48, 0x8b, 0x0c, 0xcd}, 4); // mov rcx, [rcx*8 + codes]
    emit32(e, (uint64_t)codes);
    emit_store_field(e, RCX, TASK_ENTRY);
    emit_compare_key(e, keys); // still: the code belongs to it
    emit_unspill(e, RDX);
    emit_bytes(e, (uint8_t[]){0x64, 0xff}, 2); // jmp fs:[entry]
    emit_task_operand(e, 4, TASK_ENTRY);
}

// A signal that came while a function called from the cache ran has found no place to stop: if
// something is pending, the thread steps on from here to the next clean point.
void cache_emit_step_if_pending(struct emitter *e) {
    static const uint8_t trap[] = {0x9c,                                     // pushfq
                                   0x48, 0x81, 0x0c, 0x24, 0x00, 0x01, 0, 0, // or [rsp], TF
                                   0x9d};                                    // popfq
    emit8(e, 0x51);                                                          // push rcx
    emit_load_field32(e, RCX, TASK_PENDING);
    emit_bytes(e, (uint8_t[]){0xe3, 9 + sizeof trap}, 2); // jrcxz over the next
    emit_bytes(e, (uint8_t[]){0x64, 0xc6}, 2);            // mov byte fs:[stepping], 1
    emit_task_operand(e, 0, TASK_STEPPING);
    emit8(e, 1);
    emit_bytes(e, trap, sizeof trap);
    emit8(e, 0x59); // pop rcx
}

// The caller has spilled rsp and rdi and is on the engine's stack. Flags are kept in ah and al.
static void emit_gate_to(struct emitter *e, void (*function)(uint32_t, uint64_t, void *)) {
    static const uint8_t save[] = {0x50, 0x51, 0x52, 0x56,                // push rax, rcx, rdx, rsi
                                   0x41, 0x50, 0x41, 0x51, 0x41, 0x52,    // push r8, r9, r10
                                   0x41, 0x53,                            // push r11
                                   0x9f, 0x0f, 0x90, 0xc0,                // lahf; seto al
                                   0x50, 0x48, 0x83, 0xec, 0x08};         // push rax; sub rsp, 8
    static const uint8_t restore[] = {0x48, 0x83, 0xc4, 0x08, 0x58,       // add rsp, 8; pop rax
                                      0x04, 0x7f, 0x9e,                   // add al, 127; sahf
                                      0x41, 0x5b, 0x41, 0x5a, 0x41, 0x59, // pop r11, r10, r9
                                      0x41, 0x58, 0x5e, 0x5a, 0x59, 0x58}; // r8, rsi, rdx, rcx, rax
    emit_bytes(e, save, sizeof save);
    emit_load_field(e, RSI, TASK_SPILL + 8 * RSP);
    emit_load_field(e, RDX, TASK_TOOL);
    emit_bytes(e, (uint8_t[]){0x48, 0xb8}, 2); // mov rax, function
    emit64(e, (uint64_t)function);
    emit_bytes(e, (uint8_t[]){0xff, 0xd0}, 2); // call rax
    emit_bytes(e, restore, sizeof restore);
    cache_emit_step_if_pending(e);
    emit8(e, 0xc3); // ret
}

struct emitter cache_gate_begin(void) {
    return (struct emitter){(uint8_t *)gates_end};
}

void cache_gate_end(const struct emitter *e) {
    gates_end = emit_address(e);
    if (gates_end > CACHE_START + GATES_SIZE)
        fatal("internal error: too many gates");
}

static void emit_store_all(struct emitter *e) {
    for (unsigned reg = 0; reg < GPR_COUNT; reg++)
        if (reg != RDI && reg != RSP)
            emit_store_field(e, reg, TASK_GPR + 8 * reg);
}

// As emit_gate_to, with all registers saved where C code finds them and the direction flag clear.
static void emit_follow(struct emitter *e, void (*function)(void *)) {
    static const uint8_t kept[] = {RAX, RCX, RDX, RSI, R8, R9, R10, R11};
    emit_store_all(e);
    emit_load_field(e, RAX, TASK_SPILL + 8 * RDI);
    emit_store_field(e, RAX, TASK_GPR + 8 * RDI);
    emit_load_field(e, RAX, TASK_SPILL + 8 * RSP);
    emit_store_field(e, RAX, TASK_GPR + 8 * RSP);
    // lahf; seto al; push rax, twice; pushfq; pop rax; mov [flags], rax; cld
    emit_bytes(e, (uint8_t[]){0x9f, 0x0f, 0x90, 0xc0, 0x50, 0x50, 0x9c, 0x58}, 8);
    emit_store_field(e, RAX, TASK_FLAGS);
    emit8(e, 0xfc);
    emit_bytes(e, (uint8_t[]){0x48, 0xb8}, 2); // mov rax, function
    emit64(e, (uint64_t)function);
    emit_bytes(e, (uint8_t[]){0xff, 0xd0}, 2); // call rax
    emit_bytes(e, (uint8_t[]){0x64, 0xf7}, 2); // test dword fs:[flags], direction
    emit_task_operand(e, 0, TASK_FLAGS);
    emit32(e, 0x400);
    emit_bytes(e, (uint8_t[]){0x74, 1, 0xfd}, 3); // je over; std
    emit_bytes(e, (uint8_t[]){0x58, 0x58, 0x04, 0x7f, 0x9e},
               5); // pop rax, twice; add al, 127; sahf
    for (unsigned i = 0; i < sizeof kept; i++)
        emit_load_field(e, kept[i], TASK_GPR + 8 * kept[i]);
    cache_emit_step_if_pending(e);
    emit8(e, 0xc3); // ret
}

void cache_set_followers(void (*follow)(void *), void (*replace)(void *), void (*hidden)(void *)) {
    struct emitter e = {(uint8_t *)gates_end};
    cache_gate_follow = emit_address(&e);
    emit_follow(&e, follow);
    cache_gate_replace = emit_address(&e);
    emit_follow(&e, replace);
    cache_gate_hidden = emit_address(&e);
    emit_follow(&e, hidden);
    gates_end = emit_address(&e);
}

uint64_t cache_gate_to(void (*function)(uint32_t, uint64_t, void *)) {
    static struct {
        void (*function)(uint32_t, uint64_t, void *);
        uint64_t gate;
    } known[16];
    unsigned i = 0;
    for (; i < 16 && known[i].function; i++)
        if (known[i].function == function)
            return known[i].gate;
    if (i == 16)
        fatal("internal error: too many fast calls");
    struct emitter e = {(uint8_t *)gates_end};
    known[i].function = function;
    known[i].gate = gates_end;
    emit_gate_to(&e, function);
    gates_end = emit_address(&e);
    return known[i].gate;
}

static void write_gates(void) {
    struct emitter e = {(uint8_t *)CACHE_START};
    // Offset 0 in the jump table is this place: the destination is not in the table.
    emit_unspill(&e, RCX);
    emit_leave(&e, EXIT_INDIRECT);
    cache_gate_link = emit_address(&e);
    emit_leave(&e, EXIT_LINK);
    cache_gate_high_lookup = emit_address(&e);
    emit_far_lookup(&e, high_keys, high_codes);
    cache_gate_version_lookup = emit_address(&e);
    emit_far_lookup(&e, version_keys, version_codes);
    gates_end = emit_address(&e);
}

void cache_init(void) {
    void *cache =
        mmap((void *)CACHE_START, CACHE_END - CACHE_START, PROT_READ | PROT_WRITE | PROT_EXEC,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (cache != (void *)CACHE_START)
        fatal("cannot map the code cache at 0x%lx", CACHE_START);
    const size_t keys_size = sizeof(uint64_t) << HIGH_BITS;
    high_keys = (uint64_t *)(CACHE_END - 2 * keys_size);
    high_codes = (uint64_t *)(CACHE_END - keys_size);
    version_keys = (uint64_t *)(CACHE_END - 4 * keys_size);
    version_codes = (uint64_t *)(CACHE_END - 3 * keys_size);
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    links = mmap(NULL, sizeof *links << LINK_BITS, PROT_READ | PROT_WRITE, flags, -1, 0);
    by_code = mmap(NULL, sizeof *by_code * BLOCKS_MAX, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (links == MAP_FAILED || by_code == MAP_FAILED)
        fatal("cannot map the tables of the code cache");
    cache_syscall_table = (uint8_t *)version_keys - SYSCALL_TABLE;
    memset(cache_syscall_table, 1, SYSCALL_TABLE);
    next_link = 1;
    hot_end = (uint8_t *)CACHE_START + GATES_SIZE;
    cold_begin = cache_syscall_table;
    write_gates();
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

static struct block **bucket_of(uint64_t pc, unsigned version) {
    return &hash[hash_of(pc + ((uint64_t)version << 40))];
}

__attribute__((target("general-regs-only"))) struct block *block_find(uint64_t pc,
                                                                      unsigned version) {
    struct block *block = __atomic_load_n(bucket_of(pc, version), __ATOMIC_ACQUIRE);
    while (block && (block->pc != pc || block->version != version))
        block = __atomic_load_n(&block->hash_next, __ATOMIC_ACQUIRE);
    return block;
}

struct block *block_at(uint64_t address) {
    if (!cache_contains(address))
        return NULL;
    uint32_t offset = address - CACHE_START;
    uint32_t low = 0, high = __atomic_load_n(&by_code_count, __ATOMIC_ACQUIRE);
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (by_code[middle]->code <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return NULL;
    struct block *block = by_code[low - 1];
    return offset - block->code < block->code_size ? block : NULL;
}

const struct block_state *block_state_at(const struct block *block, uint64_t address) {
    uint32_t offset = address - CACHE_START - block->code;
    unsigned low = 0, high = block->state_count;
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;
        if (block->states[middle].host <= offset)
            low = middle;
        else
            high = middle;
    }
    return &block->states[low];
}

// ---- pages -------------------------------------------------------------------------------------

static struct code_page *page_find(uint64_t number) {
    struct code_page *page = pages[hash_of(number)];
    while (page && page->number != number)
        page = page->next;
    return page;
}

static void page_add(uint64_t number, struct block *block, unsigned slot) {
    struct code_page *page = page_find(number);
    if (!page) {
        page = arena_allocate(sizeof *page);
        *page = (struct code_page){.number = number, .next = pages[hash_of(number)]};
        pages[hash_of(number)] = page;
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
    struct block **head = bucket_of(block->pc, block->version);
    block->hash_next = *head;
    __atomic_store_n(head, block, __ATOMIC_RELEASE);
    cache_stats.blocks++;
}

// Replaces the distance of a jump that other threads may be running.
static void patch_jump(uint32_t site, uint64_t destination) {
    uint64_t at = CACHE_START + site;
    __atomic_store_n((uint32_t *)at, (uint32_t)(destination - (at + 4)), __ATOMIC_RELEASE);
}

static uint64_t direct_entry(const struct block *block) {
    return CACHE_START + block->code + block->direct_entry;
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

static uint32_t *table_entry(uint64_t pc) {
    if (pc >= CACHE_START)
        return NULL;
    uint32_t chunk = pc / TABLE_CHUNK;
    if (!table_mapped[chunk]) {
        void *at = (void *)(JUMP_TABLE + 4ul * chunk * TABLE_CHUNK);
        void *got = mmap(at, 4ul * TABLE_CHUNK, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        if (got != at)
            fatal("cannot map a part of the jump table");
        table_mapped[chunk] = 1;
    }
    return (uint32_t *)(JUMP_TABLE + 4 * pc);
}

uint64_t cache_version_key(unsigned version) {
    return (uint64_t)version << 48 | version * 4099ul;
}

// A reader takes the key, the code and the key again: it never pairs a key with another block's
// code.
static void enter_far(uint64_t *keys, uint64_t *codes, uint64_t key, const struct block *block) {
    unsigned index = key & ((1 << HIGH_BITS) - 1);
    __atomic_store_n(&keys[index], 0, __ATOMIC_RELEASE);
    __atomic_store_n(&codes[index], CACHE_START + block->code, __ATOMIC_RELEASE);
    __atomic_store_n(&keys[index], -key, __ATOMIC_RELEASE);
}

// The key goes; the code stays, because a reader may be between the two look-ups. It runs the old
// translation once more, as a processor may that has fetched the old code.
static void leave_far(uint64_t *keys, uint64_t key) {
    unsigned index = key & ((1 << HIGH_BITS) - 1);
    if (keys[index] == -key)
        __atomic_store_n(&keys[index], 0, __ATOMIC_RELEASE);
}

void block_enter_in_table(struct block *block) {
    cache_stats.indirect_misses++;
    if (block->dead)
        return;
    if (block->version) {
        enter_far(version_keys, version_codes, block->pc + cache_version_key(block->version),
                  block);
        return;
    }
    uint32_t *entry = table_entry(block->pc);
    if (entry)
        __atomic_store_n(entry, block->code, __ATOMIC_RELEASE);
    else
        enter_far(high_keys, high_codes, block->pc, block);
}

static void leave_table(struct block *block) {
    if (block->version)
        leave_far(version_keys, block->pc + cache_version_key(block->version));
    else if (block->pc >= CACHE_START)
        leave_far(high_keys, block->pc);
    else if (table_mapped[block->pc / TABLE_CHUNK])
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
    struct block **at = bucket_of(block->pc, block->version);
    while (*at && *at != block)
        at = &(*at)->hash_next;
    if (*at)
        __atomic_store_n(at, block->hash_next, __ATOMIC_RELEASE);
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
    if (last - first < 1 << HASH_BITS) {
        for (uint64_t number = first; number <= last; number++)
            killed += page_invalidate(number, start, end);
        return killed;
    }
    for (unsigned i = 0; i < 1 << HASH_BITS; i++)
        for (struct code_page *page = pages[i]; page; page = page->next)
            if (page->number >= first && page->number <= last)
                killed += page_invalidate(page->number, start, end);
    return killed;
}

void cache_flush(void) {
    memset(hash, 0, sizeof hash);
    memset(pages, 0, sizeof pages);
    for (unsigned i = 0; i < sizeof table_mapped; i++)
        if (table_mapped[i])
            madvise((void *)(JUMP_TABLE + 4ul * i * TABLE_CHUNK), 4ul * TABLE_CHUNK, MADV_DONTNEED);
    memset(high_keys, 0, sizeof(uint64_t) << HIGH_BITS);
    memset(version_keys, 0, sizeof(uint64_t) << HIGH_BITS);
    by_code_count = 0;
    links_used = 0;
    arena_empty();
    hot_end = (uint8_t *)CACHE_START + GATES_SIZE;
    cold_begin = cache_syscall_table;
    cache_epoch++;
    cache_stats.flushes++;
}
