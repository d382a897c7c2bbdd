// Code that is copied into a process that runs, to load a library there (load.c). It is position
// independent; its parameters lie behind it.
//
// A thread of the process is *borrowed*: it runs attach_stub with a stack of its own, and then goes
// on where it was. Everything that it needs for that is here, so it needs nobody's help: Quern may
// end at any moment. Signals are blocked from its first instructions on. They are unblocked when
// the stack pointer is the thread's own again: a signal's frame goes there.
#include <asm/unistd.h>

    .section .rodata
    .balign 16
    .globl attach_stub, attach_stub_end, attach_parameters
    .hidden attach_stub, attach_stub_end, attach_parameters
attach_stub:
    mov $__NR_rt_sigprocmask, %eax
    mov $2, %edi // SIG_SETMASK
    lea all_signals(%rip), %rsi
    xor %edx, %edx
    mov $8, %r10d
    syscall
    mov $__NR_mmap, %eax
    mov scratch(%rip), %rdi
    mov scratch_size(%rip), %rsi
    mov $3, %edx // to read and write
    mov $0x100022, %r10d // private, anonymous, fixed, never in place of another
    mov $-1, %r8
    xor %r9d, %r9d
    syscall
    mov scratch(%rip), %rbx
    cmp %rax, %rbx
    jne go_back
    lea (%rbx), %rsp
    add scratch_size(%rip), %rsp
    lea 4096(%rbx), %rbp // where the vector registers go
    mov $-1, %eax
    mov $-1, %edx
    xsave64 (%rbp)
    cld
    movl $1, (%rbx)
    lea 8(%rbx), %rdi
    xor %esi, %esi
    lea helper(%rip), %rdx
    mov %rbx, %rcx
    call *pthread_create(%rip)
    mov %eax, 4(%rbx)
    mov $-1, %eax
    mov $-1, %edx
    xrstor64 (%rbp)
    movl $2, (%rbx)
go_back:
    lea flags(%rip), %rsp
    popfq
    mov own_rsp(%rip), %rsp
    mov $__NR_rt_sigprocmask, %eax
    mov $2, %edi
    lea own_signals(%rip), %rsi
    mov $0, %edx // as all moves from here on, it leaves the flags alone
    mov $8, %r10d
    syscall
    mov own_rbx(%rip), %rbx
    mov own_rcx(%rip), %rcx
    mov own_rdx(%rip), %rdx
    mov own_rsi(%rip), %rsi
    mov own_rdi(%rip), %rdi
    mov own_rbp(%rip), %rbp
    mov own_r8(%rip), %r8
    mov own_r9(%rip), %r9
    mov own_r10(%rip), %r10
    mov own_r11(%rip), %r11
    mov own_rax(%rip), %rax
    jmp *own_rip(%rip)

// The new thread: loads the library and becomes its entry, so that nothing leads back here.
helper:
    push %rbx
    mov %rdi, %rbx
    mov %fs:16, %rdi
    call *pthread_detach(%rip)
    lea path(%rip), %rdi
    mov $0x1002, %esi // RTLD_NOW, RTLD_NODELETE
    call *dlopen(%rip)
    test %rax, %rax
    je no_library
    mov %rax, %rdi
    lea entry(%rip), %rsi
    call *dlsym(%rip)
    test %rax, %rax
    je no_library
    mov %rbx, %rdi
    pop %rbx
    jmp *%rax
no_library:
    call *dlerror(%rip)
    xor %ecx, %ecx
    test %rax, %rax
    je told
copy:
    mov (%rax, %rcx), %dl
    mov %dl, 48(%rbx, %rcx)
    test %dl, %dl
    je told
    inc %ecx
    cmp $238, %ecx
    jb copy
told:
    movl $1, 16(%rbx)
    xor %eax, %eax
    pop %rbx
    ret

    .balign 8
all_signals: .quad -1
attach_parameters:
scratch: .quad 0
scratch_size: .quad 0
pthread_create: .quad 0
pthread_detach: .quad 0
dlopen: .quad 0
dlsym: .quad 0
dlerror: .quad 0
flags: .quad 0
own_signals: .quad 0
own_rax: .quad 0
own_rbx: .quad 0
own_rcx: .quad 0
own_rdx: .quad 0
own_rsi: .quad 0
own_rdi: .quad 0
own_rbp: .quad 0
own_rsp: .quad 0
own_r8: .quad 0
own_r9: .quad 0
own_r10: .quad 0
own_r11: .quad 0
own_rip: .quad 0
entry: .asciz "quern_recorder_attach"
    .balign 8
path: .skip 512
attach_stub_end:
    .section .note.GNU-stack, "", @progbits
