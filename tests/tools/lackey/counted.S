// A program whose every instruction, load and store can be counted by hand.
        .globl _start
_start: mov     $1000, %ecx             // 1
1:      push    %rcx                    // 1000 times: a store,
        call    function                //   a store, a call,
        pop     %rcx                    //   a load,
        dec     %ecx
        jnz     1b                      //   a branch
        lea     buffer(%rip), %rdi      // 1, no access
        mov     $100, %ecx              // 1
        xor     %eax, %eax              // 1
        rep stosb                       // 1 instruction, 1 store as written
        xor     %edi, %edi              // 1
        mov     $60, %eax               // 1
        syscall                         // 1, a system call
function:
        mov     (%rsp), %rax            //   a load,
        add     %rax, buffer(%rip)      //   a load and a store,
        ret                             //   a load, a return
        .bss
buffer: .skip   128
        .section .note.GNU-stack,"",@progbits
