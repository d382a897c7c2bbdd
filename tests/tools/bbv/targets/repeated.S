// Repeated string instructions: how often each of them is repeated decides which blocks there are.
.globl _start
.bss
buf: .skip 4096
buf2: .skip 4096
.text
_start:
    nop
    lea buf(%rip),%rdi
    mov $5,%ecx
    xor %eax,%eax
    rep stosb
    nop
    lea buf(%rip),%rdi
    xor %ecx,%ecx
    rep stosb
    nop
    lea buf(%rip),%rdi
    mov $1,%ecx
    rep stosb
    nop
    lea buf(%rip),%rdi
    lea buf2(%rip),%rsi
    mov $3,%ecx
    repe cmpsb
    nop
    lea buf(%rip),%rdi
    lea buf2(%rip),%rsi
    movb $1,2(%rsi)
    mov $7,%ecx
    repe cmpsb
    nop
    lea buf(%rip),%rdi
    lea buf2(%rip),%rsi
    movb $1,(%rsi)
    mov $7,%ecx
    repe cmpsb
    mov $2,%ecx
    rep stosb
    rep stosb
    mov $2,%ecx
    rep stosb
    mov $1,%ecx
    .byte 0xf3,0x48,0xa5 // rep movsq, and its like with prefixes in several orders
    nop
    mov $2,%ecx
    .byte 0x66,0xf3,0xa5
    nop
    mov $3,%ecx
    .byte 0xf3,0x66,0xa5
    nop
    mov $4,%ecx
    .byte 0x67,0xf3,0xa4
    nop
    mov $5,%ecx
    repne scasb
    nop
    mov $5,%ecx
    mov $77,%al
    repne scasb
    nop
    mov $1,%ecx
    rep lodsb
    nop
    lods (%rsi),%al
    mov $60,%eax
    xor %edi,%edi
    syscall
