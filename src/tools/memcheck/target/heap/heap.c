// Allocating and freeing: what happens on every call. General registers only.
#include "tools/memcheck/target/heap/heap.h"

#include "engine/tool.h"
#include "tools/memcheck/target/heap/blocks.h"
#include "tools/memcheck/target/findings/findings.h"
#include "tools/memcheck/target/shadow/shadow.h"
#include "tools/memcheck/target/heap/sites.h"
#include "tools/shared/stacks.h"

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

struct heap_options heap_options;
_Thread_local struct heap *own_heap __attribute__((tls_model("local-exec")));
_Atomic uint64_t heap_freed_volume;
atomic_uint heap_count, heap_orphans;
atomic_bool heap_is_narrow;

static struct heap *heap_of_thread(void) {
    if (UNLIKELY(!own_heap))
        tool_with_vectors(heap_make_own, NULL);
    return own_heap;
}

struct filling {
    uint64_t start;
    size_t size;
    int byte;
};

static void fill_range(void *argument) {
    struct filling filling = *(struct filling *)argument;
    __asm__ volatile("rep stosb"
                     : "+D"(filling.start), "+c"(filling.size)
                     : "a"(filling.byte)
                     : "memory");
}

void heap_fill(uint64_t start, size_t size, int byte) {
    struct filling filling = {start, size, byte};
    uint64_t fault;
    tool_try(fill_range, &filling, &fault);
}

// ---- slots -------------------------------------------------------------------------------------

// Classes: steps of 16 bytes up to 512, then eight for each doubling, less what a slab needs for
// the red zone at its start.
static unsigned class_of(uint64_t need) {
    uint64_t last = (need - 1) >> 4;
    if (last < 32)
        return last + 1;
    last++;
    unsigned top = 63 - __builtin_clzll(last);
    return (top - 5) * 8 + (last >> (top - 3)) + 25;
}

// What a slab that is spread out gives first: every other slot.
static uint32_t spread(const struct slab *slab, uint32_t number) {
    uint32_t half = (slab->count + 1) / 2;
    return number < half ? 2 * number : 2 * (number - half) + 1;
}

// The slot that the next allocation of the class takes has been in the quarantine and is in no
// cache any more. Fetches its shadow, which is written first, its note, and where the program
// begins.
static inline void fetch_slot(const struct slab *slab, uint32_t slot) {
    enum { LINE = 64, LINES = 8 };
    uint64_t start = slab->first + (uint64_t)slot * slab->slot_size;
    uint64_t end = start + (slab->slot_size < LINE * LINES ? slab->slot_size : LINE * LINES);
    __builtin_prefetch(&slab->notes[slot], 1);
    __builtin_prefetch((void *)start, 1);
    for (uint64_t at = start; at < end; at += LINE)
        __builtin_prefetch(shadow_of(at), 1);
}

static inline bool take_slot(struct slab *slab, uint32_t *slot) {
    if (slab->free) {
        *slot = slab->free - 1;
        slab->free = slab->notes[*slot].made_at;
        if (slab->free)
            fetch_slot(slab, slab->free - 1);
    } else if (slab->fresh < slab->count) {
        *slot = slab->is_spread ? spread(slab, slab->fresh) : slab->fresh;
        slab->fresh++;
    } else {
        return false;
    }
    slab->used++;
    return true;
}

static void put_slot(struct slab *slab, uint32_t slot) {
    slab->notes[slot].made_at = slab->free;
    slab->free = slot + 1;
    slab->used--;
}

// Takes over what other threads have released.
static bool collect_remote(struct slab *slab) {
    uint32_t slot = atomic_exchange(&slab->remote, 0);
    if (!slot)
        return false;
    while (slot) {
        uint32_t next = slab->notes[slot - 1].made_at;
        put_slot(slab, slot - 1);
        slot = next;
    }
    return true;
}

static void make_available(struct heap *heap, struct slab *slab) {
    atomic_store(&slab->is_available, true);
    slab->next = heap->available[slab->class];
    heap->available[slab->class] = slab;
}

static void push_returned(struct slab *slab) {
    if (atomic_exchange(&slab->is_returned, true))
        return;
    struct heap *owner = atomic_load(&slab->owner);
    if (UNLIKELY(!owner)) {
        atomic_store(&slab->is_returned, false); // given back meanwhile
        return;
    }
    struct slab *first = atomic_load(&owner->returned);
    do
        slab->next_returned = first;
    while (!atomic_compare_exchange_weak(&owner->returned, &first, slab));
}

// Full slabs in which other threads have released slots. The owner may have changed meanwhile.
void heap_collect_returned(struct heap *heap) {
    struct slab *slab = atomic_exchange(&heap->returned, NULL);
    while (slab) {
        struct slab *next = slab->next_returned;
        atomic_store(&slab->is_returned, false);
        if (atomic_load(&slab->owner) != heap)
            push_returned(slab);
        else if (!atomic_load(&slab->is_available) && collect_remote(slab))
            make_available(heap, slab);
        slab = next;
    }
}

// A slab of the class that has room; the first one has none.
static struct slab *next_slab(struct heap *heap, unsigned class) {
    struct slab *slab;
    while ((slab = heap->available[class])) {
        if (slab->free || slab->fresh < slab->count || collect_remote(slab))
            return slab;
        heap->available[class] = slab->next;
        atomic_store(&slab->is_available, false);
        // Somebody who did not see that in time has not returned it.
        if (atomic_load(&slab->remote))
            push_returned(slab);
        heap_collect_returned(heap);
    }
    heap_collect_returned(heap);
    if (heap->available[class])
        return heap->available[class];
    struct slab_request request = {.heap = heap, .class = class};
    tool_with_vectors(slab_make, &request);
    if (request.slab)
        make_available(heap, request.slab);
    return request.slab;
}

// The slab stays with its owner unless all of it is free and there is another one.
static void look_whether_empty(struct heap *heap, struct slab *slab) {
    struct slab **at = &heap->available[slab->class];
    if (!*at || !(*at)->next || atomic_load(&slab->is_returned))
        return;
    while (*at != slab)
        at = &(*at)->next;
    *at = slab->next;
    atomic_store(&slab->is_available, false);
    tool_with_vectors(slab_give_back, slab);
}

static void slot_release(struct slab *slab, uint32_t slot) {
    struct block_note *note = &slab->notes[slot];
    struct heap *owner = atomic_load_explicit(&slab->owner, memory_order_relaxed);
    atomic_store_explicit(&note->word, 0, memory_order_relaxed);
    if (owner == own_heap) {
        put_slot(slab, slot);
        if (!atomic_load_explicit(&slab->is_available, memory_order_relaxed))
            make_available(owner, slab);
        else if (slab->used == 0)
            look_whether_empty(owner, slab);
        return;
    }
    if (!owner) {
        tool_with_vectors(slab_give_back, slab);
        return;
    }
    uint32_t first = atomic_load(&slab->remote);
    do
        note->made_at = first;
    while (!atomic_compare_exchange_weak(&slab->remote, &first, slot + 1));
    if (!atomic_load(&slab->is_available))
        push_returned(slab);
}

// ---- quarantine --------------------------------------------------------------------------------
//
// Each thread keeps the blocks that it has freed, oldest first; the volume is one for all. What is
// above it leaves when a thread allocates, so that even the largest block stays for a while after
// its free. The thread gives up blocks of threads that have ended first, then its own, but not when
// it holds less than its share of the volume: the rest is held by others, who will give up theirs.
//
// Blocks leave in batches, once they are a batch above the volume, and never below it. So the notes
// of many are fetched at once, threads rarely tell each other their volumes, and the slots that
// become free are known early enough to be fetched before they are taken (fetch_slot).

static void queue_push(struct queue *queue, uint64_t block) {
    if (UNLIKELY(!queue->last || queue->last->last == QUEUE_CHUNK))
        tool_with_vectors(queue_add_chunk, queue);
    queue->last->blocks[queue->last->last++] = block;
}

static uint64_t queue_pop(struct queue *queue) {
    while (queue->first && queue->first->first == queue->first->last) {
        if (!queue->first->next)
            return 0;
        tool_with_vectors(queue_drop_chunk, queue);
    }
    return queue->first ? queue->first->blocks[queue->first->first++] : 0;
}

// Blocks without a byte use memory, too.
static uint64_t volume_of(size_t size) {
    return size < LEAST_ALIGNMENT ? LEAST_ALIGNMENT : size;
}

static void publish_volume(struct heap *heap) {
    atomic_fetch_add_explicit(&heap_freed_volume, heap->freed_volume - heap->published_volume,
                              memory_order_relaxed);
    heap->published_volume = heap->freed_volume;
}

// What fills the volume alone would drive out all others. It leaves first.
static unsigned quarantine_class(size_t size) {
    return (size >= heap_options.large ? 0 : 2) + (size >= heap_options.freed_volume ? 0 : 1);
}

static void quarantine(struct heap *heap, uint64_t block, size_t size) {
    queue_push(&heap->freed[quarantine_class(size)], block);
    heap->freed_volume += volume_of(size);
    if (heap->freed_volume - heap->published_volume > heap_options.freed_volume / 64)
        publish_volume(heap);
}

static void release(struct heap *heap, uint64_t block) {
    union cell *cell = cell_of(block);
    if (cell->is_huge) {
        heap->freed_volume -= volume_of(cell->huge.size);
        tool_with_vectors(huge_give_back, &cell->huge);
        return;
    }
    struct slab *slab = slab_of(&cell->segment, block);
    uint32_t slot = slot_of(slab, block);
    heap->freed_volume -= volume_of(word_size(slab->notes[slot].word));
    slot_release(slab, slot);
}

static bool is_over(const struct heap *heap, uint64_t most) {
    uint64_t others =
        atomic_load_explicit(&heap_freed_volume, memory_order_relaxed) - heap->published_volume;
    if (LIKELY(heap->freed_volume + others <= most))
        return false;
    unsigned heaps = atomic_load_explicit(&heap_count, memory_order_relaxed);
    return heap->freed_volume > most / (heaps ? heaps : 1);
}

// Some blocks later this one leaves. Fetches its note.
static void fetch_note(const struct queue *queue) {
    enum { AHEAD = 6 };
    const struct queue_chunk *chunk = queue->first;
    if (!chunk || chunk->first + AHEAD >= chunk->last)
        return;
    uint64_t block = chunk->blocks[chunk->first + AHEAD];
    const union cell *cell = cell_of(block);
    const struct slab *slab = cell->is_huge ? NULL : slab_of(&cell->segment, block);
    if (slab)
        __builtin_prefetch(&slab->notes[slot_of(slab, block)], 1);
}

static void __attribute__((noinline)) release_oldest(struct heap *heap) {
    if (atomic_load_explicit(&heap_orphans, memory_order_relaxed))
        tool_with_vectors(heap_take_orphans, heap);
    while (is_over(heap, heap_options.freed_volume)) {
        fetch_note(&heap->freed[QUARANTINE_CLASSES - 1]);
        uint64_t block = 0;
        for (unsigned i = 0; !block && i < QUARANTINE_CLASSES; i++)
            block = queue_pop(&heap->freed[i]);
        if (!block)
            break;
        release(heap, block);
    }
    publish_volume(heap);
}

// ---- allocating --------------------------------------------------------------------------------

uint32_t heap_freeing_stack(void) {
    return heap_options.keep_freed || sites_wanted == SITES_FULL ? stack_here() : 0;
}

static uint32_t __attribute__((noinline)) count_new(size_t size) {
    uint32_t stack = heap_options.keep_made ? stack_here() : 0;
    if (sites_wanted)
        sites_made(stack, size);
    return stack;
}

uint32_t heap_stack_of_new(size_t size) {
    return LIKELY(heap_options.only_keep_made) ? stack_here() : count_new(size);
}

uint64_t heap_need_of(size_t size, size_t alignment) {
    if (size > (uint64_t)1 << 45 || alignment > (uint64_t)1 << 40)
        return 0;
    uint64_t need = size ? size : 1;
    if (atomic_load_explicit(&heap_is_narrow, memory_order_relaxed))
        need += NARROW;
    else
        need +=
            heap_options.front + (size >= 8 * heap_options.red_zone ? heap_options.red_zone : 0);
    if (alignment > LEAST_ALIGNMENT)
        need += alignment - LEAST_ALIGNMENT;
    return need;
}

static void finish(uint64_t block, size_t size, bool zeroed) {
    if (zeroed) {
        heap_fill(block, size, 0);
        shadow_make_defined(block, size);
        return;
    }
    if (heap_options.malloc_fill >= 0)
        heap_fill(block, size, heap_options.malloc_fill);
    shadow_make_undefined(block, size);
}

static uint64_t __attribute__((noinline)) place_huge(const struct placing *placing) {
    struct huge_request request = {placing->size, placing->room, placing->alignment, NULL};
    tool_with_vectors(huge_make, &request);
    struct huge *huge = request.huge;
    if (!huge)
        return 0;
    huge->maker = placing->maker;
    huge->made_at = heap_stack_of_new(placing->size);
    huge->has_room = placing->room;
    huge->is_aligned = placing->is_aligned;
    if (!placing->zeroed) // memory that is newly mapped is zero and defined
        finish(huge->block, placing->size, false);
    atomic_store(&huge->state, BLOCK_LIVE);
    return huge->block;
}

static inline __attribute__((always_inline)) bool take_small(struct heap *heap, uint64_t need,
                                                             struct slab **slab, uint32_t *slot) {
    unsigned class = class_of(need);
    *slab = heap->available[class];
    while (UNLIKELY(!*slab || !take_slot(*slab, slot)))
        if (!(*slab = next_slab(heap, class)))
            return false;
    return true;
}

// A slab of its own. Only what lies around the block becomes not addressable here.
static bool __attribute__((noinline))
take_large(const struct placing *placing, uint64_t need, struct slab **slab, uint32_t *slot) {
    struct slab_request request = {.size = need};
    tool_with_vectors(slab_make, &request);
    *slab = request.slab;
    if (!*slab || !take_slot(*slab, slot))
        return false;
    uint64_t start = (*slab)->start, end = start + ((uint64_t)(*slab)->units << UNIT_BITS);
    uint64_t block = slot_block(*slab, *slot, placing->alignment);
    shadow_make_noaccess(start, block - start);
    shadow_make_noaccess(block + placing->size, end - (block + placing->size));
    return true;
}

static inline __attribute__((always_inline)) uint64_t place(struct heap *heap, uint64_t need,
                                                            const struct placing *placing) {
    struct slab *slab;
    uint32_t slot;
    if (!(LIKELY(need <= SLAB_MOST) ? take_small(heap, need, &slab, &slot)
                                    : take_large(placing, need, &slab, &slot)))
        return 0;
    struct block_note *note = &slab->notes[slot];
    uint64_t block = slot_block(slab, slot, placing->alignment);
    note->made_at = heap_stack_of_new(placing->size);
    finish(block, placing->size, placing->zeroed);
    uint32_t word = note_word(placing->size, placing->maker, __builtin_ctzl(placing->alignment));
    if (UNLIKELY(placing->room))
        word |= NOTE_ROOM;
    if (UNLIKELY(placing->is_aligned))
        word |= NOTE_ALIGNED;
    atomic_store_explicit(&note->word, word, memory_order_release);
    return block;
}

// Inlined into what every malloc calls.
static inline __attribute__((always_inline)) uint64_t allocate(struct placing *placing) {
    struct heap *heap = heap_of_thread();
    placing->is_aligned = placing->alignment;
    if (placing->alignment < heap_options.alignment)
        placing->alignment = heap_options.alignment;
    if (UNLIKELY(is_over(heap, heap_options.batch_volume)))
        release_oldest(heap);
    uint64_t need = heap_need_of(placing->size + placing->room, placing->alignment);
    if (UNLIKELY(!need))
        return 0;
    uint64_t block = LIKELY(need < HUGE_LEAST) ? place(heap, need, placing) : place_huge(placing);
    if (LIKELY(block)) {
        heap_add_to(&heap->counters->allocations, 1);
        heap_add_to(&heap->counters->bytes, placing->size);
    }
    return block;
}

uint64_t heap_place(struct placing *placing) {
    return allocate(placing);
}

uint64_t heap_allocate(size_t size, size_t alignment, enum heap_maker maker, bool zeroed) {
    struct placing placing = {size, 0, alignment, maker, zeroed, false};
    return allocate(&placing);
}

// ---- freeing -----------------------------------------------------------------------------------

bool heap_find_live(uint64_t address, struct found_block *found) {
    union cell *cell = cell_of(address);
    if (!cell)
        return false;
    if (cell->is_huge) {
        struct huge *huge = &cell->huge;
        if (huge->block != address || atomic_load(&huge->state) != BLOCK_LIVE)
            return false;
        *found = (struct found_block){.huge = huge,
                                      .size = huge->size,
                                      .alignment = huge->alignment,
                                      .maker = huge->maker,
                                      .is_aligned = huge->is_aligned};
        return true;
    }
    struct slab *slab = slab_of(&cell->segment, address);
    if (!slab)
        return false;
    uint32_t slot = slot_of(slab, address);
    if (slot >= slab->count)
        return false;
    struct block_note *note = &slab->notes[slot];
    uint32_t word = atomic_load_explicit(&note->word, memory_order_acquire);
    size_t alignment = word_alignment(word);
    if (word_state(word) != BLOCK_LIVE || slot_block(slab, slot, alignment) != address)
        return false;
    *found = (struct found_block){.slab = slab,
                                  .note = note,
                                  .slot = slot,
                                  .size = word_size(word),
                                  .alignment = alignment,
                                  .maker = word_maker(word),
                                  .is_aligned = word & NOTE_ALIGNED};
    return true;
}

// False: another thread was faster.
static bool mark_freed(const struct found_block *found) {
    if (found->huge) {
        enum block_state live = BLOCK_LIVE;
        return atomic_compare_exchange_strong(&found->huge->state, &live, BLOCK_FREED);
    }
    uint32_t word = atomic_load_explicit(&found->note->word, memory_order_relaxed);
    uint32_t freed = (word & ~(uint32_t)NOTE_STATE_MASK) | (uint32_t)BLOCK_FREED << NOTE_STATE;
    return word_state(word) == BLOCK_LIVE &&
           atomic_compare_exchange_strong(&found->note->word, &word, freed);
}

static void __attribute__((noinline))
count_freed(const struct found_block *found, uint32_t *freed_at) {
    uint32_t *made_at = found->huge ? &found->huge->made_at : &found->note->made_at;
    uint32_t stack = heap_freeing_stack();
    if (sites_wanted)
        sites_freed(*made_at, stack, found->size);
    if (heap_options.keep_freed)
        *freed_at = stack;
    if (heap_options.freed_over_made)
        *made_at = 0;
}

static void keep_freed_stack(const struct found_block *found) {
    uint32_t *freed_at = found->huge ? &found->huge->freed_at : &found->slab->freed_at[found->slot];
    if (LIKELY(heap_options.only_keep_freed))
        *freed_at = stack_here();
    else
        count_freed(found, freed_at);
}

bool heap_give_up(uint64_t address, const struct found_block *found) {
    struct heap *heap = heap_of_thread();
    if (!mark_freed(found))
        return false;
    keep_freed_stack(found);
    shadow_make_noaccess(address, found->size);
    if (heap_options.free_fill >= 0)
        heap_fill(address, found->size, heap_options.free_fill);
    quarantine(heap, address, found->size);
    heap_add_to(&heap->counters->frees, 1);
    heap_add_to(&heap->counters->freed_bytes, found->size);
    return true;
}

struct bad_free {
    uint64_t address;
    const char *function;
    bool freed_nothing; // result
};

static void report_bad_free(void *argument) {
    struct bad_free *bad = argument;
    if (declared_is_live(bad->address)) {
        if (heap_options.mismatches)
            findings_add_mismatched_free(bad->address);
        heap_undeclare(bad->address, heap_options.red_zone);
        return;
    }
    bad->freed_nothing = true;
    findings_add_free(bad->address, bad->function);
}

static bool report_free_of_nothing(uint64_t address, const char *function) {
    struct bad_free bad = {address, function, false};
    tool_with_vectors(report_bad_free, &bad);
    if (bad.freed_nothing)
        heap_add_to(&heap_of_thread()->counters->failed_frees, 1);
    return bad.freed_nothing;
}

void heap_report_bad_resize(uint64_t address, size_t size) {
    if (!report_free_of_nothing(address, "realloc"))
        return;
    struct heap *heap = heap_of_thread();
    heap_add_to(&heap->counters->failed_resizes, 1);
    heap_add_to(&heap->counters->failed_resize_bytes, size);
}

void heap_report_mismatch(uint64_t address, enum heap_maker freer) {
    if (heap_options.mismatches && (freer == HEAP_CLIENT || entry_knows_makers()))
        findings_add_mismatched_free(address);
}

// Alignments below that of every block are not told apart.
static bool has_alignment(const struct found_block *found, size_t alignment) {
    if (!alignment)
        return !found->is_aligned;
    if (alignment < heap_options.alignment)
        alignment = heap_options.alignment;
    return found->is_aligned && found->alignment == alignment;
}

static void __attribute__((noinline))
check_claim(uint64_t address, const struct found_block *found, const struct heap_claim *claim) {
    if (claim->size != HEAP_ANY && claim->size != found->size)
        findings_add_size_mismatch(address, claim->size, claim->functions);
    if (claim->alignment != HEAP_ANY && !has_alignment(found, claim->alignment))
        findings_add_alignment_mismatch(address, found->is_aligned ? found->alignment : 0,
                                        claim->alignment, claim->functions);
}

static inline bool is_as_claimed(const struct found_block *found, const struct heap_claim *claim) {
    return (claim->size == HEAP_ANY || claim->size == found->size) &&
           (claim->alignment == HEAP_ANY || (!claim->alignment && !found->is_aligned));
}

void heap_free(uint64_t address, const struct heap_claim *claim) {
    struct found_block found;
    bool is_live = heap_find_live(address, &found);
    if (is_live && UNLIKELY(found.maker != claim->maker))
        heap_report_mismatch(address, claim->maker);
    else if (is_live && UNLIKELY(!is_as_claimed(&found, claim)) && entry_knows_claims())
        check_claim(address, &found, claim);
    if (UNLIKELY(!is_live || !heap_give_up(address, &found)))
        report_free_of_nothing(address, claim->function);
}

size_t heap_size_of(uint64_t address) {
    struct found_block found;
    return heap_find_live(address, &found) ? found.size : 0;
}
