// Shadow memory: what memcheck knows about each byte of target memory.
//
// One shadow byte for each target byte, at a constant distance. Its value:
//   0                addressable and defined
//   SHADOW_NOACCESS  not addressable. The same value may be a pattern of undefined bits; chunks.h
//                    tells the two apart
//   anything else    addressable; bits that are set are undefined
// Exception: on stacks. Everything below a thread's stack pointer reads 0xff, and 0xff becomes a
// frame's undefined memory without being written when the stack pointer moves down. So 0xff inside
// a stack means undefined from the stack pointer (less 128 bytes) upwards, and not addressable
// below. shadow_state tells them apart.
//
// Memory that was never mapped has no shadow: reading it faults. Everything here may be called on
// any thread, without locks; two threads that change the same bytes at once race as the target
// does. This file and everything it calls use general registers only (see meson.build), so that
// generated code can call them without saving vector registers.
#ifndef QUERN_MEMCHECK_SHADOW_H
#define QUERN_MEMCHECK_SHADOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "engine/tool.h"

// From memory to its shadow (engine/tool/shadow.h). It is no multiple of a page: a byte and its
// shadow would share the low bits of their addresses and stand in each other's way in the
// processor. Its higher bits matter as well. Some processors find the way of a cache line by a few
// sums of address bits (12 and 27, 13 and 26, 14 and 25, 15 and 20 … 19 and 24 on Zen). If two
// lines have the same sums, each access to one makes the next access to the other slow. With this
// distance, memory and the shadow of what lies nearby differ in these sums wherever they are.
#define SHADOW_DISTANCE 0x2a0000155840ul

enum shadow_byte { SHADOW_DEFINED = 0, SHADOW_NOACCESS = 0xa5, SHADOW_UNDEFINED = 0xff };

static inline uint8_t *shadow_of(uint64_t address) {
    return (uint8_t *)(address + SHADOW_DISTANCE);
}

// --undef-value-errors=no: nothing is ever called undefined.
extern bool shadow_undefined_values;

// The target has made requests that concern memory: parts of a live block may not be addressable.
extern bool shadow_has_holes;

// Told of undefined memory that is made, copied or moved by whole pages, for who keeps origins;
// NULL: nobody does.
struct shadow_watch {
    void (*made_undefined)(uint64_t start, size_t size);
    void (*copied)(uint64_t to, uint64_t from, size_t size);
    void (*moved)(uint64_t to, uint64_t from, size_t size);
};
extern const struct shadow_watch *shadow_watch;

// While an access that has faulted is looked at: its page counts as not addressable. Where the
// processor gives no address, those count so that cannot exist: it also faults at instructions that
// are privileged and at operands that are not aligned. For the calling thread.
void shadow_assume_missing(uint64_t address, bool is_known);
void shadow_assume_nothing(void);
// An access there must not be made (tool_fault); once it is looked at as one that has faulted, it
// is reported.
bool shadow_is_forbidden(uint64_t address);

// The state of whole ranges. Parts that are not mapped are passed over.
void shadow_make_noaccess(uint64_t start, size_t size);
void shadow_make_undefined(uint64_t start, size_t size);
void shadow_make_defined(uint64_t start, size_t size);
void shadow_make_defined_if_addressable(uint64_t start, size_t size);
// As memmove moves the bytes. Bytes that are not addressable at the source become undefined at the
// destination; the destination is addressable afterwards.
void shadow_copy(uint64_t to, uint64_t from, size_t size);

// The target has moved whole pages, and the engine has moved their shadow.
void shadow_moved(uint64_t to, uint64_t from, size_t size);

enum shadow_verdict { SHADOW_FINE, SHADOW_BAD_ADDRESS, SHADOW_BAD_VALUE };
// Whether a range is addressable; whether it is addressable and defined. Otherwise *bad is the
// first byte that is not. Fast where all is well.
enum shadow_verdict shadow_check_addressable(uint64_t start, size_t size, uint64_t *bad);
enum shadow_verdict shadow_check_defined(uint64_t start, size_t size, uint64_t *bad);
// One byte: false if it is not addressable, else *bits are its undefined bits.
bool shadow_state(uint64_t address, uint8_t *bits);
// Sets the undefined bits of a byte that is addressable.
void shadow_set_bits(uint64_t address, uint8_t bits);
// The same for up to 64 bytes at once. False, and nothing is done, where some byte wants a closer
// look: it may be not addressable.
bool shadow_read_bits(uint64_t address, unsigned size, void *bits);
bool shadow_read_word(uint64_t address, unsigned size, uint64_t *bits); // 1, 2, 4 or 8 bytes
bool shadow_write_bits(uint64_t address, unsigned size, const void *bits);

#endif
