// The part of origins.c and origins_frames.c that may use vector registers: making pages of tags,
// and searching heap and stack for who made a value undefined.
//
// Words: origins.h has tag and mark. A *known* frame is the result of a search of the stack, kept
// for the next one at the same place.
//
// For these two files only. They use general registers only, and call the functions here through
// tool_with_vectors; so each function takes one pointer.
#ifndef QUERN_MEMCHECK_ORIGINS_SLOW_H
#define QUERN_MEMCHECK_ORIGINS_SLOW_H

#include <stdbool.h>
#include <stdint.h>

enum { ORIGIN_PAGE = 4096, ORIGIN_LINE = 64 };

// Tags of a page of target memory.
struct origin_page {
    uint64_t used; // bits of lines in which there may be tags
    uint32_t tags[ORIGIN_PAGE / 4];
    uint32_t marks[ORIGIN_PAGE / 4]; // of the frame that each was stored in, 0: none
};

// A frame that was found. Distances are from the stack pointer.
enum { KNOWN_BITS = 12, KNOWN_RETURNS = 8 };
struct origin_return {
    uint64_t distance, address; // of a return address: where it stands, and itself
};
struct origin_known {
    uint64_t pc, distance; // the key
    uint32_t origin;
    uint8_t count;   // the last of the return addresses is the frame's own
    bool is_beyond;  // the address lies in none of so many frames
    bool is_handler; // it belongs to a handler's red zone, which the kernel has made
    struct origin_return returns[KNOWN_RETURNS];
};
struct origin_known_frames {
    struct origin_known frames[1 << KNOWN_BITS];
};

struct origin_search {
    uint64_t address;
    uint32_t origin;
};
struct origin_frame_search {
    uint64_t address;
    struct origin_known *known;
};

// These two set a pointer, which stays as it is if there is no memory.
void origins_make_page(void *made);
void origins_make_known(void *made);
void origins_drop_page(void *page);
void origins_search_heap(void *search);
void origins_search_stack(void *frame_search);
void origins_search_far(void *search); // the same without what is known

#endif
