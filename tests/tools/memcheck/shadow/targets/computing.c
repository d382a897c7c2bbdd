// Computes with values whose bits are partly undefined, in registers. Prints the undefined bits of
// each result: they must be the same however the instruction is followed. Arguments: rounds;
// `sums`: additions as well, of which Valgrind knows less.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <valgrind/memcheck.h>

// The registers a and b get the operands, and all is undefined that they are not. What the flags
// were is lost behind the code, so that nobody wants them.
#define FORM(name, a, b, code)                                                                     \
    static void name(uint64_t *to, const uint64_t *from) {                                         \
        __asm__ volatile("mov (%%rsi), %%" a "; mov 8(%%rsi), %%" b "; " code "; mov %%" a         \
                         ", (%%rdi); mov %%" b ", 8(%%rdi); xor %%eax, %%eax"                      \
                         :                                                                         \
                         : "S"(from), "D"(to)                                                      \
                         : "rax", "rbx", "rcx", "rdx", "r8", "r13", "memory", "cc");               \
    }
FORM(and_constant, "rbx", "rcx", "and $0x70f0f, %%ebx; and $-16, %%rcx")
FORM(or_constant, "rcx", "rdx", "or $0x70f0f, %%rcx; or $-16, %%edx")
FORM(xor_constant, "r13", "rdx", "xor $0x70f0f, %%r13; xor $-16, %%edx")
FORM(and_both, "rbx", "rcx", "and %%ecx, %%ebx")
FORM(and_both_wide, "rcx", "rdx", "and %%rdx, %%rcx")
FORM(or_both, "rdx", "rcx", "or %%ecx, %%edx")
FORM(or_both_wide, "r8", "r13", "or %%r13, %%r8")
FORM(xor_both, "rcx", "rbx", "xor %%ebx, %%ecx")
FORM(xor_both_wide, "rdx", "r8", "xor %%r8, %%rdx")
FORM(and_same, "rcx", "rdx", "and %%rcx, %%rcx; or %%edx, %%edx")
FORM(xor_same, "rcx", "rdx", "xor %%ecx, %%ecx; sub %%rdx, %%rdx")
FORM(and_defined, "rbx", "rcx",
     "mov $0x12345678, %%edx; and %%rdx, %%rbx; and %%ecx, %%edx; mov %%rdx, %%rcx")
FORM(or_defined, "rcx", "r8",
     "mov $0x12345678, %%edx; or %%rdx, %%rcx; or %%r8d, %%edx; mov %%rdx, %%r8")
FORM(xor_defined, "rdx", "r8",
     "mov $0x12345678, %%ecx; xor %%ecx, %%edx; xor %%r8, %%rcx; mov %%rcx, %%r8")
FORM(shifts, "rcx", "rdx", "shl $5, %%ecx; shl $41, %%rdx")
FORM(shifts_down, "rbx", "rcx", "shr $7, %%ebx; shr $1, %%rcx")
FORM(shifts_signed, "rcx", "r8", "sar $9, %%ecx; sar $63, %%r8")
FORM(shifts_by_nothing, "rcx", "r8", "shl $32, %%ecx; sar $64, %%r8")
FORM(zeros, "rcx", "rdx", "movzbl %%cl, %%ecx; movzwq %%dx, %%rdx")
FORM(signs, "rbx", "rcx", "movsbl %%bl, %%ebx; movswq %%cx, %%rcx")
FORM(signs_wide, "r8", "rcx", "movslq %%r8d, %%rcx; movsbq %%r8b, %%r8")
FORM(high_bytes, "rcx", "rdx", "movzbl %%ch, %%ecx; movsbl %%dh, %%edx")
FORM(widened, "rbx", "rcx",
     "mov %%rbx, %%rax; cltq; mov %%rax, %%rbx; mov %%rcx, %%rax; cwtl; mov %%rax, %%rcx")
FORM(halves, "rcx", "rdx", "mov %%ecx, %%ebx; mov %%edx, %%edx; mov %%rbx, %%rcx")
FORM(parts, "rcx", "rdx", "and $15, %%cl; or %%dl, %%cl; xor %%cx, %%dx")
FORM(flags_wanted, "rcx", "rdx", "and %%edx, %%ecx; lahf; movzbl %%ah, %%edx; and $0, %%edx")
FORM(add_constant, "rcx", "rdx", "add $0x7fff, %%ecx; add $-3, %%rdx")
FORM(subtract_constant, "rbx", "rcx", "sub $0x7fff, %%rbx; sub $-3, %%ecx")
FORM(steps, "rcx", "r8", "inc %%ecx; dec %%r8")
FORM(add_defined, "rbx", "rcx",
     "mov $0x12345678, %%edx; add %%rdx, %%rbx; add %%ecx, %%edx; mov %%rdx, %%rcx")
FORM(subtract_defined, "rcx", "r8", "mov $0x12345678, %%edx; sub %%rdx, %%rcx; sub %%edx, %%r8d")
FORM(subtract_from, "rcx", "r8", "mov $0x12345678, %%edx; sub %%rcx, %%rdx; mov %%rdx, %%rcx")
FORM(add_both, "rcx", "rdx", "add %%edx, %%ecx; add %%rdx, %%rdx")
FORM(add_both_wide, "rbx", "rcx", "add %%rcx, %%rbx; sub %%rbx, %%rcx")

#define NAMED(name)                                                                                \
    { #name, name }
static const struct {
    const char *name;
    void (*compute)(uint64_t *, const uint64_t *);
} forms[] = {NAMED(and_constant),
             NAMED(or_constant),
             NAMED(xor_constant),
             NAMED(and_both),
             NAMED(and_both_wide),
             NAMED(or_both),
             NAMED(or_both_wide),
             NAMED(xor_both),
             NAMED(xor_both_wide),
             NAMED(and_same),
             NAMED(xor_same),
             NAMED(and_defined),
             NAMED(or_defined),
             NAMED(xor_defined),
             NAMED(shifts),
             NAMED(shifts_down),
             NAMED(shifts_signed),
             NAMED(shifts_by_nothing),
             NAMED(zeros),
             NAMED(signs),
             NAMED(signs_wide),
             NAMED(high_bytes),
             NAMED(widened),
             NAMED(halves),
             NAMED(parts),
             NAMED(flags_wanted),
             NAMED(add_constant),
             NAMED(subtract_constant),
             NAMED(steps),
             NAMED(add_defined),
             NAMED(subtract_defined),
             NAMED(subtract_from),
             NAMED(add_both),
             NAMED(add_both_wide)};
enum { FORMS = sizeof forms / sizeof forms[0], SUMS = 26 };

static uint64_t draw(void) {
    static uint64_t state = 88172645463325252;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

// All, none, a few, many, or some bytes.
static uint64_t draw_bits(void) {
    switch (draw() % 6) {
    case 0:
        return 0;
    case 1:
        return ~0ul;
    case 2:
        return draw() & draw() & draw();
    case 3:
        return draw() | draw();
    case 4:
        return 0xffff00ffull << draw() % 33;
    default:
        return 1ull << draw() % 64;
    }
}

int main(int argc, char **argv) {
    unsigned count = argc > 2 && !strcmp(argv[2], "sums") ? FORMS : SUMS;
    for (long round = atol(argv[1]); round > 0; round--)
        for (unsigned i = 0; i < count; i++) {
            uint64_t from[2] = {draw(), draw()}, bits[2] = {draw_bits(), draw_bits()}, to[2],
                     got[2];
            VALGRIND_SET_VBITS(from, bits, sizeof from);
            forms[i].compute(to, from);
            VALGRIND_GET_VBITS(to, got, sizeof to);
            VALGRIND_MAKE_MEM_DEFINED(to, sizeof to);
            printf("%s %lx %lx: %lx %lx = %lx %lx\n", forms[i].name, bits[0], bits[1], to[0], to[1],
                   got[0], got[1]);
        }
    return 0;
}
