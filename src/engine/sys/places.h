// Where the target's mappings may go. With the space lock held.
//
// The target may have memory wherever it would natively, except where the engine is. The code cache
// and the jump table make room (memory/room.h); shadow memory and what the kernel has placed for
// the engine do not.
//
// Words
//   claim   natively, what is free in a range becomes the target's, without access, so that it can
//           be mapped over: what the engine maps for itself meanwhile is not replaced
#ifndef QUERN_ENGINE_SYS_PLACES_H
#define QUERN_ENGINE_SYS_PLACES_H

#include <stdbool.h>
#include <stdint.h>

// Whether the target may insist on having memory there.
bool place_is_possible(uint64_t start, uint64_t end);
// Whether the target sees nothing there: room that is kept for the break counts as free until the
// break grows into it. may_move: so does what makes room.
bool place_is_unused(uint64_t start, uint64_t end, bool may_move);
// How far the target has memory from `start` on without a gap.
uint64_t place_mapped_until(uint64_t start, uint64_t end);

// 0 or a status: -EEXIST if a part is the engine's.
int place_claim(uint64_t start, uint64_t end);
// Nothing has been mapped there after all.
void place_unclaim(uint64_t start, uint64_t end);

struct place_request {
    uint64_t hint, size, prot, flags;
    int fd;
    uint64_t offset;
};
// The place for a mapping that has no fixed one, or 0. It has been claimed. may_move: it may be
// where something is that makes room.
uint64_t place_choose(const struct place_request *, bool may_move);

// sys/former.c. With --keep-debuginfo=yes: the place for the module of file fd instead of `at`,
// where no other module has been. below(end, size) gives the next place that ends before `end`.
uint64_t former_avoid(uint64_t at, uint64_t size, int fd, uint64_t (*below)(uint64_t, uint64_t));

#endif
