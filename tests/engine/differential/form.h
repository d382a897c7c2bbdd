// The table of instruction forms, as the generator writes it and the program maps it.
//
// A form is one instruction (or, in the group "sequences", several) with everything needed to run
// it: which registers form its addresses, what its memory must hold, what of its result cannot be
// compared. The file is: struct form_file, the forms, then the code image at a page boundary. Forms
// of one group are neighbours. The code is position independent; each form ends in a jump through
// CONTEXT_EXITS.
#ifndef DIFFERENTIAL_FORM_H
#define DIFFERENTIAL_FORM_H

#include <stdint.h>

#define FORM_MAGIC     0x31304d524f46ul
#define FORM_MEM_MAX   3
#define FORM_BYTES_MAX 15
#define GROUP_MAX      32
#define STATES_MAX     16

#define GPR_RAX   0
#define GPR_RCX   1
#define GPR_RDX   2
#define GPR_RSP   4
#define GPR_RBP   5
#define GPR_RDI   7
#define GPR_NONE  0xff
#define GPR_RIP   0xfe
#define GPR_INNER 0xfd // an index that is part of another register (xlat's al): left as it is

enum segment { SEGMENT_NONE, SEGMENT_FS, SEGMENT_GS };

// What the memory at an operand holds before the form runs.
enum fill {
    FILL_VALUE,     // numbers of the kinds that registers hold
    FILL_POINTER,   // the address of a landing pad
    FILL_FAR,       // the address of a landing pad and a selector, as a far jump reads them
    FILL_FRAME,     // what iretq pops
    FILL_SELECTOR,  // a selector at the operand
    FILL_FLAGS,     // a flags image without TF and AC
    FILL_TRAP,      // a flags image with TF
    FILL_ALIGNMENT, // a flags image with AC
    FILL_MXCSR,     // a valid mxcsr
    FILL_FXSAVE,    // a valid fxsave image
    FILL_XSAVE,     // a valid xsave image
};

struct form_mem {
    int64_t disp;
    uint16_t size; // bytes
    uint8_t base, index, scale;
    uint8_t segment;
    uint8_t fill;
    uint8_t address32 : 1;
    uint8_t implicit : 1;
    uint8_t vsib_bits; // width of the index elements, 0 if not VSIB
};

// How registers are restrained.
enum limit {
    LIMIT_COUNT = 1 << 0,         // rcx is a small count
    LIMIT_COUNT32 = 1 << 1,       // only ecx counts: the upper half is random
    LIMIT_SYSCALL = 1 << 2,       // rax is the number of a harmless system call
    LIMIT_SYSCALL32 = 1 << 3,     // the same for int 0x80
    LIMIT_CPUID = 1 << 4,         // eax, ecx are a leaf that tells the same at any time
    LIMIT_XCR = 1 << 5,           // ecx is 0, 1 or 2
    LIMIT_DIVIDE = 1 << 6,        // the dividend's upper half is mostly small
    LIMIT_FRAME = 1 << 7,         // rbp points into the stack
    LIMIT_FS_BASE = 1 << 8,       // the form reads or writes the fs base
    LIMIT_GS_BASE = 1 << 9,       // the form reads or writes the gs base
    LIMIT_SEGMENT_LOAD = 1 << 10, // selectors change: restore them afterwards
    LIMIT_WILD = 1 << 11,         // the branch goes where no code is
    LIMIT_SELECTOR = 1 << 12,     // `special` holds a selector
    LIMIT_POINTER = 1 << 13,      // `special` holds the address of a landing pad
    LIMIT_BIT_OFFSET = 1 << 14,   // `special` is a bit offset into memory
    LIMIT_ADDRESS = 1 << 15,      // `special` holds an address for the fs or gs base
    LIMIT_STACK = 1 << 16,        // the form uses the stack
    LIMIT_MATCH = 1 << 17,        // now and then what is compared is equal
};

struct form {
    uint32_t code;   // offset of the first instruction in the code image
    uint32_t limits; // enum limit
    uint32_t ignored_flags;
    uint16_t ignored_gprs;
    uint8_t length;
    uint8_t states; // how many states it runs in
    uint8_t special;
    uint8_t special_bits; // width of a bit offset
    uint8_t mem_count;
    uint8_t x87; // instruction pointers of the x87 unit are an outcome of this form
    struct form_mem mem[FORM_MEM_MAX];
};

struct form_group {
    char name[24];
    uint32_t first, end;
};

struct form_file {
    uint64_t magic;
    uint32_t form_count, group_count;
    uint32_t code_offset, code_size;
    struct form_group groups[GROUP_MAX];
};

// One result for each form, in a file that the program fills while it runs: `current` says where it
// was if it dies.
struct form_result {
    char outcome[STATES_MAX]; // '.' ran, or a letter for the signal; 0 after the last state
    uint64_t hash;
    uint64_t pointer_hash;
};

struct form_results {
    uint64_t current;
    uint64_t done;
    struct form_result result[];
};

#endif
