#include "encode.h"

#include <string.h>

void encode_add_prefix(struct encoding *e, uint8_t prefix) {
    e->prefixes[e->prefix_count++] = prefix;
}

static uint8_t bit(unsigned value, unsigned position) {
    return (value >> position) & 1;
}

// The extension bits of whatever stands in rm and SIB.
static void extensions(const struct encoding *e, uint8_t *x, uint8_t *b) {
    if (e->mod == 3) {
        *b = bit(e->rm, 3);
        *x = e->kind == ENC_EVEX ? bit(e->rm, 4) : 0;
    } else {
        *b = e->rip || e->no_base ? 0 : bit(e->base, 3);
        *x = e->sib ? bit(e->index, 3) : 0;
    }
}

static uint8_t *emit_legacy(const struct encoding *e, uint8_t *p, uint8_t x, uint8_t b) {
    uint8_t rex = e->w << 3 | bit(e->reg, 3) << 2 | x << 1 | b;
    if (rex || e->rex)
        *p++ = 0x40 | rex;
    if (e->map > 0 || e->kind == ENC_3DNOW)
        *p++ = 0x0f;
    if (e->kind == ENC_3DNOW)
        *p++ = 0x0f;
    if (e->map == 2)
        *p++ = 0x38;
    if (e->map == 3)
        *p++ = 0x3a;
    return p;
}

static uint8_t *emit_vex(const struct encoding *e, uint8_t *p, uint8_t x, uint8_t b) {
    uint8_t low = (~e->vvvv & 15) << 3 | (e->length & 1) << 2 | e->pp;
    if (e->kind == ENC_VEX2) {
        *p++ = 0xc5;
        *p++ = !bit(e->reg, 3) << 7 | low;
        return p;
    }
    *p++ = e->kind == ENC_XOP ? 0x8f : 0xc4;
    *p++ = !bit(e->reg, 3) << 7 | !x << 6 | !b << 5 | e->map;
    *p++ = e->w << 7 | low;
    return p;
}

static uint8_t *emit_evex(const struct encoding *e, uint8_t *p, uint8_t x, uint8_t b) {
    uint8_t v2 = bit(e->vvvv, 4);
    if (e->mod != 3 && e->sib)
        v2 |= bit(e->index, 4);
    *p++ = 0x62;
    *p++ = !bit(e->reg, 3) << 7 | !x << 6 | !b << 5 | !bit(e->reg, 4) << 4 | e->map;
    *p++ = e->w << 7 | (~e->vvvv & 15) << 3 | 4 | e->pp;
    *p++ = e->zeroing << 7 | e->length << 5 | e->broadcast << 4 | !v2 << 3 | e->mask;
    return p;
}

static uint8_t *emit_modrm(const struct encoding *e, uint8_t *p) {
    uint8_t rm = e->mod == 3 ? e->rm : e->rip ? 5 : e->sib ? 4 : e->base;
    *p++ = e->mod << 6 | (e->reg & 7) << 3 | (rm & 7);
    if (e->mod != 3 && e->sib)
        *p++ = e->scale << 6 | (e->index & 7) << 3 | (e->no_base ? 5 : e->base & 7);
    return p;
}

void encode(const struct encoding *e, uint8_t buffer[ENCODE_BUFFER], int *disp_at) {
    uint8_t *p = buffer, x, b;
    extensions(e, &x, &b);
    memcpy(p, e->prefixes, e->prefix_count);
    p += e->prefix_count;
    if (e->kind == ENC_EVEX)
        p = emit_evex(e, p, x, b);
    else if (e->kind >= ENC_VEX2)
        p = emit_vex(e, p, x, b);
    else
        p = emit_legacy(e, p, x, b);
    if (e->kind != ENC_3DNOW)
        *p++ = e->opcode;
    if (!e->no_modrm)
        p = emit_modrm(e, p);
    if (disp_at)
        *disp_at = -1;
    if (e->mod == 2 || (e->mod == 0 && (e->rip || e->no_base))) {
        if (disp_at)
            *disp_at = p - buffer;
        memcpy(p, &e->disp, 4);
        p += 4;
    } else if (e->mod == 1) {
        *p++ = e->disp;
    }
    if (e->kind == ENC_3DNOW)
        *p++ = e->opcode;
    memcpy(p, e->tail, sizeof e->tail);
}
