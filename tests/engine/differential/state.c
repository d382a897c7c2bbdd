#include "state.h"

#include "memory.h"
#include "random.h"

#include <cpuid.h>
#include <err.h>
#include <stdbool.h>
#include <string.h>

#define FLAG_TF     (1ul << 8)
#define FLAG_DF     (1ul << 10)
#define FLAG_AC     (1ul << 18)
#define FLAG_ID     (1ul << 21)
#define FLAGS_FIXED 0x202ul
#define FLAGS_FREE  0x8d5ul // CF PF AF ZF SF OF

struct xsave_layout state_xsave_layout;
static uint64_t area_high;

#define STOCK_SIZE 64
static uint8_t stock[4][STOCK_SIZE][sizeof((struct cpu_state *)0)->xsave];
static unsigned image_size;

// ---- Values -------------------------------------------------------------------------------------

static uint64_t edge_value(struct random *r) {
    static const uint64_t edges[] = {0,
                                     1,
                                     2,
                                     0x7f,
                                     0x80,
                                     0xff,
                                     0x7fff,
                                     0x8000,
                                     0xffff,
                                     0x7fffffff,
                                     0x80000000,
                                     0xffffffff,
                                     0x7ffffffffffffffful,
                                     0x8000000000000000ul,
                                     ~0ul,
                                     ~1ul};
    return edges[random_below(r, sizeof edges / sizeof *edges)];
}

static uint64_t gpr_value(struct random *r, unsigned kind) {
    switch (kind) {
    case 1:
        return random_below(r, 2) ? edge_value(r) : random_next(r);
    case 2:
        return random_below(r, 2) ? random_below(r, 256) : random_next(r);
    default:
        return random_next(r);
    }
}

// A number near 1, or now and then a zero, infinity, NaN or denormal, of the given widths.
static uint64_t float_bits(struct random *r, unsigned exponent_bits, unsigned mantissa_bits) {
    uint64_t bias = (1ul << (exponent_bits - 1)) - 1, exponent_max = 2 * bias + 1;
    uint64_t mantissa = random_next(r) & ((1ul << mantissa_bits) - 1);
    uint64_t sign = random_below(r, 2) << (exponent_bits + mantissa_bits);
    uint64_t exponent = bias + random_below(r, 24) - 8;
    switch (random_below(r, 16)) {
    case 0:
        return sign;
    case 1:
        return sign | mantissa;
    case 2:
        return sign | exponent_max << mantissa_bits;
    case 3:
        return sign | exponent_max << mantissa_bits | mantissa;
    case 4: // a small whole number
        return sign | exponent << mantissa_bits;
    default:
        return sign | exponent << mantissa_bits | mantissa;
    }
}

static void vector_value(struct random *r, uint8_t *at, unsigned bytes) {
    unsigned kind = random_below(r, 5);
    for (unsigned i = 0; i < bytes; i += 8) {
        uint64_t value = random_next(r);
        if (kind == 1)
            value = float_bits(r, 11, 52);
        else if (kind == 2)
            value = float_bits(r, 8, 23) | float_bits(r, 8, 23) << 32;
        else if (kind == 3)
            value &= 0x000000ff000000fful;
        else if (kind == 4)
            value = edge_value(r);
        memcpy(at + i, &value, 8);
    }
}

static void x87_value(struct random *r, uint8_t *at) {
    uint64_t mantissa = random_next(r) | 1ul << 63;
    uint16_t exponent = 16383 + random_below(r, 80) - 20;
    switch (random_below(r, 10)) {
    case 0:
        mantissa = exponent = 0;
        break;
    case 1:
        exponent = 0x7fff;
        break;
    case 2:
        exponent = 0x7fff;
        mantissa = 1ul << 63;
        break;
    case 3:
        exponent = 0;
        break;
    case 4: // not a valid encoding
        mantissa &= ~(1ul << 63);
        break;
    case 5:
        mantissa &= 0xfffful << 48;
        break;
    }
    exponent |= random_below(r, 2) << 15;
    memcpy(at, &mantissa, 8);
    memcpy(at + 8, &exponent, 2);
}

// An image that xrstor64 accepts. `kind` is the state number modulo 4.
static void make_image(struct random *r, unsigned kind, uint8_t *image) {
    const struct xsave_layout *l = &state_xsave_layout;
    uint16_t fcw = 0x37f, fsw = random_next(r) & 0x7f00, fop = random_next(r) & 0x7ff;
    uint32_t mxcsr = 0x1f80;
    uint64_t fip = random_next(r) & 0x7ffffffffffful, fdp = random_next(r) & 0x7ffffffffffful;
    memset(image, 0, XSAVE_HEADER + 64);
    if (kind)
        fcw = (fcw & 0x7f) | (random_next(r) & 0xf00);
    if (kind == 1)
        mxcsr |= random_next(r) & 0xe07f;
    if (kind == 3) {
        fcw = (fcw & ~0x3f) | (random_next(r) & 0x3f);
        fsw |= random_below(r, 2) ? random_next(r) & 0x3f : 0;
        mxcsr = random_next(r) & 0xffc0;
    }
    memcpy(image + XSAVE_FCW, &fcw, 2);
    memcpy(image + XSAVE_FSW, &fsw, 2);
    image[XSAVE_FTW] = kind == 0 ? 0xff : random_next(r);
    memcpy(image + XSAVE_FOP, &fop, 2);
    memcpy(image + XSAVE_FIP, &fip, 8);
    memcpy(image + XSAVE_FDP, &fdp, 8);
    memcpy(image + XSAVE_MXCSR, &mxcsr, 4);
    for (unsigned i = 0; i < 8; i++)
        x87_value(r, image + XSAVE_ST + 16 * i);
    memcpy(image + XSAVE_HEADER, &l->mask, 8);
    for (unsigned part = PART_SSE; part < PARTS; part++) {
        unsigned step = part == PART_ZMM16 ? 64 : part == PART_ZMM_HIGH ? 32 : 16;
        for (unsigned i = 0; i < l->size[part]; i += step)
            vector_value(r, image + l->offset[part] + i, step);
    }
}

// Making an image up takes longer than running a form: there is a stock of them.
static void make_stock(void) {
    struct random r = {STOCK_SIZE};
    for (unsigned kind = 0; kind < 4; kind++)
        for (unsigned i = 0; i < STOCK_SIZE; i++)
            make_image(&r, kind, stock[kind][i]);
}

static void xsave_image(struct random *r, unsigned kind, uint8_t *image) {
    memcpy(image, stock[kind][random_below(r, STOCK_SIZE)], image_size);
}

static uint64_t flags_value(struct random *r) {
    uint64_t flags = FLAGS_FIXED | (random_next(r) & FLAGS_FREE);
    if (random_below(r, 4) == 0)
        flags |= FLAG_DF;
    if (random_below(r, 8) == 0)
        flags |= FLAG_ID;
    return flags;
}

// Never one of 1 to 3: an interrupt turns these into 0 at any time.
static uint16_t selector_value(struct random *r, uint16_t valid) {
    static const uint16_t selectors[] = {0, 0x2b, 0x33};
    unsigned which = random_below(r, 8);
    return which < 3 ? valid : which < 6 ? selectors[which - 3] : random_next(r) | 0x100;
}

static uint64_t branch_target(const struct form *form, struct random *r, uint64_t area) {
    if (!(form->limits & LIMIT_WILD))
        return area + AREA_CODE + PAD_SIZE * random_below(r, PAD_COUNT);
    switch (random_below(r, 7)) {
    case 0:
        return 0;
    case 1:
        return 0x1000 + random_below(r, 16);
    case 2:
        return area + AREA_DATA + DATA_MIDDLE + random_below(r, 16);
    case 3:
        return area + AREA_DATA + DATA_SIZE + 0x1000 + random_below(r, 64);
    case 4:
        return random_next(r) | 1ul << 63;
    case 5:
        return (random_next(r) & 0x7ffffffffffffffful) | 1ul << 60;
    default:
        return area + AREA_DATA - 8;
    }
}

// ---- Restrained registers -----------------------------------------------------------------------

static void set_count(const struct form *form, struct random *r, struct cpu_state *in) {
    uint64_t count = random_below(r, 6);
    if (form->limits & LIMIT_COUNT32 || (!form->mem_count && random_below(r, 4) == 0))
        count |= random_next(r) << 32;
    in->gpr[GPR_RCX] = count;
}

static void set_cpuid(struct random *r, struct cpu_state *in) {
    static const uint32_t leaves[][2] = {
        {0, 0},          {1, 0},          {7, 0},          {7, 1},          {0xd, 0},
        {0xd, 1},        {0xd, 2},        {0x80000000, 0}, {0x80000001, 0}, {0x80000002, 0},
        {0x80000004, 0}, {0x80000006, 0}, {0x80000008, 0}, {0x40000000, 0}, {0x12345678, 0}};
    unsigned which = random_below(r, sizeof leaves / sizeof *leaves);
    in->gpr[GPR_RAX] = leaves[which][0] | random_next(r) << 32;
    in->gpr[GPR_RCX] = leaves[which][1] | random_next(r) << 32;
}

// Calls without arguments and without effect.
static uint64_t system_call(struct random *r, uint32_t limits) {
    static const uint64_t calls[] = {102, 104, 107, 108, 24, 0xffff};
    static const uint64_t calls32[] = {24, 47, 49, 199, 158, 0xffff};
    return (limits & LIMIT_SYSCALL32 ? calls32 : calls)[random_below(r, 6)];
}

static uint32_t set_limits(const struct form *form, struct random *r, uint64_t area,
                           struct cpu_state *in) {
    uint32_t limits = form->limits, fixed = 0;
    uint64_t *special = form->special < 16 ? &in->gpr[form->special] : NULL;
    if (limits & LIMIT_COUNT) {
        set_count(form, r, in);
        fixed |= 1 << GPR_RCX;
    }
    if (limits & (LIMIT_SYSCALL | LIMIT_SYSCALL32))
        in->gpr[GPR_RAX] = system_call(r, limits);
    if (limits & LIMIT_CPUID)
        set_cpuid(r, in);
    if (limits & LIMIT_XCR)
        in->gpr[GPR_RCX] = random_below(r, 3) | random_next(r) << 32;
    if (limits & LIMIT_DIVIDE && random_below(r, 4))
        in->gpr[GPR_RDX] = random_below(r, 3) ? 0 : ~0ul;
    if (limits & LIMIT_FRAME) {
        in->gpr[GPR_RBP] = area_high + AREA_STACK + STACK_SIZE / 2 + 8 * random_below(r, 64);
        fixed |= 1 << GPR_RBP;
    }
    if (limits & LIMIT_SELECTOR)
        *special = (random_next(r) & ~0xfffful) | selector_value(r, 0x2b);
    if (limits & LIMIT_POINTER)
        *special = branch_target(form, r, area);
    if (limits & LIMIT_ADDRESS && random_below(r, 4))
        *special &= 0x7ffffffffffful;
    if (limits & LIMIT_BIT_OFFSET) {
        uint64_t mask = form->special_bits == 64 ? ~0ul : (1ul << form->special_bits) - 1;
        uint64_t offset = random_below(r, 4096) - 2048;
        *special = (*special & ~mask) | (offset & mask);
    }
    if (special && limits & (LIMIT_SELECTOR | LIMIT_POINTER | LIMIT_BIT_OFFSET))
        fixed |= 1 << form->special;
    return fixed;
}

// ---- Addresses ----------------------------------------------------------------------------------

// Where the operand shall lie.
static uint64_t choose_target(const struct form *form, const struct form_mem *mem, struct random *r,
                              unsigned kind) {
    bool on_stack = mem->base == GPR_RSP && !mem->segment;
    bool low = mem->address32 || (!mem->segment && random_below(r, 2));
    uint64_t area = low && !(on_stack && mem->implicit && !mem->address32) ? AREA_LOW : area_high;
    if (on_stack) {
        uint64_t stack = area + AREA_STACK;
        if (kind == 3 && form->limits & LIMIT_STACK)
            return random_below(r, 2) ? stack + random_below(r, 12)
                                      : stack + STACK_SIZE - random_below(r, 12);
        return stack + STACK_SIZE / 2 + 8 * random_below(r, 64) + (kind == 1 ? 3 : 0);
    }
    uint64_t data = area + AREA_DATA, within = random_below(r, mem->size + 16);
    if (kind == 3)
        // Cut to 32 bits or without its segment base, an address outside could be anybody's.
        switch (random_below(r, mem->address32 || mem->segment ? 5 : 8)) {
        case 0:
            return data + DATA_SIZE - within;
        case 1:
            return data + DATA_SIZE + 64 + within;
        case 2:
            return data + DATA_SIZE + 0x1000 - within;
        case 3:
            return data + DATA_SIZE + 0x1000 + within;
        case 4:
            return data - within;
        case 5: // not canonical
            return random_next(r) | 1ul << 62;
        case 6: // the kernel's
            return 0xffff900000000000ul | random_below(r, 1ul << 40);
        }
    return data + 0x1000 + 64 * random_below(r, 32) + (kind == 1 ? 1 + random_below(r, 63) : 0);
}

static uint64_t effective_offset(const struct form_mem *mem, const struct cpu_state *in,
                                 uint64_t area) {
    uint64_t offset = mem->disp;
    if (mem->base == GPR_RIP)
        offset += area;
    else if (mem->base < 16)
        offset += in->gpr[mem->base];
    if (mem->index < 16 && !mem->vsib_bits)
        offset += in->gpr[mem->index] * mem->scale;
    if (mem->index == GPR_INNER)
        offset += in->gpr[GPR_RAX] & 0xff;
    return mem->address32 ? (uint32_t)offset : offset;
}

static void set_register(struct cpu_state *in, struct random *r, unsigned reg, uint64_t value,
                         bool only32) {
    in->gpr[reg] = only32 ? (uint32_t)value | random_next(r) << 32 : value;
}

// Index elements small enough to stay inside the data.
static void set_vector_index(const struct form_mem *mem, struct random *r, struct cpu_state *in) {
    const struct xsave_layout *l = &state_xsave_layout;
    uint8_t *image = in->xsave;
    for (unsigned i = 0; i < 64; i += mem->vsib_bits / 8) {
        int64_t value = (int64_t)random_below(r, 256) - 128;
        uint8_t *at = mem->index >= 16 ? image + l->offset[PART_ZMM16] + 64 * (mem->index - 16) + i
                      : i < 16         ? image + XSAVE_XMM + 16 * mem->index + i
                      : i < 32         ? image + l->offset[PART_AVX] + 16 * mem->index + i - 16
                               : image + l->offset[PART_ZMM_HIGH] + 32 * mem->index + i - 32;
        unsigned part = mem->index >= 16 ? PART_ZMM16
                        : i < 16         ? PART_SSE
                        : i < 32         ? PART_AVX
                                         : PART_ZMM_HIGH;
        if (l->size[part])
            memcpy(at, &value, mem->vsib_bits / 8);
    }
}

// Sets the registers (or the segment base) so that the operand lies at `target`.
static void solve(const struct form_mem *mem, struct random *r, struct cpu_state *in,
                  uint64_t target, uint64_t area, uint32_t *fixed) {
    bool has_base = mem->base < 16, has_index = mem->index < 16 && !mem->vsib_bits;
    bool only32 = mem->address32;
    if (mem->vsib_bits)
        set_vector_index(mem, r, in);
    if (mem->segment) {
        if (has_base && !(*fixed >> mem->base & 1))
            set_register(in, r, mem->base, random_below(r, 1 << 30), only32);
        if (has_index && !(*fixed >> mem->index & 1))
            set_register(in, r, mem->index, random_below(r, 1 << 20), only32);
        uint64_t base = target - effective_offset(mem, in, area);
        *(mem->segment == SEGMENT_FS ? &in->fs_base : &in->gs_base) = base >> 47 ? 0 : base;
    } else if (has_base && mem->base == mem->index && has_index) {
        if (!(*fixed >> mem->base & 1))
            set_register(in, r, mem->base, (target - mem->disp) / (1 + mem->scale), only32);
    } else if (has_base) {
        if (has_index && !(*fixed >> mem->index & 1))
            set_register(in, r, mem->index, random_below(r, 256) - 128, only32);
        uint64_t rest = effective_offset(mem, in, area) - in->gpr[mem->base];
        if (!(*fixed >> mem->base & 1))
            set_register(in, r, mem->base, target - rest, only32);
    } else if (has_index && !(*fixed >> mem->index & 1)) {
        set_register(in, r, mem->index, (target - mem->disp) / mem->scale, only32);
    }
    if (has_base)
        *fixed |= 1 << mem->base;
    if (has_index)
        *fixed |= 1 << mem->index;
}

// ---- Memory contents ----------------------------------------------------------------------------

static void put(uint64_t at, const void *bytes, unsigned count) {
    memory_write(at, bytes, count);
}

static void put_number(uint64_t at, uint64_t value, unsigned bytes) {
    put(at, &value, bytes);
}

static void fill_xsave(const struct form_mem *mem, struct random *r, unsigned kind, uint64_t at) {
    static uint8_t image[sizeof((struct cpu_state *)0)->xsave] __attribute__((aligned(64)));
    xsave_image(r, kind == 3 ? 1 : kind, image);
    // Some parts in their initial state.
    uint64_t present = state_xsave_layout.mask & (random_below(r, 2) ? ~0ul : random_next(r));
    memcpy(image + XSAVE_HEADER, &present, 8);
    put(at, image, mem->fill == FILL_FXSAVE ? 512 : mem->size);
}

static void fill(const struct form *form, const struct form_mem *mem, struct random *r,
                 unsigned kind, uint64_t at, uint64_t area) {
    unsigned width = form->special_bits ? form->special_bits / 8 : 8;
    uint8_t value[128];
    switch (mem->fill) {
    case FILL_VALUE:
        vector_value(r, value, 64);
        vector_value(r, value + 64, 64);
        put(at, value, mem->size < sizeof value ? mem->size : sizeof value);
        break;
    case FILL_POINTER:
        put_number(at, branch_target(form, r, area), 8);
        break;
    case FILL_FAR:
        put_number(at, branch_target(form, r, area), width);
        put_number(at + width, selector_value(r, form->limits & LIMIT_SEGMENT_LOAD ? 0x2b : 0x33),
                   mem->implicit ? width : 2);
        break;
    case FILL_FRAME:
        put_number(at, branch_target(form, r, area), width);
        put_number(at + width, random_below(r, 4) ? 0x33 : random_next(r) & 0xfff0, width);
        put_number(at + 2 * width, flags_value(r), width);
        put_number(at + 3 * width, area + AREA_STACK + random_below(r, STACK_SIZE), width);
        put_number(at + 4 * width, random_below(r, 4) ? 0x2b : random_next(r) & 0xfff0, width);
        break;
    case FILL_SELECTOR:
        put_number(at, selector_value(r, 0x2b), 2);
        break;
    case FILL_FLAGS:
        put_number(at, flags_value(r), 8);
        break;
    case FILL_TRAP:
        put_number(at, flags_value(r) | FLAG_TF, 8);
        break;
    case FILL_ALIGNMENT:
        put_number(at, flags_value(r) | FLAG_AC, 8);
        break;
    case FILL_MXCSR:
        put_number(at, random_next(r) & (kind == 2 ? 0xffffffff : 0xffff), 4);
        break;
    default:
        fill_xsave(mem, r, kind, at);
        break;
    }
}

// Makes comparisons come out equal: cmpxchg finds what it expects, strings agree for a while.
static void make_match(const struct form *form, struct random *r, const uint64_t *at,
                       uint32_t fixed, struct cpu_state *in) {
    uint64_t value[12] = {0};
    const unsigned half = sizeof value / 2;
    if (form->mem_count == 2 || form->mem[0].implicit) {
        if (form->mem_count == 2)
            memory_read(at[0] - half, value, sizeof value);
        else
            memset(value, in->gpr[GPR_RAX], sizeof value);
        memory_write(at[form->mem_count - 1] - half, value, sizeof value);
        if (form->mem_count == 1)
            in->gpr[GPR_RAX] = value[0];
        put_number(at[0] + random_below(r, half), 0, 1);
    } else if (memory_read(at[0], value, 16) && !(fixed & (1 << GPR_RAX | 1 << GPR_RDX))) {
        in->gpr[GPR_RAX] = value[0];
        // cmpxchg8b compares edx:eax.
        in->gpr[GPR_RDX] = form->mem[0].size == 8 ? value[0] >> 32 : value[1];
    }
}

void state_init(uint64_t high) {
    struct xsave_layout *l = &state_xsave_layout;
    uint32_t eax, ebx, ecx, edx;
    area_high = high;
    __asm__("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
    l->mask = eax & 0xe7;
    l->size[PART_X87] = 160;
    l->offset[PART_SSE] = XSAVE_XMM;
    l->size[PART_SSE] = 256;
    image_size = XSAVE_HEADER + 64;
    for (unsigned i = PART_AVX; i < PARTS; i++)
        if (l->mask >> i & 1) {
            __cpuid_count(0xd, i, eax, ebx, ecx, edx);
            if (ebx + eax > sizeof((struct cpu_state *)0)->xsave)
                errx(2, "xsave image too large");
            l->offset[i] = ebx;
            l->size[i] = eax;
            image_size = ebx + eax > image_size ? ebx + eax : image_size;
        }
    make_stock();
}

void state_make(const struct form *form, uint32_t id, unsigned number, uint64_t area,
                struct cpu_state *in) {
    struct random r = {((uint64_t)id << 8 | number) * 0x2545f4914f6cdd1dul};
    unsigned kind = number % 4;
    uint64_t at[FORM_MEM_MAX];
    memset(in, 0, STATE_XSAVE);
    for (int i = 0; i < 16; i++)
        in->gpr[i] = gpr_value(&r, kind);
    in->flags = flags_value(&r);
    xsave_image(&r, kind, in->xsave);
    in->fs_base = area_high + AREA_DATA + random_below(&r, 0x4000);
    in->gs_base = area_high + AREA_DATA + random_below(&r, 0x4000);
    uint32_t fixed = set_limits(form, &r, area, in);
    bool uses_rsp = form->special == GPR_RSP && fixed >> GPR_RSP & 1;
    for (int i = 0; i < form->mem_count; i++) {
        const struct form_mem *mem = &form->mem[i];
        solve(mem, &r, in, choose_target(form, mem, &r, kind), area, &fixed);
        uses_rsp |= mem->base == GPR_RSP;
    }
    if (!uses_rsp)
        in->gpr[GPR_RSP] = area_high + AREA_STACK + STACK_SIZE / 2 + 8 * random_below(&r, 64);
    // Without use of the stack its pointer may be anything.
    if (!uses_rsp && kind == 2 && random_below(&r, 4) == 0)
        in->gpr[GPR_RSP] = random_next(&r) | 1ul << 62;
    for (int i = 0; i < form->mem_count; i++) {
        const struct form_mem *mem = &form->mem[i];
        at[i] = effective_offset(mem, in, area);
        at[i] += mem->segment == SEGMENT_FS   ? in->fs_base
                 : mem->segment == SEGMENT_GS ? in->gs_base
                                              : 0;
    }
    for (int i = form->mem_count - 1; i >= 0; i--)
        fill(form, &form->mem[i], &r, kind, at[i], area);
    if (form->limits & LIMIT_MATCH && random_below(&r, 2))
        make_match(form, &r, at, fixed, in);
}
