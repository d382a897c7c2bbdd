// Which registers an instruction reads and writes, as the translator must know it.
#include "tools/memcheck/target/track/parts.h"

#define UNIT(number) (1ul << (number))
#define VECTORS(n)   ((n) == 32 ? 0xfffffffful << SHADOW_UNIT_VECTOR : 0xfffful << SHADOW_UNIT_VECTOR)
#define MASKS        (0xfful << SHADOW_UNIT_MASK)
#define ARITHMETIC   ((uint32_t)FLAGS_ALL)

// -1: none that is kept.
static int unit_of(ZydisRegister reg) {
    if (reg >= ZYDIS_REGISTER_AL && reg <= ZYDIS_REGISTER_R15) {
        ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
        return SHADOW_UNIT_GENERAL + (whole - ZYDIS_REGISTER_RAX);
    }
    if (reg >= ZYDIS_REGISTER_XMM0 && reg <= ZYDIS_REGISTER_XMM31)
        return SHADOW_UNIT_VECTOR + (reg - ZYDIS_REGISTER_XMM0);
    if (reg >= ZYDIS_REGISTER_YMM0 && reg <= ZYDIS_REGISTER_YMM31)
        return SHADOW_UNIT_VECTOR + (reg - ZYDIS_REGISTER_YMM0);
    if (reg >= ZYDIS_REGISTER_ZMM0 && reg <= ZYDIS_REGISTER_ZMM31)
        return SHADOW_UNIT_VECTOR + (reg - ZYDIS_REGISTER_ZMM0);
    if (reg >= ZYDIS_REGISTER_K0 && reg <= ZYDIS_REGISTER_K7)
        return SHADOW_UNIT_MASK + (reg - ZYDIS_REGISTER_K0);
    if ((reg >= ZYDIS_REGISTER_MM0 && reg <= ZYDIS_REGISTER_MM7) ||
        (reg >= ZYDIS_REGISTER_ST0 && reg <= ZYDIS_REGISTER_ST7) ||
        reg == ZYDIS_REGISTER_X87STATUS || reg == ZYDIS_REGISTER_X87TAG)
        return SHADOW_UNIT_X87;
    return -1;
}

// Does a write of this operand leave nothing of the register as it was?
static bool overwrites(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *o, int unit) {
    if (!(o->actions & ZYDIS_OPERAND_ACTION_WRITE))
        return false;
    if (unit < SHADOW_UNIT_FLAGS)
        // A search that finds nothing leaves its destination alone.
        return o->size >= 32 && z->mnemonic != ZYDIS_MNEMONIC_BSF &&
               z->mnemonic != ZYDIS_MNEMONIC_BSR;
    if (unit >= SHADOW_UNIT_VECTOR)
        return z->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY;
    return unit >= SHADOW_UNIT_MASK;
}

static void add_operand(struct track_units *units, const ZydisDecodedInstruction *z,
                        const ZydisDecodedOperand *o) {
    if (o->type == ZYDIS_OPERAND_TYPE_MEMORY) {
        int base = unit_of(o->mem.base), index = unit_of(o->mem.index);
        units->reads |= (base >= 0 ? UNIT(base) : 0) | (index >= 0 ? UNIT(index) : 0);
        return;
    }
    if (o->type != ZYDIS_OPERAND_TYPE_REGISTER)
        return;
    int unit = unit_of(o->reg.value);
    if (unit < 0 || (o->encoding == ZYDIS_OPERAND_ENCODING_MASK && unit == SHADOW_UNIT_MASK))
        return;
    if (o->actions & ZYDIS_OPERAND_ACTION_MASK_READ)
        units->reads |= UNIT(unit);
    if (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
        units->writes |= UNIT(unit);
    if (overwrites(z, o, unit))
        units->kills |= UNIT(unit);
}

static bool is_variable_shift(const ZydisDecodedInstruction *z,
                              const ZydisDecodedOperand *operands) {
    switch (z->mnemonic) {
    case ZYDIS_MNEMONIC_SHL:
    case ZYDIS_MNEMONIC_SHR:
    case ZYDIS_MNEMONIC_SAR:
    case ZYDIS_MNEMONIC_SHLD:
    case ZYDIS_MNEMONIC_SHRD: {
        const ZydisDecodedOperand *count = &operands[z->operand_count_visible - 1];
        // A count of 0 changes no flag.
        if (count->type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
            return !(count->imm.value.u & (operands[0].size == 64 ? 63 : 31));
        return true;
    }
    default:
        return false;
    }
}

static void add_flags(struct track_units *units, const ZydisDecodedInstruction *z,
                      const ZydisDecodedOperand *operands) {
    const ZydisAccessedFlags *flags = z->cpu_flags;
    uint32_t written =
        (flags->modified | flags->set_0 | flags->set_1 | flags->undefined) & ARITHMETIC;
    bool is_string = z->meta.category == ZYDIS_CATEGORY_STRINGOP;
    if (flags->tested & ARITHMETIC)
        units->reads |= UNIT(SHADOW_UNIT_FLAGS);
    if (!written)
        return;
    units->writes |= UNIT(SHADOW_UNIT_FLAGS);
    if (written == ARITHMETIC && !is_variable_shift(z, operands) && !is_string)
        units->kills |= UNIT(SHADOW_UNIT_FLAGS);
}

// The outcome does not depend on what the registers hold.
static bool is_idiom(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *operands) {
    unsigned first = z->operand_count_visible >= 3 ? 1 : 0;
    const ZydisDecodedOperand *a = &operands[first], *b = &operands[first + 1];
    if (z->operand_count_visible < 2 || a->type != ZYDIS_OPERAND_TYPE_REGISTER ||
        b->type != ZYDIS_OPERAND_TYPE_REGISTER || a->reg.value != b->reg.value)
        return false;
    switch (z->mnemonic) {
    case ZYDIS_MNEMONIC_XOR:
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_SBB:
    case ZYDIS_MNEMONIC_CMP:
        return a->size >= 32 || z->mnemonic == ZYDIS_MNEMONIC_CMP;
    case ZYDIS_MNEMONIC_VPXOR:
    case ZYDIS_MNEMONIC_VXORPS:
    case ZYDIS_MNEMONIC_VXORPD:
    case ZYDIS_MNEMONIC_VPCMPEQB:
    case ZYDIS_MNEMONIC_VPCMPEQW:
    case ZYDIS_MNEMONIC_VPCMPEQD:
    case ZYDIS_MNEMONIC_VPCMPEQQ:
    case ZYDIS_MNEMONIC_VPSUBB:
    case ZYDIS_MNEMONIC_VPSUBW:
    case ZYDIS_MNEMONIC_VPSUBD:
    case ZYDIS_MNEMONIC_VPSUBQ:
        return z->encoding == ZYDIS_INSTRUCTION_ENCODING_VEX;
    default:
        return false;
    }
}

static void special(struct track_units *units, const ZydisDecodedInstruction *z,
                    const ZydisDecodedOperand *operands) {
    uint64_t pair;
    switch (z->mnemonic) {
    case ZYDIS_MNEMONIC_SYSCALL:
        // Not rax: its number is looked at before the call, which makes it defined after.
        *units = (struct track_units){.writes = UNIT(1) | UNIT(11), .kills = UNIT(1) | UNIT(11)};
        break;
    case ZYDIS_MNEMONIC_VP2INTERSECTD:
    case ZYDIS_MNEMONIC_VP2INTERSECTQ:
        // The decoder names one mask of the two.
        pair = UNIT(SHADOW_UNIT_MASK) * 3 << ((operands[0].reg.value - ZYDIS_REGISTER_K0) & ~1);
        units->writes |= pair;
        units->kills |= pair;
        break;
    case ZYDIS_MNEMONIC_VZEROUPPER:
        units->writes |= VECTORS(16);
        break;
    case ZYDIS_MNEMONIC_VZEROALL:
        units->writes |= VECTORS(16);
        units->kills |= VECTORS(16);
        break;
    case ZYDIS_MNEMONIC_FXSAVE:
    case ZYDIS_MNEMONIC_FXSAVE64:
    case ZYDIS_MNEMONIC_XSAVE:
    case ZYDIS_MNEMONIC_XSAVE64:
    case ZYDIS_MNEMONIC_XSAVEC:
    case ZYDIS_MNEMONIC_XSAVEC64:
    case ZYDIS_MNEMONIC_XSAVEOPT:
    case ZYDIS_MNEMONIC_XSAVEOPT64:
        units->reads |= VECTORS(32) | MASKS | UNIT(SHADOW_UNIT_X87);
        break;
    case ZYDIS_MNEMONIC_FXRSTOR:
    case ZYDIS_MNEMONIC_FXRSTOR64:
    case ZYDIS_MNEMONIC_XRSTOR:
    case ZYDIS_MNEMONIC_XRSTOR64:
        units->writes |= VECTORS(32) | MASKS | UNIT(SHADOW_UNIT_X87);
        break;
    default:
        break;
    }
    if (z->meta.isa_ext == ZYDIS_ISA_EXT_X87)
        units->writes |= UNIT(SHADOW_UNIT_X87);
}

struct track_units track_units(const ZydisDecodedInstruction *z,
                               const ZydisDecodedOperand *operands) {
    struct track_units units = {0, 0, 0};
    if (track_is_inert(z->mnemonic))
        return units;
    for (unsigned i = 0; i < z->operand_count; i++)
        add_operand(&units, z, &operands[i]);
    if (is_idiom(z, operands)) {
        units.reads = 0;
        units.kills = units.writes;
    }
    units.kills &= ~UNIT(SHADOW_UNIT_FLAGS);
    add_flags(&units, z, operands);
    special(&units, z, operands);
    units.reads |= units.writes & ~units.kills;
    return units;
}
