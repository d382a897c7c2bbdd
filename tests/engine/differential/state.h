// What the CPU holds before and after a form runs, and how it is made up.
//
// Words: a state is one set of registers, flags, vectors and memory for a form; a form runs in
// several. In the states with number 0 and 2 (modulo 4) operands are aligned, in 1 they are not, in
// 3 they reach into read-only or unmapped memory and floating-point exceptions are unmasked.
// Invariant: state and memory depend only on form, form number and state number.
#ifndef DIFFERENTIAL_STATE_H
#define DIFFERENTIAL_STATE_H

#include "form.h"
#include "layout.h"

#include <stddef.h>
#include <stdint.h>

struct cpu_state {
    uint64_t gpr[16];
    uint64_t flags;
    uint64_t rip; // only after a signal
    uint64_t fs_base, gs_base;
    uint16_t selector[4]; // ds, es, fs, gs
    int32_t signal, signal_code;
    uint64_t signal_address, trap_number, trap_error, trap_address;
    uint64_t mark; // the exit taken
    uint64_t unused[4];
    uint8_t xsave[4096 - STATE_XSAVE] __attribute__((aligned(64)));
};
_Static_assert(offsetof(struct cpu_state, flags) == STATE_FLAGS, "enter.S relies on it");
_Static_assert(offsetof(struct cpu_state, xsave) == STATE_XSAVE, "enter.S relies on it");

// The standard xsave image: where the parts lie on this CPU (0: it has none).
enum xsave_part { PART_X87, PART_SSE, PART_AVX, PART_MASK = 5, PART_ZMM_HIGH, PART_ZMM16, PARTS };
struct xsave_layout {
    uint64_t mask;
    uint32_t offset[PARTS], size[PARTS];
};
extern struct xsave_layout state_xsave_layout;

#define XSAVE_FCW    0
#define XSAVE_FSW    2
#define XSAVE_FTW    4
#define XSAVE_FOP    6
#define XSAVE_FIP    8
#define XSAVE_FDP    16
#define XSAVE_MXCSR  24
#define XSAVE_ST     32
#define XSAVE_XMM    160
#define XSAVE_HEADER 512

void state_init(uint64_t high);

// Fills `in` and the memory operands for state `number` of form `id`. `area` is where its code is.
void state_make(const struct form *form, uint32_t id, unsigned number, uint64_t area,
                struct cpu_state *in);

#endif
