// Facts of the processor and of its calling convention that several parts need.
#ifndef QUERN_BASE_X86_H
#define QUERN_BASE_X86_H

// General registers, numbered as instructions encode them.
enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15, GPR_COUNT };

// Bits of the flags register.
enum {
    FLAG_TRAP = 0x100,
    FLAG_DIRECTION = 0x400,
    FLAG_RESUME = 0x10000,
};

// Bytes below the stack pointer that belong to the running function.
enum { RED_ZONE = 128 };

// Bits 47 to 63 alike: any other address cannot exist.
static inline _Bool is_canonical(unsigned long address) {
    return (long)(address << 16) >> 16 == (long)address;
}

#endif
