// Where everything lies in the process that runs a target.
//
// The engine is an ordinary position-independent executable: the kernel puts it, its libraries and
// its stack near the top of the address space. Everything below is the target's, except for the
// regions named here.
//
//   0x0000'0001'0000  low area      target modules (executable, loader, libraries), 32-bit mappings;
//                                   under some tools everything but the stack
//   0x0000'7000'0000  code cache    translated code; reaches the low area with a rel32
//   0x0000'7fff'0000  jump table    4 bytes for each code byte of the low area, mapped on demand
//   0x2000'0000'0000  low shadow    kept free for the low area's shadow
//   0x2010'0000'0000  high area     target heap, mappings, stacks, brk
//   0x4010'0000'0000  high shadow   kept free for the high area's shadow
//   0x5500'0000'0000  the engine    its executable, heap, libraries, stacks (the kernel's choice)
//
// What goes where in the two areas is told by space/place.h.
//
// The high area starts above 2^45 for a reason: an indirect jump looks its destination up at
// JUMP_TABLE + 4 * destination without a range check, and four times an address of the high area is
// not canonical, so a jump there faults instead of reading something else (run/dispatch).
#ifndef QUERN_ENGINE_LAYOUT_H
#define QUERN_ENGINE_LAYOUT_H

#define LOW_START      0x10000ul
#define LOW_END        0x70000000ul
#define CACHE_START    0x70000000ul
#define CACHE_END      0x7fff0000ul
#define JUMP_TABLE     0x7fff0000ul
#define JUMP_TABLE_END (JUMP_TABLE + 4 * CACHE_START)
#define HIGH_START     0x201000000000ul
#define HIGH_END       0x340000000000ul

// Bits 47 to 63 alike: any other address cannot exist.
static inline _Bool is_canonical(unsigned long address) {
    return (long)(address << 16) >> 16 == (long)address;
}

#endif
