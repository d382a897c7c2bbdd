// Moves, arithmetic, logic and conditions on general registers and memory.
#include "tools/memcheck/target/track/parts.h"

static struct item operand_item(struct context *c, const struct track *t, unsigned operand) {
    return (struct item){operand_value(c, t, operand) & width_mask(t->width),
                         operand_bits(c, t, operand)};
}

// ---- moves ----

static void run_move(struct context *c, const struct track *t) {
    operand_set_bits(c, t, 0, operand_bits(c, t, 1));
}

static void run_sign_extend(struct context *c, const struct track *t) {
    uint64_t bits = operand_bits(c, t, 1);
    unsigned shift = 64 - t->operands[1].size * 8;
    operand_set_bits(c, t, 0, (uint64_t)((int64_t)(bits << shift) >> shift));
}

// cbw, cwde, cdqe: al to ax and so on. cwd, cdq, cqo: the sign of ax fills dx.
static void run_widen(struct context *c, const struct track *t) {
    uint64_t bits = general_bits(c, 0) & width_mask(t->width / 2);
    unsigned shift = 64 - t->width / 2;
    operand_set_bits(c, t, 0, (uint64_t)((int64_t)(bits << shift) >> shift));
}

static void run_sign_fill(struct context *c, const struct track *t) {
    bool sign = general_bits(c, 0) >> (t->width - 1) & 1;
    operand_set_bits(c, t, 0, sign ? ~0ul : 0);
}

static void run_swap_bytes(struct context *c, const struct track *t) {
    unsigned source = t->mnemonic == ZYDIS_MNEMONIC_BSWAP ? 0 : 1;
    uint64_t bits = operand_bits(c, t, source);
    operand_set_bits(c, t, 0, __builtin_bswap64(bits) >> (64 - t->width));
}

static void run_exchange(struct context *c, const struct track *t) {
    uint64_t first = operand_bits(c, t, 0), second = operand_bits(c, t, 1);
    operand_set_bits(c, t, 0, second);
    operand_set_bits(c, t, 1, first);
}

static struct item scaled(struct context *c, int number, unsigned scale) {
    if (number < 0)
        return NOTHING;
    return (struct item){c->values[number] * scale, general_bits(c, number) * scale};
}

static void run_lea(struct context *c, const struct track *t) {
    const struct tool_access *access = &t->operands[1].access;
    struct item base = scaled(c, access->base, 1);
    struct item index = scaled(c, access->index, access->scale);
    uint64_t bits = 0;
    if (base.bits | index.bits) {
        struct item sum = {base.value + index.value, add_bits(base, index, NOTHING)};
        if (access->base == access->index && access->scale == 1)
            sum.bits = base.bits << 1; // twice the same
        bits = add_bits(sum, (struct item){access->displacement, 0}, NOTHING);
    }
    operand_set_bits(c, t, 0, access->narrow ? (uint32_t)bits : bits);
}

// al becomes the byte at rbx + al.
static void run_translate(struct context *c, const struct track *t) {
    struct tool_access access = {.base = 3, .index = -1, .displacement = c->values[0] & 0xff};
    for (unsigned i = 0; i < t->operand_count; i++)
        if (t->operands[i].kind == OPERAND_MEMORY) {
            access.narrow = t->operands[i].access.narrow;
            access.segment = t->operands[i].access.segment;
        }
    uint64_t rax = general_bits(c, 0);
    if ((rax & 0xff) | general_bits(c, 3))
        report_value(c, 8);
    uint64_t bits = memory_load_word(c, tool_access_address(&access), 1);
    set_general_bits(c, 0, (rax & ~0xfful) | bits);
}

static void run_clear_line(struct context *c, const struct track *t) {
    static const uint64_t zeros[8];
    if (general_bits(c, 0))
        report_value(c, 8);
    memory_store(c, c->values[0] & ~63ul, 64, zeros);
}

// movdir64b: its first operand holds the address of the third.
static void run_move_line(struct context *c, const struct track *t) {
    wide bits;
    memory_load(c, operand_address(c, t, 1), sizeof bits, bits);
    memory_store(c, operand_address(c, t, 2), sizeof bits, bits);
}

// ---- arithmetic ----

enum { ADD, SUBTRACT, COMPARE };

static struct item carry_in(struct context *c, const struct track *t) {
    bool takes = t->mnemonic == ZYDIS_MNEMONIC_ADC || t->mnemonic == ZYDIS_MNEMONIC_SBB;
    if (!takes)
        return NOTHING;
    return (struct item){tool_flags() & FLAG_C, condition_bits(c) >> COND_B & 1};
}

static void run_add(struct context *c, const struct track *t) {
    uint64_t va = operand_bits(c, t, 0), vb = operand_bits(c, t, 1);
    struct item carry = carry_in(c, t);
    uint64_t bits = 0;
    uint16_t conditions = 0;
    if (t->is_same && t->mnemonic == ZYDIS_MNEMONIC_ADD && va) {
        struct item a = {operand_value(c, t, 0), va};
        bits = va << 1;
        conditions = add_conditions(t->width, a, a, NOTHING);
    } else if (t->is_same && t->variant != ADD) {
        // The outcome is the carry, whatever the register holds.
        bits = carry.bits ? ~0ul : 0;
        conditions = carry.bits ? CONDITIONS_ALL & ~(1 << COND_O) : 0;
    } else if (va | vb | carry.bits) {
        uint64_t mask = width_mask(t->width);
        struct item a = {operand_value(c, t, 0) & mask, va};
        struct item b = {operand_value(c, t, 1) & mask, vb};
        bits = t->variant == ADD ? add_bits(a, b, carry) : subtract_bits(a, b, carry);
        conditions = t->variant == ADD ? add_conditions(t->width, a, b, carry)
                                       : subtract_conditions(t->width, a, b, carry);
    }
    if (t->variant != COMPARE)
        operand_set_bits(c, t, 0, bits);
    set_conditions(c, conditions);
}

// inc and dec leave the carry alone.
static void run_increment(struct context *c, const struct track *t) {
    struct item a = operand_item(c, t, 0), one = {1, 0};
    uint16_t old = condition_bits(c);
    bool adds = t->mnemonic == ZYDIS_MNEMONIC_INC;
    uint64_t bits = adds ? add_bits(a, one, NOTHING) : subtract_bits(a, one, NOTHING);
    uint16_t conditions = adds ? add_conditions(t->width, a, one, NOTHING)
                               : subtract_conditions(t->width, a, one, NOTHING);
    uint64_t result = (adds ? a.value + 1 : a.value - 1) & width_mask(t->width);
    struct flags pair = {(tool_flags() & FLAG_C) | (result ? 0 : FLAG_Z),
                         (old >> COND_B & 1 ? FLAG_C : 0) |
                             (conditions >> COND_Z & 1 ? FLAG_Z : 0)};
    uint16_t both = 1 << COND_B | 1 << COND_BE;
    operand_set_bits(c, t, 0, bits);
    set_conditions(c, (conditions & ~both) | (flags_conditions(pair) & both));
}

static void run_negate(struct context *c, const struct track *t) {
    struct item a = operand_item(c, t, 0);
    operand_set_bits(c, t, 0, subtract_bits(NOTHING, a, NOTHING));
    set_conditions(c, subtract_conditions(t->width, NOTHING, a, NOTHING));
}

static void run_not(struct context *c, const struct track *t) {
    operand_set_bits(c, t, 0, operand_bits(c, t, 0));
}

static void run_exchange_add(struct context *c, const struct track *t) {
    struct item a = operand_item(c, t, 0), b = operand_item(c, t, 1);
    uint64_t sum = add_bits(a, b, NOTHING);
    if (t->is_same) {
        operand_set_bits(c, t, 0, sum);
    } else {
        operand_set_bits(c, t, 1, a.bits);
        operand_set_bits(c, t, 0, sum);
    }
    set_conditions(c, add_conditions(t->width, a, b, NOTHING));
}

// adcx and adox: only the carry, or only the overflow flag, which stands in for it.
static void run_add_single_flag(struct context *c, const struct track *t) {
    bool overflow = t->mnemonic == ZYDIS_MNEMONIC_ADOX;
    struct flags flags = flags_now(c);
    uint32_t flag = overflow ? FLAG_O : FLAG_C;
    struct item a = operand_item(c, t, 0), b = operand_item(c, t, 1);
    struct item carry = {(flags.value & flag) != 0, (flags.bits & flag) != 0};
    uint16_t conditions = add_conditions(t->width, a, b, carry);
    unsigned __int128 sum = (unsigned __int128)a.value + b.value + carry.value;
    operand_set_bits(c, t, 0, add_bits(a, b, carry));
    flags.value = (flags.value & ~flag) | ((sum >> t->width) & 1 ? flag : 0);
    flags.bits = (flags.bits & ~flag) | (conditions >> COND_B & 1 ? flag : 0);
    set_conditions(c, flags_conditions(flags));
}

// ---- logic ----

enum { AND, OR, XOR, TEST, AND_NOT };

static struct item logic(unsigned variant, struct item a, struct item b) {
    switch (variant) {
    case OR:
        return (struct item){a.value | b.value,
                             (a.bits | b.bits) & ~(a.value & ~a.bits) & ~(b.value & ~b.bits)};
    case XOR:
        return (struct item){a.value ^ b.value, a.bits | b.bits};
    case AND_NOT:
        a.value = ~a.value;
        // fall through
    default:
        // A defined 0 on either side settles a bit.
        return (struct item){a.value & b.value,
                             (a.bits | b.bits) & (a.value | a.bits) & (b.value | b.bits)};
    }
}

static void run_logic(struct context *c, const struct track *t) {
    unsigned first = t->variant == AND_NOT ? 1 : 0;
    uint64_t va = operand_bits(c, t, first), vb = operand_bits(c, t, first + 1);
    struct item result = {0, 0};
    if ((va | vb) && !(t->is_same && (t->variant == XOR || t->variant == AND_NOT))) {
        uint64_t mask = width_mask(t->width);
        struct item a = {operand_value(c, t, first) & mask, va};
        struct item b = {operand_value(c, t, first + 1) & mask, vb};
        result = logic(t->variant, a, b);
        result.value &= mask;
        result.bits &= mask;
    }
    if (t->variant != TEST)
        operand_set_bits(c, t, 0, result.bits);
    set_conditions(c, logic_conditions(t->width, result));
}

// ---- multiplication and division ----

static unsigned zeros_below(uint64_t possible, unsigned width) {
    return possible ? (unsigned)__builtin_ctzl(possible) : width;
}

// Undefined bits of a product of 2 * width bits: nothing below the lowest undefined bit times the
// other factor's lowest one, nothing above the largest product.
static unsigned __int128 product_bits(struct item a, struct item b, unsigned width,
                                      bool is_signed) {
    typedef unsigned __int128 twice;
    if (!(a.bits | b.bits))
        return 0;
    uint64_t a_possible = a.value | a.bits, b_possible = b.value | b.bits;
    if (!a_possible || !b_possible)
        return 0;
    unsigned low = 2 * width;
    if (a.bits)
        low = zeros_below(a.bits, width) + zeros_below(b_possible, width);
    if (b.bits) {
        unsigned other = zeros_below(b.bits, width) + zeros_below(a_possible, width);
        low = other < low ? other : low;
    }
    twice bits = low >= 128 ? 0 : ~(twice)0 << low;
    uint64_t sign = 1ul << (width - 1);
    if (is_signed && ((a_possible | b_possible) & sign))
        return bits;
    twice largest = (twice)a_possible * b_possible;
    unsigned top = largest >> 64 ? 128 - __builtin_clzl(largest >> 64)
                                 : 64 - __builtin_clzl((uint64_t)largest);
    return top >= 128 ? bits : bits & (((twice)1 << top) - 1);
}

// mul, imul with one operand, mulx: both halves of the product.
static void run_multiply_wide(struct context *c, const struct track *t) {
    bool is_mulx = t->mnemonic == ZYDIS_MNEMONIC_MULX;
    bool is_signed = t->mnemonic == ZYDIS_MNEMONIC_IMUL;
    unsigned source = is_mulx ? 2 : 0, width = t->width;
    uint64_t mask = width_mask(width);
    unsigned implied = is_mulx ? 2 : 0; // rdx or rax
    struct item a = {c->values[implied] & mask, general_bits(c, implied) & mask};
    struct item b = operand_item(c, t, source);
    unsigned __int128 bits = product_bits(a, b, width, is_signed);
    uint64_t low = (uint64_t)bits & mask, high = (uint64_t)(bits >> width) & mask;
    if (is_mulx) {
        // When both name the same register it gets the high half.
        operand_set_bits(c, t, 1, low);
        operand_set_bits(c, t, 0, high);
        return;
    }
    if (width == 8) {
        uint64_t old = c->shadow->undefined[0] ? c->shadow->general[0] : 0;
        set_general_bits(c, 0, (old & ~0xfffful) | low | high << 8);
    } else if (width == 16) {
        uint64_t rax = c->shadow->undefined[0] ? c->shadow->general[0] : 0;
        uint64_t rdx = c->shadow->undefined[2] ? c->shadow->general[2] : 0;
        set_general_bits(c, 0, (rax & ~mask) | low);
        set_general_bits(c, 2, (rdx & ~mask) | high);
    } else {
        set_general_bits(c, 0, low);
        set_general_bits(c, 2, high);
    }
    set_conditions(c, bits ? CONDITIONS_ALL : 0);
}

// imul with two or three operands.
static void run_multiply(struct context *c, const struct track *t) {
    unsigned first = t->variant; // 1 with three operands
    struct item a = operand_item(c, t, first), b = operand_item(c, t, first + 1);
    unsigned __int128 bits = product_bits(a, b, t->width, true);
    operand_set_bits(c, t, 0, (uint64_t)bits);
    set_conditions(c, bits ? CONDITIONS_ALL : 0);
}

static void run_divide(struct context *c, const struct track *t) {
    uint64_t mask = width_mask(t->width), any = operand_bits(c, t, 0);
    if (t->width == 8) {
        uint64_t rax = general_bits(c, 0);
        any |= rax & 0xffff;
        set_general_bits(c, 0, (rax & ~0xfffful) | (any ? 0xffff : 0));
    } else {
        uint64_t rax = general_bits(c, 0), rdx = general_bits(c, 2);
        any |= (rax | rdx) & mask;
        uint64_t kept = t->width == 16 ? ~mask : 0;
        set_general_bits(c, 0, (rax & kept) | (any ? mask : 0));
        set_general_bits(c, 2, (rdx & kept) | (any ? mask : 0));
    }
    set_conditions(c, any ? CONDITIONS_ALL : 0);
}

// ---- comparing and exchanging ----

// What either of two values leaves undefined when it is not known which is taken.
static uint64_t either(struct item a, struct item b) {
    return a.bits | b.bits | (a.value ^ b.value);
}

// Bits above an accumulator that is written, or perhaps written: 32-bit writes clear them.
static uint64_t upper_half(struct context *c, unsigned number, unsigned width, bool unsure) {
    uint64_t mask = width_mask(width), bits = general_bits(c, number);
    if (width < 32)
        return bits & ~mask;
    return unsure ? (bits | c->values[number]) & ~mask : 0;
}

static void run_compare_exchange(struct context *c, const struct track *t) {
    uint64_t mask = width_mask(t->width);
    struct item accumulator = {c->values[0] & mask, general_bits(c, 0) & mask};
    struct item old = operand_item(c, t, 0), new = operand_item(c, t, 1);
    uint16_t conditions = subtract_conditions(t->width, accumulator, old, NOTHING);
    bool unsure = conditions >> COND_Z & 1, equal = accumulator.value == old.value;
    // Afterwards the accumulator equals the old value, whether it was written or not.
    if (unsure || !equal)
        set_general_bits(c, 0, upper_half(c, 0, t->width, unsure) | old.bits);
    operand_set_bits(c, t, 0, unsure ? either(old, new) : equal ? new.bits : old.bits);
    set_conditions(c, conditions);
}

// cmpxchg8b, cmpxchg16b: rdx:rax with memory, rcx:rbx into it.
static void run_compare_exchange_pair(struct context *c, const struct track *t) {
    unsigned size = t->operands[0].size / 2;
    uint64_t mask = width_mask(size * 8), address = operand_address(c, t, 0);
    static const uint8_t expected[] = {0, 2}, wanted[] = {3, 1};
    struct item memory[2], accumulator[2], new[2];
    uint64_t bits[2];
    for (int i = 1; i >= 0; i--)
        bits[i] = memory_load_word(c, address + i * size, size);
    bool unsure = false, differs = false, equal = true;
    for (unsigned i = 0; i < 2; i++) {
        memory[i] = (struct item){memory_value(address + i * size, size), bits[i]};
        accumulator[i] =
            (struct item){c->values[expected[i]] & mask, general_bits(c, expected[i]) & mask};
        new[i] = (struct item){c->values[wanted[i]] & mask, general_bits(c, wanted[i]) & mask};
        uint64_t both = memory[i].bits | accumulator[i].bits;
        unsure |= both != 0;
        differs |= ((memory[i].value ^ accumulator[i].value) & ~both) != 0;
        equal &= memory[i].value == accumulator[i].value;
    }
    unsure &= !differs;
    for (unsigned i = 0; i < 2; i++) {
        uint64_t stored = unsure ? either(memory[i], new[i]) : equal ? new[i].bits : memory[i].bits;
        memory_store_word(c, address + i * size, size, stored);
        if (unsure || !equal)
            set_general_bits(c, expected[i],
                             upper_half(c, expected[i], size * 8, unsure) | memory[i].bits);
    }
    struct flags zero = {equal ? FLAG_Z : 0, unsure ? FLAG_Z : 0}, flags = flags_now(c);
    flags.value = (flags.value & ~FLAG_Z) | zero.value;
    flags.bits = (flags.bits & ~FLAG_Z) | zero.bits;
    set_conditions(c, flags_conditions(flags));
}

// ---- conditions ----

static bool condition_unsure(struct context *c, const struct track *t) {
    return condition_bits(c) >> t->condition & 1;
}

static void run_set(struct context *c, const struct track *t) {
    operand_set_bits(c, t, 0, condition_unsure(c, t));
}

static void run_conditional_move(struct context *c, const struct track *t) {
    bool unsure = condition_unsure(c, t);
    uint64_t old = operand_bits(c, t, 0), new = operand_bits(c, t, 1);
    uint64_t bits;
    if (unsure) {
        struct item a = {operand_value(c, t, 0), old}, b = {operand_value(c, t, 1), new};
        bits = either(a, b);
    } else {
        bits = track_condition_holds(t->condition, t->is_negated) ? new : old;
    }
    operand_set_bits(c, t, 0, bits);
}

// ---- single flags ----

static void run_load_ah(struct context *c, const struct track *t) {
    uint64_t rax = general_bits(c, 0);
    uint64_t bits = flags_now(c).bits & 0xff;
    set_general_bits(c, 0, (rax & ~0xff00ul) | bits << 8);
}

static void run_store_ah(struct context *c, const struct track *t) {
    uint32_t low = FLAGS_ALL & 0xff;
    struct flags flags = flags_now(c);
    flags.value = (flags.value & ~low) | (c->values[0] >> 8 & low);
    flags.bits = (flags.bits & ~low) | (general_bits(c, 0) >> 8 & low);
    set_conditions(c, flags_conditions(flags));
}

// stc, clc: the carry is known from now on. cmc: as well as before.
static void run_set_carry(struct context *c, const struct track *t) {
    uint16_t both = 1 << COND_B | 1 << COND_BE, old = condition_bits(c);
    struct flags flags = flags_now(c);
    if (t->mnemonic == ZYDIS_MNEMONIC_CMC) {
        flags.value ^= FLAG_C;
    } else {
        flags.bits &= ~FLAG_C;
        flags.value =
            t->mnemonic == ZYDIS_MNEMONIC_STC ? flags.value | FLAG_C : flags.value & ~FLAG_C;
    }
    set_conditions(c, (old & ~both) | (flags_conditions(flags) & both));
}

// ---- which is which ----

static track_function *conditional(struct track *t, const ZydisDecodedInstruction *z) {
    track_function *run = NULL;
    switch (z->meta.category) {
    case ZYDIS_CATEGORY_SETCC:
        run = run_set;
        break;
    case ZYDIS_CATEGORY_CMOV:
        run = run_conditional_move;
        break;
    default:
        return NULL;
    }
    t->condition = (z->opcode & 15) >> 1;
    t->is_negated = z->opcode & 1;
    return run;
}

static track_function *multiplication(struct track *t, const ZydisDecodedInstruction *z) {
    if (z->operand_count_visible == 1)
        return run_multiply_wide;
    return set_variant(t, z->operand_count_visible == 3, run_multiply);
}

static track_function *flags_only(struct track *t, const ZydisDecodedInstruction *z) {
    switch (z->mnemonic) {
    case ZYDIS_MNEMONIC_LAHF:
        return run_load_ah;
    case ZYDIS_MNEMONIC_SAHF:
        return run_store_ah;
    case ZYDIS_MNEMONIC_STC:
    case ZYDIS_MNEMONIC_CLC:
    case ZYDIS_MNEMONIC_CMC:
        return run_set_carry;
    default:
        return NULL;
    }
}

track_function *track_integer(struct track *t, const ZydisDecodedInstruction *z) {
    track_function *run = conditional(t, z);
    if (!run)
        run = flags_only(t, z);
    if (run)
        return run;
    switch (z->mnemonic) {
    case ZYDIS_MNEMONIC_MOV:
    case ZYDIS_MNEMONIC_MOVZX:
    case ZYDIS_MNEMONIC_MOVNTI:
    case ZYDIS_MNEMONIC_MOVDIRI:
        return run_move;
    case ZYDIS_MNEMONIC_MOVSX:
    case ZYDIS_MNEMONIC_MOVSXD:
        return run_sign_extend;
    case ZYDIS_MNEMONIC_CBW:
    case ZYDIS_MNEMONIC_CWDE:
    case ZYDIS_MNEMONIC_CDQE:
        return run_widen;
    case ZYDIS_MNEMONIC_CWD:
    case ZYDIS_MNEMONIC_CDQ:
    case ZYDIS_MNEMONIC_CQO:
        return run_sign_fill;
    case ZYDIS_MNEMONIC_BSWAP:
    case ZYDIS_MNEMONIC_MOVBE:
        return run_swap_bytes;
    case ZYDIS_MNEMONIC_XCHG:
        return run_exchange;
    case ZYDIS_MNEMONIC_LEA:
        return run_lea;
    case ZYDIS_MNEMONIC_XLAT:
        return run_translate;
    case ZYDIS_MNEMONIC_CLZERO:
        return run_clear_line;
    case ZYDIS_MNEMONIC_MOVDIR64B:
        return run_move_line;
    case ZYDIS_MNEMONIC_ADD:
    case ZYDIS_MNEMONIC_ADC:
        return set_variant(t, ADD, run_add);
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_SBB:
        return set_variant(t, SUBTRACT, run_add);
    case ZYDIS_MNEMONIC_CMP:
        return set_variant(t, COMPARE, run_add);
    case ZYDIS_MNEMONIC_INC:
    case ZYDIS_MNEMONIC_DEC:
        return run_increment;
    case ZYDIS_MNEMONIC_NEG:
        return run_negate;
    case ZYDIS_MNEMONIC_NOT:
        return run_not;
    case ZYDIS_MNEMONIC_XADD:
        return run_exchange_add;
    case ZYDIS_MNEMONIC_ADCX:
    case ZYDIS_MNEMONIC_ADOX:
        return run_add_single_flag;
    case ZYDIS_MNEMONIC_AND:
        return set_variant(t, AND, run_logic);
    case ZYDIS_MNEMONIC_OR:
        return set_variant(t, OR, run_logic);
    case ZYDIS_MNEMONIC_XOR:
        return set_variant(t, XOR, run_logic);
    case ZYDIS_MNEMONIC_TEST:
        return set_variant(t, TEST, run_logic);
    case ZYDIS_MNEMONIC_ANDN:
        return set_variant(t, AND_NOT, run_logic);
    case ZYDIS_MNEMONIC_MUL:
    case ZYDIS_MNEMONIC_MULX:
        return run_multiply_wide;
    case ZYDIS_MNEMONIC_IMUL:
        return multiplication(t, z);
    case ZYDIS_MNEMONIC_DIV:
    case ZYDIS_MNEMONIC_IDIV:
        return run_divide;
    case ZYDIS_MNEMONIC_CMPXCHG:
        return run_compare_exchange;
    case ZYDIS_MNEMONIC_CMPXCHG8B:
    case ZYDIS_MNEMONIC_CMPXCHG16B:
        return run_compare_exchange_pair;
    default:
        return NULL;
    }
}
