// A decoded target instruction, and what the engine and tools ask about it.
//
// The translator decodes under the cache lock; faults and emulation decode one instruction for
// themselves. `bytes` is the caller's. Operands are decoded when somebody needs them: call
// insn_operands before you read `operands`. insn_registers and insn_memory do that themselves.
#ifndef QUERN_ENGINE_INSN_H
#define QUERN_ENGINE_INSN_H

#include <stdbool.h>
#include <stdint.h>
#include <Zydis/Zydis.h>

enum { INSN_BYTES = 15 };

struct insn {
    uint64_t pc;
    const uint8_t *bytes;
    ZydisDecodedInstruction z;
    ZydisDecoderContext context;
    bool has_operands; // operands below are valid (insn_operands)
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

enum insn_status { INSN_VALID, INSN_INVALID, INSN_CUT_OFF, INSN_TOO_LONG };
enum insn_status insn_decode(struct insn *, uint64_t pc, const uint8_t *bytes, unsigned available);
void insn_operands(struct insn *);      // decodes operands if not done yet
uint32_t insn_registers(struct insn *); // general registers that it reads or writes, as a mask
// Its explicit memory operand, or NULL. Not for address computations (lea, nop).
const ZydisDecodedOperand *insn_memory(struct insn *);
int register_number(ZydisRegister); // general register's encoding number, or -1
static inline uint64_t insn_next(const struct insn *insn) {
    return insn->pc + insn->z.length;
}
// The address that its rip-relative operand names.
uint64_t insn_rip_target(const struct insn *);
bool insn_is_vdso(const struct insn *);

#endif
