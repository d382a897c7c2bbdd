// Where undefined values come from (--track-origins=yes).
//
// Nothing is kept for memory that was merely allocated: a heap block knows who made it, and the
// frame that an address lies in is found on the stack. Only where undefined bits are stored is
// their origin kept, a *tag* for each four bytes, in pages made on demand (origins.c).
//
// Stack is released too often to drop tags with it. A tag there has the *mark* of the frame that it
// was stored in, and counts only while the address still lies in that frame (origins_frames.c).
//
// General registers only.
#ifndef QUERN_MEMCHECK_ORIGINS_H
#define QUERN_MEMCHECK_ORIGINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Of an undefined byte, as findings.h has it; 0: not known.
uint32_t shadow_origin(uint64_t address);
void shadow_set_origin(uint64_t address, size_t size, uint32_t origin);
// From now on; once.
void origins_start(void);
void origins_thread_ended(void);

// ---- origins_frames.c ----

struct origin_frame {
    uint32_t mark;   // tells the frame from others that lie there before and after it; 0: not known
    uint32_t origin; // of what it has merely allocated
};
// The frame of the calling thread that an address lies in. False: it is not on its stack.
bool origin_frame_at(uint64_t address, struct origin_frame *);

#endif
