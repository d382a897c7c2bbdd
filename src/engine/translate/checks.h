// Between checks.c, follow.c and release.c, which together add what shadow memory asks for.
#ifndef QUERN_ENGINE_TRANSLATE_CHECKS_H
#define QUERN_ENGINE_TRANSLATE_CHECKS_H

#include "engine/translate/builder.h"

// ---- checks.c ----

// Whether the operand is memory that the instruction accesses, and not only computes or names.
bool checks_touches_memory(const struct insn *, const ZydisDecodedOperand *);

// The largest piece of an operand that one instruction deals with.
unsigned check_piece(unsigned size);
// mov shadow, value; the value is sign-extended to the size
void emit_set_shadow(struct emitter *, const struct address *, unsigned size, uint32_t value);

// ---- follow.c ----

// A call of a gate, between spilling rsp and rdi and putting them back; the argument goes to rdi.
void emit_gate_begin(struct emitter *);
void emit_gate_call(struct emitter *, uint64_t gate);
// Whether the instruction reads a unit that may be undefined here.
bool follow_is_needed(const struct builder *, struct insn *);
void follow_insn(struct builder *, struct insn *);
// Units that an instruction which is not followed overwrites are defined from there on.
void follow_define_overwritten(struct builder *, struct insn *);
void follow_forget_dead(struct builder *, const struct insn *);
// If all of these units are defined, over to the version of `target` for which the rest may not be.
void follow_if_defined(struct builder *, uint64_t units, uint64_t target);
// After the block: the way on when hidden units are undefined at its head.
void follow_end(struct builder *);

// ---- release.c ----

// How far an instruction moves rsp up; 0: not, or down; -1: anywhere.
int64_t release_of(struct insn *);
// After an instruction: the shadow of what it has released by moving rsp.
void release_after(struct builder *, struct insn *);
// Before a call, which ends the red zone, after the checks of its operands.
void release_at_call(struct builder *, const struct insn *);
// A store below the stack pointer, perhaps.
void release_note_red_zone(const struct insn *, const ZydisDecodedOperand *);

#endif
