// How the heap's memory is divided; shared by the files that make up the allocator (heap.h).
//
// Words
//   segment   4 MiB of target memory, aligned, divided into units of 16 KiB
//   slab      a run of units, divided into slots of one size
//   slot      room for one block: first the block, then the red zone, which is also the one before
//             the block of the next slot. Blocks that are large in comparison have two after them.
//             A red zone lies before the first slot of a slab
//   narrow    once the heap is large: of a red zone there are at least NARROW bytes only, which is
//             what fits where the C library keeps its own records
//   note      what is known about a slot's block; notes lie outside target memory
//   heap      a thread's share of the allocator: it alone takes slots from slabs that it owns
//   released  a slot whose block has left the quarantine and may be used again
//   huge      a block with a mapping of its own
//   room      what the slot of a block has beyond its red zone, for the block to grow into
//
// Invariants
//   - cells[address >> SEGMENT_BITS] is what the address belongs to, NULL: not the heap's.
//   - Memory of segments, slabs and notes, once allocated, stays readable for good, so that looking
//     up needs no lock; a look-up that races with a change may find nothing or an old block.
//   - A slot is live, freed (it is in somebody's quarantine) or none (released, or never used);
//     only none slots are on a slab's lists.
//   - A slab is on its owner's list `available` unless it was found full. A thread that releases a
//     slot of somebody else's slab puts it on the slab's list `remote`, and the slab on its owner's
//     list `returned` if it is not available.
//   - The lock guards segments, their units, the lists of heaps and free slabs. Nobody who holds it
//     maps or unmaps target memory: a fork takes it while it holds the engine's locks.
//
// heap.c uses general registers only; the functions under segments.c do not, and are called through
// tool_with_vectors from there.
#ifndef QUERN_MEMCHECK_BLOCKS_H
#define QUERN_MEMCHECK_BLOCKS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "tools/memcheck/target/heap/heap.h"
#include "wire/findings.h"

enum {
    SEGMENT_BITS = 22,
    UNIT_BITS = 14,
    UNITS = 1 << (SEGMENT_BITS - UNIT_BITS),
    CELL_BITS = 46 - SEGMENT_BITS,
    LEAST_ALIGNMENT = 16,
    CLASSES = 89,
    SLAB_MOST = 64 * 1024 - 16,   // larger slots have a slab of their own
    HUGE_LEAST = 1024 * 1024 + 1, // slots from here on are huge
    NARROW = 8,
    NARROW_FROM = 8, // segments
};

enum block_state { BLOCK_NONE, BLOCK_LIVE, BLOCK_FREED };

// ---- notes -------------------------------------------------------------------------------------

struct block_note {
    uint32_t made_at;      // of a none slot: the next on its list, counted from 1
    _Atomic uint32_t word; // size, maker, state, alignment, whether that was asked for, room
};

enum { NOTE_MAKER = 21, NOTE_STATE = 23, NOTE_ALIGNMENT = 25, NOTE_STATE_MASK = 3 << NOTE_STATE };
#define NOTE_ALIGNED (1u << 30) // the target asked for an alignment
#define NOTE_ROOM    (1u << 31)

static inline uint32_t note_word(size_t size, enum heap_maker maker, unsigned alignment_bits) {
    return size | (uint32_t)maker << NOTE_MAKER | (uint32_t)BLOCK_LIVE << NOTE_STATE |
           (uint32_t)alignment_bits << NOTE_ALIGNMENT;
}

static inline size_t word_size(uint32_t word) {
    return word & ((1u << NOTE_MAKER) - 1);
}

static inline enum heap_maker word_maker(uint32_t word) {
    return word >> NOTE_MAKER & 3;
}

static inline enum block_state word_state(uint32_t word) {
    return word >> NOTE_STATE & 3;
}

static inline size_t word_alignment(uint32_t word) {
    return (size_t)1 << (word >> NOTE_ALIGNMENT & 31);
}

// ---- slabs and segments ------------------------------------------------------------------------

struct heap;

struct slab {
    uint64_t start;
    uint64_t first;      // where the first slot is
    uint64_t reciprocal; // of slot_size
    uint32_t slot_size, count;
    struct block_note *notes;
    uint32_t *freed_at; // of each slot that is freed; memory that is not touched before a free
    uint32_t number;    // of the first slot, while leaks are searched for
    _Atomic(struct heap *) owner; // NULL: a slab of one slot that is given back when released
    uint32_t free;                // released slots: the first, counted from 1
    uint32_t fresh;               // slots that were ever used
    uint32_t used;                // slots that are live or freed, or on `remote`
    uint8_t class;
    uint16_t units;
    bool is_spread; // neighbours in time are no neighbours in space
    atomic_bool is_available, is_returned;
    _Atomic uint32_t remote;
    struct slab *next;          // in the owner's list, or among free ones
    struct slab *next_returned; // in the owner's other list
};

struct segment {
    uint64_t start, end;
    bool is_huge;
    _Atomic(struct slab *) slabs[UNITS];
    uint64_t taken[UNITS / 64]; // bits of units
    unsigned free_units;
    struct segment *next; // with free units
};

struct huge {
    uint64_t start, end; // of the mapping
    bool is_huge;
    _Atomic enum block_state state;
    enum heap_maker maker;
    uint64_t block;
    size_t size, alignment;
    uint32_t made_at, freed_at;
    uint32_t number; // while leaks are searched for
    bool has_room;   // to grow in place
    bool is_aligned; // as the target asked for
    // Bytes below this offset were allocated there, before realloc moved the block; for origins.
    size_t older_size;
    uint32_t older_at;
    struct huge *next; // among those that are no longer used
};

// Both begin with start, end and is_huge.
union cell {
    struct {
        uint64_t start, end;
        bool is_huge;
    };
    struct segment segment;
    struct huge huge;
};

extern _Atomic(union cell *) *heap_cells;

static inline union cell *cell_of(uint64_t address) {
    if (address >> (SEGMENT_BITS + CELL_BITS))
        return NULL;
    return atomic_load_explicit(&heap_cells[address >> SEGMENT_BITS], memory_order_acquire);
}

static inline struct slab *slab_of(const struct segment *segment, uint64_t address) {
    return atomic_load_explicit(&segment->slabs[(address >> UNIT_BITS) % UNITS],
                                memory_order_acquire);
}

enum { RECIPROCAL_BITS = 40 };

// The slot that the address lies in. What lies before the first one counts as in it; behind the
// last one, the result is not below slab->count.
static inline uint32_t slot_of(const struct slab *slab, uint64_t address) {
    uint64_t distance = address < slab->first ? 0 : address - slab->first;
    return distance * slab->reciprocal >> RECIPROCAL_BITS;
}

// Where the block of a slot starts.
static inline uint64_t slot_block(const struct slab *slab, uint32_t slot, size_t alignment) {
    uint64_t start = slab->first + (uint64_t)slot * slab->slot_size;
    return (start + alignment - 1) & ~(uint64_t)(alignment - 1);
}

// ---- a thread's heap ---------------------------------------------------------------------------

// Large blocks (--freelist-big-blocks), then others; of both, those first that are no smaller than
// the whole volume (--freelist-vol).
enum { QUEUE_CHUNK = 510, QUARANTINE_CLASSES = 4 };

struct queue_chunk {
    struct queue_chunk *next;
    uint32_t first, last; // entries in use
    uint64_t blocks[QUEUE_CHUNK];
};

struct queue {
    struct queue_chunk *first, *last;
};

struct heap {
    struct slab *available[CLASSES];
    _Atomic(struct slab *) returned;
    bool has_spread[CLASSES];
    struct queue freed[QUARANTINE_CLASSES]; // the quarantine: lower classes leave first
    struct queue_chunk *spare;
    uint64_t freed_volume, published_volume;
    struct ledger_heap *counters, own_counters; // written by the owner
    struct heap *next;                          // of all
    bool is_idle;                               // its thread has ended
};

struct heap_options {
    size_t red_zone, front; // front: the red zone in steps of LEAST_ALIGNMENT
    bool may_be_narrow;
    size_t alignment;
    uint64_t freed_volume, large;
    uint64_t batch_volume;      // what is in the quarantine before a batch of blocks leaves it
    int malloc_fill, free_fill; // -1: none
    bool keep_made, keep_freed, freed_over_made;
    // Nothing is to be done about stacks but to keep them: most runs.
    bool only_keep_made, only_keep_freed;
    bool mismatches, resize_to_zero_frees, resizes_to_zero; // the last: they are reported
};
extern struct heap_options heap_options;

extern _Thread_local struct heap *own_heap __attribute__((tls_model("local-exec")));
// Of all threads together, as far as they have told.
extern _Atomic uint64_t heap_freed_volume;
extern atomic_uint heap_count;   // heaps of threads
extern atomic_uint heap_orphans; // idle heaps that still hold freed blocks
extern atomic_bool heap_is_narrow;

// Takes full slabs in which other threads have released slots back into the lists. On the heap's
// own thread, or, of an idle heap, under the lock.
void heap_collect_returned(struct heap *);

// ---- heap.c ------------------------------------------------------------------------------------

struct placing {
    size_t size;
    size_t room;      // bytes behind it that it may grow into
    size_t alignment; // 0: that of every block
    enum heap_maker maker;
    bool zeroed;
    bool is_aligned; // as the target asked for; heap_place sets it
};
// A new block. 0: no memory.
uint64_t heap_place(struct placing *);
// What a slot must hold, 0: too large.
uint64_t heap_need_of(size_t size, size_t alignment);
uint32_t heap_stack_of_new(size_t size);

// The live block that begins at an address.
struct found_block {
    struct slab *slab;
    struct huge *huge; // one of the two
    struct block_note *note;
    uint32_t slot;
    size_t size, alignment;
    enum heap_maker maker;
    bool is_aligned; // as the target asked for
};
bool heap_find_live(uint64_t address, struct found_block *);
// Frees it. False: another thread was faster.
bool heap_give_up(uint64_t address, const struct found_block *);
void heap_report_bad_resize(uint64_t address, size_t size);
void heap_report_mismatch(uint64_t address, enum heap_maker freer);
// The target may have taken the right to write from pages of the heap.
void heap_fill(uint64_t start, size_t size, int byte);

// Only the thread that owns the counter writes it.
static inline void heap_add_to(uint64_t *counter, uint64_t amount) {
    __atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + amount,
                     __ATOMIC_RELAXED);
}

// ---- segments.c --------------------------------------------------------------------------------

void segments_start(void);
void segments_lock(void);
void segments_unlock(void);
void segments_forked(void);
// Each finds its argument and result in *request.
struct slab_request {
    struct heap *heap;
    unsigned class; // 0: one slot of the given size
    uint64_t size;
    struct slab *slab; // result, NULL: no memory
};
void slab_make(void *request);
void slab_give_back(void *slab);
struct huge_request {
    size_t size, room, alignment;
    struct huge *huge; // result, NULL: no memory
};
void huge_make(void *request);
void huge_give_back(void *huge);
void heap_make_own(void *unused);   // sets own_heap
void heap_take_orphans(void *heap); // their freed blocks become the oldest of this heap
void queue_add_chunk(void *queue);
void queue_drop_chunk(void *queue);
// The lowest and the highest cell in use.
void cells_in_use(uint64_t *first, uint64_t *last);
struct heap *heap_first(void);

// ---- what is replaced --------------------------------------------------------------------------

bool entry_knows_makers(void); // by which name a function was called
bool entry_knows_claims(void); // by which of the names of delete
// malloc and its kin (entry.c); how many they are.
size_t entry_symbols(struct tool_symbol *);
extern const struct tool_symbol string_symbols[]; // mem* and str* (strings.c)

// ---- declared.c: blocks that the target declares -----------------------------------------------

void declared_lock(void);
void declared_unlock(void);
void declared_forked(void);
bool declared_any(void); // general registers only
bool declared_find(uint64_t address, struct heap_block *);
struct heap_totals declared_totals(void);
// The live block with the lowest start from there on. Takes no lock: others are stopped.
bool declared_next(uint64_t from, struct heap_block *);
bool declared_is_live(uint64_t start);

#endif
