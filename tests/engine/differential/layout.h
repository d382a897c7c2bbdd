// Where the differential test keeps what its instructions may touch.
//
// Every address a form can read, write, push or store as data is fixed, so that a native and a
// translated run can be compared bit by bit. There are two areas of the same inner layout: the low
// one is reachable with 32-bit addressing, the high one lies where a translator keeps heap and
// just-in-time compiled code. Their lower 32 bits are equal, so that an eip-relative operand in the
// high area still lands in the low area's data.
//
// The generator uses only offsets inside an area (and absolute addresses in the low one); which
// area holds the code is decided by the program at run time. Also included by assembly code.
#ifndef DIFFERENTIAL_LAYOUT_H
#define DIFFERENTIAL_LAYOUT_H

#define AREA_LOW  0x60000000
#define AREA_HIGH 0x280060000000

// Data: unmapped page, DATA_SIZE bytes read-write, one page read-only, unmapped page.
#define AREA_DATA 0x100000
#define DATA_SIZE 0x4000
// Stack: unmapped page, STACK_SIZE bytes read-write, unmapped page.
#define AREA_STACK 0x200000
#define STACK_SIZE 0x2000
#define AREA_CODE  0x1000000

// Operands whose address is part of the instruction (rip-relative, absolute) lie at one of these
// offsets in the data: aligned to 64, unaligned, reaching into the read-only and the unmapped page.
#define DATA_ALIGNED   0x1340
#define DATA_UNALIGNED 0x1e2d
#define DATA_READONLY  (DATA_SIZE - 3)
#define DATA_UNMAPPED  (DATA_SIZE + 0x1000 - 3)
#define DATA_MIDDLE    0x1800

// Landing pads at the start of the code: jumps to EXIT 1, 2 and 3.
#define PAD_SIZE   16
#define PAD_COUNT  3
#define EXIT_COUNT 4

// The context page of the low area: how C and assembly talk (see enter.S).
#define CONTEXT            AREA_LOW
#define CONTEXT_ENTRY      (CONTEXT + 0x00)
#define CONTEXT_EXITS      (CONTEXT + 0x08)
#define CONTEXT_SAVED_RSP  (CONTEXT + 0x40)
#define CONTEXT_XSAVE_MASK (CONTEXT + 0x48)
#define CONTEXT_MARK       (CONTEXT + 0x50)
#define CONTEXT_IN         (CONTEXT + 0x1000)
#define CONTEXT_OUT        (CONTEXT + 0x2000)
#define CONTEXT_SIZE       0x4000

// Offsets inside struct cpu_state.
#define STATE_GPR   0
#define STATE_FLAGS 128
#define STATE_XSAVE 256

#endif
