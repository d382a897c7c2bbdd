// The processor refuses an instruction, and not because of the memory that it names.
//
// case refused_misaligned -DHOW='"movaps 4(%0), %%xmm0"' clean
// case refused_privileged -DHOW='"invlpg (%0)"' alone
// case refused_table -DHOW='"lgdt (%0)"' alone
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>


static sigjmp_buf back;
static _Alignas(16) char memory[64];

static void on_signal(int number)
{
    siglongjmp(back, number);
}

int main(void)
{
    signal(SIGSEGV, on_signal);
    if (sigsetjmp(back, 1) == 0)
        __asm__ volatile(HOW ::"r"(memory) : "xmm0", "memory");
    else
        puts("refused");
    return 0;
}
