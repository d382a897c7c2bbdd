// Ways between C and the cache. See enter.h for the contract.
#include "engine/task_offsets.h"

#define FIELD(offset) %fs:current_task@tpoff+(offset)

        .macro PUSH_CALLEE_SAVED
        push    %rbx
        push    %rbp
        push    %r12
        push    %r13
        push    %r14
        push    %r15
        .endm

        .macro POP_CALLEE_SAVED
        pop     %r15
        pop     %r14
        pop     %r13
        pop     %r12
        pop     %rbp
        pop     %rbx
        .endm

        .text

        .globl cache_enter, cache_enter_begin, cache_enter_end, cache_leave, cache_leave_saved
        .globl cache_abandon
        .type cache_enter, @function
cache_enter:
        PUSH_CALLEE_SAVED
        mov     %rsp, FIELD(TASK_HOST_RSP)
cache_enter_begin:
        cmpl    $0, FIELD(TASK_PENDING)
        jne     1f
cache_load:
        mov     FIELD(TASK_XSTATE), %rcx
        mov     xstate_features(%rip), %eax
        mov     xstate_features+4(%rip), %edx
        xrstor64 (%rcx)
        pushq   FIELD(TASK_FLAGS)
        popfq
        mov     FIELD(TASK_GPR+8*0), %rax
        mov     FIELD(TASK_GPR+8*1), %rcx
        mov     FIELD(TASK_GPR+8*2), %rdx
        mov     FIELD(TASK_GPR+8*3), %rbx
        mov     FIELD(TASK_GPR+8*4), %rsp
        mov     FIELD(TASK_GPR+8*5), %rbp
        mov     FIELD(TASK_GPR+8*6), %rsi
        mov     FIELD(TASK_GPR+8*7), %rdi
        mov     FIELD(TASK_GPR+8*8), %r8
        mov     FIELD(TASK_GPR+8*9), %r9
        mov     FIELD(TASK_GPR+8*10), %r10
        mov     FIELD(TASK_GPR+8*11), %r11
        mov     FIELD(TASK_GPR+8*12), %r12
        mov     FIELD(TASK_GPR+8*13), %r13
        mov     FIELD(TASK_GPR+8*14), %r14
        mov     FIELD(TASK_GPR+8*15), %r15
        jmp     *FIELD(TASK_ENTRY)
cache_enter_end:
1:      movl    $EXIT_PENDING, FIELD(TASK_EXIT_REASON)
        jmp     cache_leave_saved

        .globl cache_resume
        .type cache_resume, @function
cache_resume:
        PUSH_CALLEE_SAVED
        mov     %rsp, FIELD(TASK_HOST_RSP)
        jmp     cache_load

cache_leave:
        mov     %rax, FIELD(TASK_GPR+8*0)
        mov     %rcx, FIELD(TASK_GPR+8*1)
        mov     %rdx, FIELD(TASK_GPR+8*2)
        mov     %rbx, FIELD(TASK_GPR+8*3)
        mov     %rsp, FIELD(TASK_GPR+8*4)
        mov     %rbp, FIELD(TASK_GPR+8*5)
        mov     %rsi, FIELD(TASK_GPR+8*6)
        mov     %rdi, FIELD(TASK_GPR+8*7)
        mov     %r8, FIELD(TASK_GPR+8*8)
        mov     %r9, FIELD(TASK_GPR+8*9)
        mov     %r10, FIELD(TASK_GPR+8*10)
        mov     %r11, FIELD(TASK_GPR+8*11)
        mov     %r12, FIELD(TASK_GPR+8*12)
        mov     %r13, FIELD(TASK_GPR+8*13)
        mov     %r14, FIELD(TASK_GPR+8*14)
        mov     %r15, FIELD(TASK_GPR+8*15)
        mov     FIELD(TASK_HOST_RSP), %rsp
        pushfq
        popq    FIELD(TASK_FLAGS)
cache_save_vectors:
        mov     FIELD(TASK_XSTATE), %rcx
        mov     xstate_features(%rip), %eax
        mov     xstate_features+4(%rip), %edx
        cmpb    $0, xstate_has_xsaveopt(%rip)
        je      2f
        xsaveopt64 (%rcx)               // leaves out what has not changed since it was loaded
        jmp     3f
2:      xsave64 (%rcx)
3:      // C code must not meet the target's direction, alignment-check or rounding modes.
        testl   $0x40400, FIELD(TASK_FLAGS)
        je      4f
        pushq   $2
        popfq
4:      ldmxcsr default_mxcsr(%rip)
cache_leave_saved:
        mov     FIELD(TASK_HOST_RSP), %rsp
        movl    FIELD(TASK_EXIT_REASON), %eax
        POP_CALLEE_SAVED
        ret
cache_abandon:
        mov     FIELD(TASK_HOST_RSP), %rsp
        movl    $EXIT_SIGNAL, FIELD(TASK_EXIT_REASON)
        jmp     cache_save_vectors
        .size cache_enter, .-cache_enter

// long target_syscall(long number, const uint64_t arguments[6])
        .globl target_syscall, target_syscall_begin, target_syscall_end, target_syscall_abort
        .type target_syscall, @function
target_syscall:
        mov     %rdi, %rax
        mov     %rsi, %rcx
        mov     (%rcx), %rdi
        mov     8(%rcx), %rsi
        mov     16(%rcx), %rdx
        mov     24(%rcx), %r10
        mov     32(%rcx), %r8
        mov     40(%rcx), %r9
target_syscall_begin:
        cmpl    $0, FIELD(TASK_PENDING)
        jne     target_syscall_abort
        syscall
target_syscall_end:
        ret
target_syscall_abort:
        mov     $-0x51517151, %rax
        ret
        .size target_syscall, .-target_syscall

// long copy_guarded(void *to, const void *from, size_t size)
        .globl copy_guarded, copy_guarded_begin, copy_guarded_end, copy_guarded_fault
        .type copy_guarded, @function
copy_guarded:
        mov     %rdx, %rcx
copy_guarded_begin:
        rep movsb
copy_guarded_end:
        xor     %eax, %eax
        ret
copy_guarded_fault:
        mov     $-14, %rax
        ret
        .size copy_guarded, .-copy_guarded

// bool call_guarded(void (*fn)(void *), void *argument)
        .globl call_guarded, call_guarded_fault, call_guarded_abandon
        .type call_guarded, @function
call_guarded:
        PUSH_CALLEE_SAVED
        pushq   FIELD(TASK_GUARD)       // leaves the stack aligned
        mov     %rsp, FIELD(TASK_GUARD)
        mov     %rdi, %rax
        mov     %rsi, %rdi
        call    *%rax
        mov     $1, %eax
1:      popq    FIELD(TASK_GUARD)
        POP_CALLEE_SAVED
        ret
call_guarded_fault:
call_guarded_abandon:
        cld
        mov     FIELD(TASK_GUARD), %rsp
        xor     %eax, %eax
        jmp     1b
        .size call_guarded, .-call_guarded

// long clone_vm(unsigned long flags, void *stack, void (*fn)(void *), void *argument, void *pidfd,
//               uint32_t *child_tid)
        .globl clone_vm
        .type clone_vm, @function
clone_vm:
        mov     %r9, %r10
        mov     %rdx, %r9               // these registers survive into the child
        mov     %r8, %rdx
        mov     %rcx, %r8
        mov     $56, %eax
        syscall
        test    %rax, %rax
        jz      1f
        ret
1:      xor     %ebp, %ebp
        mov     %r8, %rdi
        call    *%r9
        hlt
        .size clone_vm, .-clone_vm

// The kernel enters handlers with the interrupted code's alignment-check flag.
        .globl host_signal_entry
        .type host_signal_entry, @function
host_signal_entry:
        pushfq
        andq    $~0x40000, (%rsp)       // only this one: sigreturn does not restore all of them
        popfq
        jmp     host_signal
        .size host_signal_entry, .-host_signal_entry

        .globl become_context
        .type become_context, @function
become_context:
        mov     %rdi, %rsp
        mov     $15, %eax
        syscall
        .size become_context, .-become_context

        .globl host_sigreturn
        .type host_sigreturn, @function
host_sigreturn:
        mov     $15, %eax
        syscall
        .size host_sigreturn, .-host_sigreturn

        .section .rodata
        .align 4
default_mxcsr:
        .long   0x1f80

        .section .note.GNU-stack,"",@progbits
