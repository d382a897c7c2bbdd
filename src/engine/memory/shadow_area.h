// The engine's side of shadow memory (tool/shadow.h), for tools that have a shadow_distance; for
// others nothing happens.
//
// The whole of it is mapped once, without being reserved: what the target does not use costs
// nothing. Large ranges get one value by being mapped, not written, so that only pages which are
// written later cost memory. Other threads may use the shadow of the range at the same time.
// The engine's own memory has none, or nonsense where a page is shared: a check of an address
// there fails. Where target memory comes or goes, the shadow starts over with zeros.
#ifndef QUERN_ENGINE_MEMORY_SHADOW_AREA_H
#define QUERN_ENGINE_MEMORY_SHADOW_AREA_H

#include <stdint.h>

void shadow_area_init(uint64_t distance); // 0: no shadow
// On each thread: generated code reaches the shadow through GS.
void shadow_area_thread(void);
// Zeros for the shadow of [start, end); gives its memory back.
void shadow_area_clear(uint64_t start, uint64_t end);
// The engine takes [start, end), at least two pages, or gives it back.
void shadow_area_forbid(uint64_t start, uint64_t end);
void shadow_area_permit(uint64_t start, uint64_t end);
// Another value instead of zeros; from SHADOW_SMALL bytes on, no memory is used until it is
// written.
void shadow_area_fill(uint64_t start, uint64_t end, uint8_t value);
// The shadow of memory that has been moved. The old place has zeros if it was large.
void shadow_area_move(uint64_t to, uint64_t from, uint64_t size);

#endif
