// Where undefined values come from (--track-origins=yes).
//
// Nothing is kept for memory that was merely allocated: a heap block knows who made it, and the frame
// that an address lies in is found on the stack. Only where undefined bits are stored is their origin
// kept, for each four bytes, in pages made on demand. Memory that is released and used again may
// still show what was stored there before: an origin is a hint.
//
// General registers only.
#ifndef QUERN_MEMCHECK_ORIGINS_H
#define QUERN_MEMCHECK_ORIGINS_H

#include <stddef.h>
#include <stdint.h>

// Of an undefined byte, as errors.h has it; 0: not known.
uint32_t shadow_origin(uint64_t address);
void shadow_set_origin(uint64_t address, size_t size, uint32_t origin);
// From now on; once.
void origins_start(void);

#endif
