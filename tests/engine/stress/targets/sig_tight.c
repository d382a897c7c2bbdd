// Loops that never leave by themselves, each ended by a handler that moves rip behind it: an
// asynchronous signal must get through wherever the program spins.
#include "stress.h"
#include <sys/time.h>

static void *volatile escape;
static volatile int spins, hits;

static void on_tick(int s, siginfo_t *info, void *context) {
    ucontext_t *c = context;
    // Let it spin a while: several ticks find it in the loop.
    if (!escape || ++hits < 4)
        return;
    hits = 0;
    c->uc_mcontext.gregs[REG_RIP] = (greg_t)escape;
    c->uc_mcontext.gregs[REG_RSP] = c->uc_mcontext.gregs[REG_R15];
    escape = NULL;
    spins++;
}

#define SPIN_UNTIL(name, loop)                                                                     \
    do {                                                                                           \
        __asm__ volatile("mov %%rsp, %%r15; sub $4096, %%rsp\n"                                    \
                         "lea 9f(%%rip), %%rax; mov %%rax, %0\n" loop "\n9:"                       \
                         : "=m"(escape)                                                            \
                         :                                                                         \
                         : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r15", "cc", "memory"); \
        puts(name);                                                                                \
    } while (0)

int main(void) {
    stress_handle(SIGALRM, on_tick, 0);
    struct itimerval every = {{0, 300}, {0, 300}};
    CHECK(setitimer(ITIMER_REAL, &every, NULL) == 0);
    for (int round = 0; round < 3; round++) {
        SPIN_UNTIL("jump to itself", "1: jmp 1b");
        SPIN_UNTIL("two jumps", "1: jmp 2f; nop; 2: jmp 1b");
        SPIN_UNTIL("conditional", "1: cmp %%eax, %%eax; je 1b; ud2");
        SPIN_UNTIL("pause", "1: pause; jmp 1b");
        SPIN_UNTIL("indirect", "lea 1f(%%rip), %%rbx; 1: jmp *%%rbx");
        SPIN_UNTIL("indirect, two", "lea 1f(%%rip), %%rbx; lea 2f(%%rip), %%rcx\n"
                                    "1: jmp *%%rcx; nop; 2: jmp *%%rbx");
        SPIN_UNTIL("call and return", "1: call 2f; jmp 1b; 2: ret");
        SPIN_UNTIL("call through pointer", "lea 2f(%%rip), %%rbx; 1: call *%%rbx; jmp 1b; 2: ret");
        SPIN_UNTIL("push and return", "lea 1f(%%rip), %%rbx; 1: push %%rbx; ret");
        SPIN_UNTIL("loop instruction", "1: mov $2, %%ecx; 2: loop 2b; jmp 1b");
        SPIN_UNTIL("jrcxz", "xor %%ecx, %%ecx; 1: jrcxz 1b; ud2");
        SPIN_UNTIL("system calls", "1: mov $39, %%eax; syscall; jmp 1b");
        SPIN_UNTIL("counting",
                   "xor %%edx, %%edx; 1: inc %%rdx; mov %%rdx, %%rbx; xor %%rdx, %%rbx\n"
                   "jz 1b; ud2");
        SPIN_UNTIL("string", "1: lea (%%rsp), %%rdi; mov $512, %%ecx; xor %%eax, %%eax; cld\n"
                             "rep stosq; jmp 1b");
        SPIN_UNTIL("long block", "1: .rept 500; add $1, %%rdx; .endr; jmp 1b");
    }
    printf("%d loops left\n", spins);
    return 0;
}
