// Where everything lies in the process that runs a target.
//
// The engine is an ordinary position-independent executable: the kernel puts it, its libraries and
// its stack near the top of the address space. Everything below is the target's, except for the
// regions named here.
//
//   0x0000'0001'0000  low area      target modules (executable, loader, libraries)
//   0x0000'7000'0000  code cache    translated code; reaches the low area with a rel32. Its usual
//                                   place: it moves, within the first 2 GiB, when the target wants
//                                   memory there
//   0x0000'7fff'0000  jump table    4 bytes for each byte of code below 4 GiB. Only the pieces for
//                                   code that has run are mapped. It is given up when the target
//                                   wants memory where a piece is or would be
//   0x2010'0000'0000  high area     target heap, mappings, stacks, brk; up to HIGH_END, less if the
//                                   tool has memory of its own (shadow memory: HIGH_SHADOWED_END)
//   0x2a00'0000'0000  shadow        only for tools that have one: of everything below
//   0x5555'5555'4000  the engine    its executable, heap, libraries, stacks (the kernel's choice)
//
// What goes where in the two areas is told by space/place.h. Elsewhere the target has memory where
// it asks for it (sys/memory.c).
//
// The high area starts above 2^45 for a reason: an indirect jump looks its destination up at
// JUMP_TABLE + 4 * destination without a range check, and four times an address of the high area is
// not canonical, so a jump there faults instead of reading something else (run/dispatch). It ends
// just below the engine: ThreadSanitizer and MemorySanitizer accept memory of the program there.
#ifndef QUERN_ENGINE_LAYOUT_H
#define QUERN_ENGINE_LAYOUT_H

#define LOW_START 0x10000ul
#define LOW_END   0x6fff0000ul // a target that runs past its memory must not hit the cache
// Generated code has the addresses of cache and jump table in 31 bits.
#define CACHE_START       0x70000000ul
#define CACHE_END         0x7fff0000ul
#define CACHE_LIMIT       0x80000000ul
#define JUMP_TABLE        0x7fff0000ul
#define TABLE_CODE_END    (1ul << 32)
#define JUMP_TABLE_END    (JUMP_TABLE + 4 * TABLE_CODE_END)
#define HIGH_START        0x201000000000ul
#define HIGH_SHADOWED_END 0x29f000000000ul
#define SHADOWED_END      0x2a0000000000ul // what lies below has a shadow, if anything has
#define HIGH_END          0x555400000000ul
#define ADDRESS_END       0x7ffffffff000ul

// Where four times an address is canonical, but the table does not reach.
#define NON_TABLE_END (1ul << 45)

#endif
