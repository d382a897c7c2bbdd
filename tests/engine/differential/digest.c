#include "digest.h"

#include "memory.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define OUT ((struct cpu_state *)(uintptr_t)CONTEXT_OUT)

static void mix(uint64_t *hash, uint64_t value) {
    *hash = (*hash ^ value) * 0x9e3779b97f4a7c15ul;
    *hash ^= *hash >> 29;
}

static void number(struct digest *d, const char *name, uint64_t value) {
    mix(&d->hash, value);
    if (d->print)
        printf("%s %#lx\n", name, value);
}

static void bytes(struct digest *d, const char *name, int index, const uint8_t *at, unsigned size) {
    uint64_t word;
    for (unsigned i = 0; i < size; i += 8) {
        memcpy(&word, at + i, 8);
        mix(&d->hash, word);
    }
    if (!d->print)
        return;
    printf("%s%d ", name, index);
    for (unsigned i = size; i-- > 0;)
        printf("%02x", at[i]);
    putchar('\n');
}

static void pointers(struct digest *d, const uint8_t *image) {
    uint64_t fip, fdp;
    uint16_t fop;
    memcpy(&fip, image + XSAVE_FIP, 8);
    memcpy(&fdp, image + XSAVE_FDP, 8);
    memcpy(&fop, image + XSAVE_FOP, 2);
    mix(&d->pointer_hash, fip);
    mix(&d->pointer_hash, fdp);
    mix(&d->pointer_hash, fop);
    if (d->print)
        printf("x87-instruction %#lx\nx87-operand %#lx\nx87-opcode %#x\n", fip, fdp, fop);
}

// Parts that xsave left out because they are in their initial state.
static void complete_image(uint8_t *image) {
    const struct xsave_layout *l = &state_xsave_layout;
    uint64_t present;
    memcpy(&present, image + XSAVE_HEADER, 8);
    for (int part = PART_SSE; part < PARTS; part++)
        if (!(present >> part & 1) && l->size[part])
            memset(image + l->offset[part], 0, l->size[part]);
    if (!(present & 1)) {
        memset(image, 0, XSAVE_MXCSR);
        memset(image + XSAVE_ST, 0, XSAVE_XMM - XSAVE_ST);
        memcpy(image + XSAVE_FCW, &(uint16_t){0x37f}, 2);
    }
}

static void vectors(struct digest *d) {
    const struct xsave_layout *l = &state_xsave_layout;
    uint8_t *image = OUT->xsave;
    uint16_t word;
    uint32_t mxcsr;
    complete_image(image);
    memcpy(&word, image + XSAVE_FCW, 2);
    number(d, "fcw", word);
    memcpy(&word, image + XSAVE_FSW, 2);
    number(d, "fsw", word);
    number(d, "ftw", image[XSAVE_FTW]);
    memcpy(&mxcsr, image + XSAVE_MXCSR, 4);
    number(d, "mxcsr", mxcsr);
    for (int i = 0; i < 8; i++)
        bytes(d, "st", i, image + XSAVE_ST + 16 * i, 16);
    for (int i = 0; i < 16; i++)
        bytes(d, "xmm", i, image + XSAVE_XMM + 16 * i, 16);
    for (int i = 0; l->size[PART_AVX] && i < 16; i++)
        bytes(d, "ymm-upper", i, image + l->offset[PART_AVX] + 16 * i, 16);
    for (int i = 0; l->size[PART_ZMM_HIGH] && i < 16; i++)
        bytes(d, "zmm-upper", i, image + l->offset[PART_ZMM_HIGH] + 32 * i, 32);
    for (int i = 0; l->size[PART_ZMM16] && i < 16; i++)
        bytes(d, "zmm", 16 + i, image + l->offset[PART_ZMM16] + 64 * i, 64);
    for (int i = 0; l->size[PART_MASK] && i < 8; i++)
        bytes(d, "k", i, image + l->offset[PART_MASK] + 8 * i, 8);
    pointers(d, image);
}

static void changed_word(uint64_t address, uint64_t value, void *argument) {
    struct digest *d = argument;
    mix(&d->hash, address);
    mix(&d->hash, value);
    if (d->print)
        printf("memory-%#lx %#018lx\n", address, value);
}

static void signal_outcome(struct digest *d) {
    const struct cpu_state *out = OUT;
    number(d, "signal", out->signal);
    if (!out->signal)
        return;
    number(d, "rip", out->rip);
    number(d, "si_code", out->signal_code);
    number(d, "si_addr", out->signal_address);
    number(d, "trapno", out->trap_number);
    number(d, "err", out->trap_error);
    number(d, "cr2", out->trap_address);
}

void digest_add(struct digest *d, const struct form *form, unsigned state) {
    static const char *const names[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                        "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
    static const char *const selectors[] = {"ds", "es", "fs", "gs"};
    const struct cpu_state *out = OUT;
    if (d->print)
        printf("state %u\n", state);
    number(d, "exit", out->mark);
    signal_outcome(d);
    for (int i = 0; i < 16; i++)
        if (!(form->ignored_gprs >> i & 1) || out->signal)
            number(d, names[i], out->gpr[i]);
    number(d, "flags", out->flags & ~(uint64_t)(out->signal ? 0 : form->ignored_flags));
    number(d, "fs_base", out->fs_base);
    number(d, "gs_base", out->gs_base);
    for (int i = 0; i < 4; i++)
        number(d, selectors[i], out->selector[i]);
    vectors(d);
    memory_restore(changed_word, d);
}

char digest_outcome(void) {
    switch (OUT->signal) {
    case 0:
        return '.';
    case SIGSEGV:
        return 'S';
    case SIGBUS:
        return 'B';
    case SIGILL:
        return 'I';
    case SIGFPE:
        return 'F';
    case SIGTRAP:
        return 'T';
    default:
        return '?';
    }
}
