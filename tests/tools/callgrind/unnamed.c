// Functions that lead on by a jump to code that has no symbol: it is theirs.
#include <stdio.h>

__asm__(".text\n\t.type leads_on, @function\nleads_on:\n\tjmp 1f\n\t.size leads_on, . - leads_on\n"
        "\tnop\n1:\tmov $20, %ecx\n2:\tlea 1(%rdi, %rcx), %rdi\n\tdec %ecx\n\tjnz 2b\n"
        "\tmov %rdi, %rax\n\tret\n");
long leads_on(long);

__attribute__((noinline)) static long around(long n) {
    long sum = 0;
    for (long i = 0; i < n; i++)
        sum += leads_on(i);
    return sum;
}

int main(void) {
    return printf("%ld\n", around(30)) < 0;
}
