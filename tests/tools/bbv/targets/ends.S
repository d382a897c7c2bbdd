// What ends a block, and what does not.
.globl _start
.bss
buf: .skip 4096
buf2: .skip 4096
.text
_start:
    mov $3,%ecx
1: dec %ecx
    jnz 1b
    .rept 130
    nop
    .endr
    pause
    nop
    rdtsc
    cpuid
    nop
    mfence
    lock incl buf(%rip)
    nop
    fldcw buf(%rip)
    lock cmpxchg %eax,buf(%rip)
    nop
    xor %ecx,%ecx
    xgetbv
    nop
    mov $39,%eax
    syscall
    nop
    cmovz %eax,%ebx
    bsf %eax,%ebx
    nop
    lea buf2(%rip),%rax
    rol $3,%rdi ; rol $13,%rdi; rol $61,%rdi; rol $51,%rdi; xchg %rbx,%rbx
    nop
    mov $2,%ecx
2: loop 2b
    jrcxz 3f
    nop
3: call 4f
    jmp 5f
4: ret
5: call 1f
    mov $1,%ecx
    jrcxz 2f
    nop
2: nop
    movss %xmm0,%xmm1
    movaps %xmm0,buf(%rip)
    bnd jmp 3f
3: nop
    movl $0x37f,buf(%rip)
    fldcw buf(%rip)
    nop
    movl $0xf7f,buf(%rip)
    fldcw buf(%rip)
    nop
    movl $0x27f,buf(%rip) // Valgrind warns of the precision: the block ends
    fldcw buf(%rip)
    nop
    fninit
    fxsave buf(%rip)
    fxrstor buf(%rip)
    ldmxcsr buf+24(%rip)
    nop
    clflush buf(%rip)
    nop
    pushfq
    popfq
    cld
    std
    cld
    mov $7,%ecx
    xor %edx,%edx
    div %ecx
    sfence
    lfence
    prefetcht0 buf(%rip)
    bt %eax,%ebx
    xchg %eax,buf(%rip)
    lock cmpxchg8b buf(%rip)
    shl %cl,%eax
    rcl %cl,%eax
    enter $0,$0
    leave
    endbr64
    rdtscp
    mov $60,%eax
    xor %edi,%edi
    syscall
1: repz ret
