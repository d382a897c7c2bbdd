// Control flow that compilers rarely write: returns to changed addresses, push and ret, jumps into
// the middle of an instruction, call/pop, ret with an immediate, mismatched calls, loop and jrcxz,
// jumps through memory next to the code, long fall-through blocks.
#include "stress.h"

#define CODE(name, text)                                                                           \
    uint64_t name(uint64_t x);                                                                     \
    __asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n" text               \
            "\n.size " #name ", .-" #name "\n")

CODE(push_ret, "lea 1f(%rip), %rax; push %rax; ret; ud2; 1: lea 5(%rdi), %rax; ret");
CODE(call_pop, "call 1f; 1: pop %rax; lea 1b(%rip), %rdx; sub %rdx, %rax; add %rdi, %rax; ret");
CODE(skip_return, "call 1f; ud2; mov $1, %eax; ret; 1: addq $2, (%rsp); ret");
CODE(into_middle, // the immediate of the first mov holds: mov $7,%eax; ret
     "test %rdi, %rdi; jz 2f; 1: .byte 0x48, 0xb8, 0xb8, 7, 0, 0, 0, 0xc3, 0, 0; ret\n"
     "2: jmp 1b + 2");
CODE(ret_imm, "push %rdi; push %rdi; call 1f; add %rdi, %rax; ret; 1: mov $3, %eax; ret $16");
CODE(loops, "mov %rdi, %rcx; xor %eax, %eax; 1: add %rcx, %rax; loop 1b; jrcxz 2f; ud2; 2:\n"
            "mov $5, %ecx; 3: inc %rax; cmp $-1, %rax; loopne 3b; mov %ecx, %ecx; jecxz 4f\n"
            "ud2; 4: ret");
CODE(table_jump, "lea 9f(%rip), %rax; and $3, %edi; movslq (%rax,%rdi,4), %rdx; add %rax, %rdx\n"
                 "jmp *%rdx; 1: mov $11, %eax; ret; 2: mov $22, %eax; ret; 3: mov $33, %eax; ret\n"
                 "4: mov $44, %eax; ret; .balign 4; 9: .long 1b-9b, 2b-9b, 3b-9b, 4b-9b");
CODE(no_return, "lea 1f(%rip), %rax; call 2f; ud2; 1: lea 1(%rdi), %rax; ret\n"
                "2: add $8, %rsp; jmp *%rax");
CODE(stack_switch, "mov %rsp, %rdx; lea -4096(%rsp), %rsp; and $-64, %rsp; push %rdx; call 1f\n"
                   "pop %rsp; ret; 1: lea 9(%rdi), %rax; ret");
CODE(prefixes, ".byte 0x66, 0x66, 0x2e, 0x90; rep; ret; nop; nop");
CODE(call_memory, "lea 1f(%rip), %rax; push %rax; call *(%rsp); pop %rdx; ret\n"
                  "1: lea 3(%rdi), %rax; ret");
CODE(call_rsp_memory, "push %rbx; lea 1f(%rip), %rbx; push %rbx; mov %rdi, %rax; call *(%rsp)\n"
                      "lea 8(%rsp), %rsp; pop %rbx; ret; 1: cmp %rbx, 8(%rsp); jne 2f\n"
                      "inc %rax; 2: ret");
CODE(pop_memory, "push %rdi; push %rdi; popq (%rsp); pop %rax; sub $8, %rsp; pop %rax; ret");
CODE(flags_across, "cmp $5, %rdi; call 1f; jae 2f; mov $1, %eax; ret; 2: mov $2, %eax; ret\n"
                   "1: mov $0, %eax; lea 1(%rax), %rax; ret");
CODE(enter_leave, "enter $32, $0; mov %rdi, -8(%rbp); mov -8(%rbp), %rax; leave; ret");
CODE(far_enough, "xor %eax, %eax; .rept 3000; add $1, %rax; lea (%rax,%rdi), %rax; .endr; ret");
CODE(retpoline, "lea 3f(%rip), %rax; call 1f; 2: pause; lfence; jmp 2b; 1: mov %rax, (%rsp); ret\n"
                "3: lea 77(%rdi), %rax; ret");

int main(void) {
    uint64_t h = 0;
    for (uint64_t i = 1; i < 2000; i++) {
        SAME(push_ret(i), i + 5);
        SAME(call_pop(i), i);
        SAME(skip_return(i), 1);
        SAME(into_middle(i), 0xc300000007b8);
        SAME(into_middle(0), 7);
        SAME(table_jump(i), (i % 4 + 1) * 11);
        SAME(no_return(i), i + 1);
        SAME(stack_switch(i), i + 9);
        SAME(call_memory(i), i + 3);
        SAME(call_rsp_memory(i), i + 1);
        SAME(flags_across(i), i < 5 ? 1 : 2);
        SAME(enter_leave(i), i);
        SAME(retpoline(i), i + 77);
        prefixes(i);
        h = stress_mix(h, pop_memory(i));
        h = stress_mix(h, loops(i % 20 + 1));
        h = stress_mix(h, ret_imm(i));
    }
    for (uint64_t i = 0; i < 20; i++)
        SAME(far_enough(i), 3000 + 3000 * i);
    printf("%016llx\n", (unsigned long long)h);
    return 0;
}
