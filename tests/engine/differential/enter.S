// Enters a form with all registers set, and leaves it with all registers recorded.
//
// int enter(void): loads the state at CONTEXT_IN, jumps to CONTEXT_ENTRY. A form leaves by a jump
// through one of CONTEXT_EXITS, whose number becomes CONTEXT_MARK; the state goes to CONTEXT_OUT
// and enter returns 0. A signal handler leaves a form by resuming at enter_faulted with rsp taken from
// CONTEXT_SAVED_RSP; then enter returns 1. All memory used here is at fixed addresses in the low
// 2 GiB, so no register is needed to reach it; the stack of the form is never used.
#include "layout.h"

#define GPR(state, n) state + STATE_GPR + 8 * n

    .macro each_gpr load, state
    .irp pair, "0,rax", "1,rcx", "2,rdx", "3,rbx", "5,rbp", "6,rsi", "7,rdi", "8,r8", "9,r9", \
        "10,r10", "11,r11", "12,r12", "13,r13", "14,r14", "15,r15"
    one_gpr \load, \state, \pair
    .endr
    .endm

    .macro one_gpr load, state, number, name
    .if \load
    mov GPR(\state, \number), %\name
    .else
    mov %\name, GPR(\state, \number)
    .endif
    .endm

    .text
    .globl enter
    .type enter, @function
enter:
    push %rbp
    push %rbx
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, CONTEXT_SAVED_RSP
    mov CONTEXT_XSAVE_MASK, %eax
    xor %edx, %edx
    xrstor64 CONTEXT_IN + STATE_XSAVE
    mov $(CONTEXT_IN + STATE_FLAGS), %esp
    popf
    each_gpr 1, CONTEXT_IN
    mov GPR(CONTEXT_IN, 4), %rsp
    jmp *CONTEXT_ENTRY
    .size enter, . - enter

    .macro exit_point number
    .globl enter_exit\number
enter_exit\number:
    movq $\number, CONTEXT_MARK
    jmp leave_form
    .endm
    exit_point 0
    exit_point 1
    exit_point 2
    exit_point 3

leave_form:
    mov %rsp, GPR(CONTEXT_OUT, 4)
    mov $(CONTEXT_OUT + STATE_FLAGS + 8), %esp
    pushf
    each_gpr 0, CONTEXT_OUT
    mov CONTEXT_XSAVE_MASK, %eax
    xor %edx, %edx
    xsave64 CONTEXT_OUT + STATE_XSAVE
    mov CONTEXT_SAVED_RSP, %rsp
    xor %eax, %eax
    jmp 1f

    .globl enter_faulted
enter_faulted:
    mov $1, %eax
1:  pushq $0x202
    popf
    fninit
    pushq $0x1f80
    ldmxcsr (%rsp)
    add $8, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbx
    pop %rbp
    ret
    .section .note.GNU-stack, "", @progbits
