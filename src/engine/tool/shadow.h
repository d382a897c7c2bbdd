// Shadow memory: a byte of the tool's for each byte of target memory.
//
// A tool with a shadow_distance has one at address + shadow_distance, mapped and unmapped with the
// target's memory, zero at first. What the byte means is the tool's. GS holds the distance, so that
// inserted code reaches the shadow of an operand with a gs: prefix (and tool_set_counters must not
// be called).
//
// layout.h keeps an area free for it, from 0x2a00'0000'0000 to 0x5500'0000'0000, and everything
// below has a shadow there. The distance is the beginning of it and little more.
#ifndef QUERN_ENGINE_TOOL_SHADOW_H
#define QUERN_ENGINE_TOOL_SHADOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHADOW_SMALL = 256 * 1024 }; // less is written rather than mapped

// Whether all of a range lies where target memory has a shadow. A few mappings that the kernel
// places by itself have none. General registers only.
bool tool_has_shadow(uint64_t start, size_t size);
// Sets the shadow of a range to a value. From SHADOW_SMALL bytes on, it costs no memory until it is
// written. A tool should use few values.
void tool_shadow_fill(uint64_t start, uint64_t end, uint8_t value);
// Sets it to 0; gives memory back where the range is large.
void tool_shadow_clear(uint64_t start, uint64_t end);

#endif
