// Diverts functions: their first instructions become a jump to a hook, and a copy of these
// instructions elsewhere, followed by a jump behind them, stands for the function itself.
//
// The code is decoded as far as compilers begin functions with it. A function that begins with
// anything else, or whose code jumps back among its first instructions, is refused.
//
// Only while no other thread runs in the functions.
#ifndef QUERN_RECORDER_CODE_H
#define QUERN_RECORDER_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CODE_ROOM = 128 }; // bytes for each function

struct code_divert {
    uint8_t *function;
    size_t size;     // of the function; 0: not known
    uint8_t *at;     // of the jump: the function, or behind its first endbr64
    uint8_t jump[5]; // to be written there
    uint8_t replaced; // bytes of whole instructions that the jump replaces
    void *original;  // the copy
};

// Memory for code that relative jumps reach from [start, end); NULL: none.
uint8_t *code_map_near(uint64_t start, uint64_t end, size_t size);
// Prepares the diversion of divert->function. The hook gets `context` as its sixth argument. Writes
// to `room`, CODE_ROOM bytes from code_map_near, only. False: refused.
bool code_prepare(struct code_divert *divert, uint8_t *room, void *hook, const void *context);
// Makes the room executable. False: the system does not permit it.
bool code_seal(uint8_t *room, size_t size);
// Writes the jump.
bool code_divert(const struct code_divert *divert);

#endif
