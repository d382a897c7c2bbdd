#include "engine/translate/builder.h"
#include "engine/translate/translate.h"

static ZydisDecoder decoder;
static bool ready;
static uint64_t vdso_copy, vdso_size, vdso_real;

enum insn_status insn_decode(struct insn *insn, uint64_t pc, const uint8_t *bytes,
                             unsigned available) {
    if (!ready) {
        ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
        ready = true;
    }
    insn->pc = pc;
    insn->bytes = bytes;
    insn->has_operands = false;
    ZyanStatus status =
        ZydisDecoderDecodeInstruction(&decoder, &insn->context, bytes, available, &insn->z);
    if (ZYAN_SUCCESS(status))
        return INSN_VALID;
    if (status == ZYDIS_STATUS_NO_MORE_DATA)
        return available < INSN_BYTES ? INSN_CUT_OFF : INSN_TOO_LONG;
    return status == ZYDIS_STATUS_INSTRUCTION_TOO_LONG ? INSN_TOO_LONG : INSN_INVALID;
}

void insn_operands(struct insn *insn) {
    if (insn->has_operands)
        return;
    ZydisDecoderDecodeOperands(&decoder, &insn->context, &insn->z, insn->operands,
                               insn->z.operand_count);
    insn->has_operands = true;
}

int register_number(ZydisRegister reg) {
    if (reg >= ZYDIS_REGISTER_RAX && reg <= ZYDIS_REGISTER_R15)
        return reg - ZYDIS_REGISTER_RAX;
    if (reg >= ZYDIS_REGISTER_EAX && reg <= ZYDIS_REGISTER_R15D)
        return reg - ZYDIS_REGISTER_EAX;
    if (reg >= ZYDIS_REGISTER_AX && reg <= ZYDIS_REGISTER_R15W)
        return reg - ZYDIS_REGISTER_AX;
    if (reg >= ZYDIS_REGISTER_AL && reg <= ZYDIS_REGISTER_BL)
        return reg - ZYDIS_REGISTER_AL;
    if (reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH)
        return reg - ZYDIS_REGISTER_AH;
    if (reg >= ZYDIS_REGISTER_SPL && reg <= ZYDIS_REGISTER_R15B)
        return reg - ZYDIS_REGISTER_SPL + 4;
    return -1;
}

uint32_t insn_registers(struct insn *insn) {
    insn_operands(insn);
    uint32_t mask = 0;
    for (unsigned i = 0; i < insn->z.operand_count; i++) {
        const ZydisDecodedOperand *operand = &insn->operands[i];
        int first = -1, second = -1;
        if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER) {
            first = register_number(operand->reg.value);
        } else if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY) {
            first = register_number(operand->mem.base);
            second = register_number(operand->mem.index);
        }
        if (first >= 0)
            mask |= 1u << first;
        if (second >= 0)
            mask |= 1u << second;
    }
    return mask;
}

const ZydisDecodedOperand *insn_memory(struct insn *insn) {
    insn_operands(insn);
    for (unsigned i = 0; i < insn->z.operand_count; i++) {
        const ZydisDecodedOperand *operand = &insn->operands[i];
        if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY &&
            operand->visibility != ZYDIS_OPERAND_VISIBILITY_HIDDEN)
            return operand;
    }
    return NULL;
}

void translate_place_vdso(uint64_t copy, uint64_t size, uint64_t real) {
    vdso_copy = copy;
    vdso_size = size;
    vdso_real = real;
}

bool insn_is_vdso(const struct insn *insn) {
    return insn->pc - vdso_copy < vdso_size;
}

uint64_t insn_rip_target(const struct insn *insn) {
    uint64_t target = insn_next(insn) + insn->z.raw.disp.value;
    if (insn_is_vdso(insn) && target - vdso_copy >= vdso_size)
        target += vdso_real - vdso_copy;
    return insn->z.address_width == 32 ? (uint32_t)target : target;
}
