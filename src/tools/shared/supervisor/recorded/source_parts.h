// The inside of source.h: source.c puts the records of all rings in order, records.c turns them
// into events for the sinks. Nobody else includes this.
#ifndef QUERN_SUPERVISOR_HEAP_SOURCE_PARTS_H
#define QUERN_SUPERVISOR_HEAP_SOURCE_PARTS_H

#include "base/map.h"
#include "profile/heap/blocks.h"
#include "profile/heap/regions.h"
#include "tools/shared/supervisor/interpreted.h"
#include "tools/shared/supervisor/recorded/source.h"
#include "wire/wire_heap.h"

// What is known of a ring.
struct heap_ring {
    struct wire_heap_ring *shared;
    uint64_t head;    // words taken
    uint64_t given;   // of these, words that the writer has been told of
    uint64_t tail;    // words that are there, as of this round
    uint64_t next;    // clock of the record at head; NO_CLOCK: none
    uint64_t fetched; // words up to which blocks have been fetched
    uint32_t thread;
    int tid;           // 0: its thread has ended
    uint64_t cpu_time; // of the thread, when it was last reported to have run
    uint64_t ran;      // when that was
    bool resizing;     // the block in `moving` is between its two records
    uint64_t moving_address;
    struct heap_block moving;
    enum heap_region_kind unmapped; // what the last UNMAPPED was about
    char name[17];
    uint64_t blocks, bytes; // that its thread has allocated; resizes count for what they add
};

struct heap_source {
    char *area;
    struct wire_heap_header *header;
    uint32_t clock; // as checked: the header may change under us
    uint64_t clock_start;
    uint64_t first_clock, first_time; // a pair to convert by
    double scale;                     // nanoseconds per tick
    uint64_t factor;                  // the same, as a number with a binary fraction
    struct heap_ring *rings;
    uint32_t ring_count;
    uint32_t *order; // rings that have records, a binary heap by `next`
    uint32_t order_count;
    struct blocks blocks;
    struct blocks chunks; // blocks that serve allocators of the program's own
    uint32_t *stacks;     // the area's numbers to ours; 0: not seen
    uint32_t stack_count;
    uint32_t thread_count;
    uint64_t block_count;
    uint64_t live_bytes, peak_bytes, total_bytes;
    uint64_t time;                // of the event in hand
    uint64_t halted_from, halted; // when the clock stood still, and for how long
    struct regions regions;
    struct heap_sink sinks[HEAP_SOURCE_SINKS];
    size_t sink_count;
    struct heap_source_counts counts;
    struct heap_sample sample;                  // the last one
    const struct heap_interpreter *interpreter; // NULL: its frames are not wanted
    bool is_noting;              // addresses that are freed
    struct map_integers freed;
    bool broken;
};

// The two that there are most of.
void records_allocated(struct heap_source *source, struct heap_ring *ring, uint64_t address,
                       uint64_t size, uint64_t stack);
void records_freed(struct heap_source *source, struct heap_ring *ring, uint64_t address);
void records_thread_ended(struct heap_source *source, struct heap_ring *ring);
// A record of another kind, `count` words long, has been read; the first word is the clock's, which
// has become source->time.
void records_take(struct heap_source *source, struct heap_ring *ring, unsigned kind,
                  const uint64_t *words, uint64_t count);

#endif
