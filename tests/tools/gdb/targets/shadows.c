// Registers with defined and undefined bits at `stop`.
#include <stdlib.h>

__attribute__((noinline)) void stop(void) {
    __asm__ volatile("nop");
}

int main(void) {
    long *block = malloc(32);
    block[1] = 7;
    __asm__ volatile("movq (%0), %%r12\n\t"      // undefined
                     "movq 8(%0), %%r13\n\t"     // defined
                     "movzbl (%0), %%r14d\n\t"   // undefined in its lowest byte
                     "movdqu (%0), %%xmm5\n\t"   // undefined in its lower half
                     "vzeroupper\n\t"
                     "call stop"
                     :
                     : "r"(block)
                     : "r12", "r13", "r14", "xmm5", "memory", "rax", "rcx", "rdx");
    free(block);
    return 0;
}
