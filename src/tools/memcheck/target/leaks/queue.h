// Blocks that wait to be scanned, in steps 1 and 2 of a leak search (leaks/search.h): first come,
// first served, so that what is found first is the nearest. Threads put and take whole chunks; a
// chunk that has been taken is used again, so only what waits costs memory.
//
// All blocks of a chunk are as many steps away from what is held. A chunk's words are numbers, and
// between them, with WORD_HELD, through which held block those that follow were found.
#ifndef QUERN_MEMCHECK_LEAKS_QUEUE_H
#define QUERN_MEMCHECK_LEAKS_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { CHUNK_WORDS = 252, WORD_HELD = 1u << 31 };

struct leak_chunk {
    struct leak_chunk *next;
    uint32_t steps, count;
    uint32_t words[CHUNK_WORDS];
};

struct leak_queue {
    atomic_flag lock;
    struct leak_chunk *first, *last; // that wait
    _Atomic uint32_t waiting;        // how many
    struct leak_chunk *spare;
    struct leak_slice {
        struct leak_slice *next;
    } * slices; // memory for chunks
};

// An empty chunk, NULL: out of memory.
struct leak_chunk *queue_chunk(struct leak_queue *);
void queue_put(struct leak_queue *, struct leak_chunk *);
struct leak_chunk *queue_take(struct leak_queue *); // NULL: nothing waits
void queue_give_back(struct leak_queue *, struct leak_chunk *);
void queue_free(struct leak_queue *);

#endif
