// void engine_run(const struct track *): see engine.h.
#include "../../../engine/differential/layout.h"

    .text
    .globl engine_run
    .type engine_run, @function
engine_run:
    push %rbx
    mov CONTEXT_XSAVE_MASK, %eax
    xor %edx, %edx
    xrstor64 CONTEXT_IN + STATE_XSAVE
    call track_run@PLT
    mov CONTEXT_XSAVE_MASK, %eax
    xor %edx, %edx
    xsave64 CONTEXT_OUT + STATE_XSAVE
    fninit
    pushq $0x1f80
    ldmxcsr (%rsp)
    add $8, %rsp
    pop %rbx
    ret
    .size engine_run, . - engine_run
    .section .note.GNU-stack, "", @progbits
