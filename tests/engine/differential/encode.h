// Assembles one instruction from its fields. Used by the generator to walk the opcode maps and to
// give one instruction many operand shapes; nothing is checked here, the decoder judges the result.
#ifndef DIFFERENTIAL_ENCODE_H
#define DIFFERENTIAL_ENCODE_H

#include <stdbool.h>
#include <stdint.h>

enum encoding_kind { ENC_LEGACY, ENC_3DNOW, ENC_VEX2, ENC_VEX3, ENC_XOP, ENC_EVEX };

struct encoding {
    uint8_t kind;
    uint8_t prefixes[6]; // legacy prefixes in order
    uint8_t prefix_count;
    bool rex;                   // a REX byte even if none of its bits is needed
    uint8_t w, pp, map, length; // length: VEX.L or EVEX.L'L
    uint8_t zeroing, mask, broadcast;
    uint8_t opcode;
    bool no_modrm; // then mod is 3 and rm's bit 3 is REX.B of a register in the opcode
    uint8_t mod;
    uint8_t reg;   // 0-31: R and R' included
    uint8_t rm;    // 0-31: for mod 3
    uint8_t vvvv;  // 0-31: V' included
    uint8_t base;  // 0-15, for mod < 3
    uint8_t index; // 0-15 (0-31 for VSIB), 4 = none
    uint8_t scale; // 0-3
    bool sib;
    bool no_base;     // SIB without base (mod 0): disp32 follows
    bool rip;         // mod 0, rm 5
    int32_t disp;     // emitted as disp8 for mod 1, as disp32 for mod 2, no_base and rip
    uint8_t tail[16]; // immediate bytes; the decoder says how many are used
};

#define ENCODE_BUFFER 48

// Writes the instruction followed by all 16 tail bytes; `disp_at` (may be null) is set to the
// offset of a disp32, or -1.
void encode(const struct encoding *e, uint8_t buffer[ENCODE_BUFFER], int *disp_at);

void encode_add_prefix(struct encoding *e, uint8_t prefix);

#endif
