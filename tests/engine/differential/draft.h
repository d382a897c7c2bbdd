// Collects forms while they are generated and, at the end, places their code and writes the table.
//
// A draft is a form whose code has no address yet. References from code to a place in the area
// (rip-relative operands, far branches) are patched when the code is placed. Besides the table, a
// text file is written with one line for each form, `ID GROUP BYTES DISASSEMBLY`, and one for each
// omission, `skip COUNT REASON` and `ignore COUNT REASON`; the comparer shows these.
#ifndef DIFFERENTIAL_DRAFT_H
#define DIFFERENTIAL_DRAFT_H

#include "describe.h"

#include <stddef.h>

#define DRAFT_CODE_MAX  240
#define DRAFT_PATCH_MAX 16
#define DRAFT_CODE_END  6 // bytes of instructions at the very end of the code

struct draft_patch {
    uint16_t at;     // where the rel32 stands in the code
    uint16_t end;    // the end of the instruction it belongs to
    uint32_t target; // offset in the area
};

struct draft {
    struct form form;
    enum group group;
    uint16_t entry;     // offset of the first instruction to run
    uint8_t before_end; // not 0: no code of its own, it starts so far before the end of all code
    uint16_t code_length;
    uint16_t patch_count;
    uint8_t code[DRAFT_CODE_MAX];
    struct draft_patch patches[DRAFT_PATCH_MAX];
};

void draft_bytes(struct draft *d, const void *bytes, size_t count);

// Appends the jump that ends a form through one of the exits.
void draft_exit(struct draft *d, unsigned exit);

void draft_patch(struct draft *d, unsigned at, unsigned end, uint32_t target);

// Takes a copy of the draft. Drafts with the same code, group and limits are kept once.
void draft_add(const struct draft *d);

void draft_skip(const char *reason);
void draft_ignore(const char *reason);

// Writes PATH.bin and PATH.txt; exits with a message on failure.
void draft_write(const char *path);

#endif
