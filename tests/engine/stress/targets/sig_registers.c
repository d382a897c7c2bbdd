// Timer signals interrupt an assembly loop that keeps known values in every general register and in
// the flags, and checks them in each round; the handler destroys all it can reach.
#include "stress.h"
#include <sys/time.h>

static volatile int ticks;
static volatile int stop;

static void on_tick(int s, siginfo_t *info, void *context) {
    ticks++;
    __asm__ volatile("mov $-1, %%rax; mov %%rax, %%rcx; mov %%rax, %%rdx; mov %%rax, %%rsi\n"
                     "mov %%rax, %%rdi; mov %%rax, %%r8; mov %%rax, %%r9; mov %%rax, %%r10\n"
                     "mov %%rax, %%r11; mov %%rax, %%rbx; mov %%rax, %%r12; mov %%rax, %%r13\n"
                     "mov %%rax, %%r14; mov %%rax, %%r15; add %%rax, %%rax" ::
                         : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "rbx",
                           "r12", "r13", "r14", "r15", "cc", "memory");
    if (ticks >= 400)
        stop = 1;
}

// Returns 0, or the number of the check that failed. The outer loop runs until *flag is set.
uint64_t register_loop(volatile int *flag);
__asm__(".text\n.globl register_loop\n.type register_loop, @function\nregister_loop:\n"
        "push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
        "movabs $0x1111111111111111, %rax; movabs $0x2222222222222222, %rbx\n"
        "movabs $0x3333333333333333, %rcx; movabs $0x4444444444444444, %rdx\n"
        "movabs $0x5555555555555555, %rsi; movabs $0x6666666666666666, %rbp\n"
        "movabs $0x7777777777777777, %r8; movabs $0x8888888888888888, %r9\n"
        "movabs $0x9999999999999999, %r10; movabs $0xaaaaaaaaaaaaaaaa, %r11\n"
        "movabs $0xbbbbbbbbbbbbbbbb, %r12; movabs $0xcccccccccccccccc, %r13\n"
        "movabs $0xdddddddddddddddd, %r14; movabs $0xeeeeeeeeeeeeeeee, %r15\n"
        "1: not %rax; not %rbx; not %rcx; not %rdx; not %rsi; not %rbp; not %r8; not %r9\n"
        "not %r10; not %r11; not %r12; not %r13; not %r14; not %r15\n"
        "not %rax; not %rbx; not %rcx; not %rdx; not %rsi; not %rbp; not %r8; not %r9\n"
        "not %r10; not %r11; not %r12; not %r13; not %r14; not %r15\n"
        // Red zone and flags: carry stays set over many instructions that do not touch flags.
        "mov %rax, -8(%rsp); mov %rbx, -64(%rsp); mov %r15, -120(%rsp)\n"
        "stc; mov %rax, %rax; mov %rbx, %rbx; mov %rcx, %rcx; lea 0(%rdx), %rdx\n"
        "jnc 99f; lea 0(%rsi), %rsi; mov %r8, %r8; jnc 99f; mov %r9, %r9; jnc 99f\n"
        "cmp %rax, -8(%rsp); jne 99f; cmp %rbx, -64(%rsp); jne 99f; cmp %r15, -120(%rsp); jne 99f\n"
        "push %rax; push %rbx; pop %rbx; pop %rax\n"
        ".macro expect reg value\npush %rax\nmovabs $\\value, %rax\ncmp %rax, \\reg\n"
        "pop %rax\njne 99f\n.endm\n"
        "push %rbx; movabs $0x1111111111111111, %rbx; cmp %rbx, %rax; pop %rbx; jne 99f\n"
        "expect %rbx 0x2222222222222222\nexpect %rcx 0x3333333333333333\n"
        "expect %rdx 0x4444444444444444\nexpect %rsi 0x5555555555555555\n"
        "expect %rbp 0x6666666666666666\nexpect %r8 0x7777777777777777\n"
        "expect %r9 0x8888888888888888\nexpect %r10 0x9999999999999999\n"
        "expect %r11 0xaaaaaaaaaaaaaaaa\nexpect %r12 0xbbbbbbbbbbbbbbbb\n"
        "expect %r13 0xcccccccccccccccc\nexpect %r14 0xdddddddddddddddd\n"
        "expect %r15 0xeeeeeeeeeeeeeeee\n"
        "std; mov %rax, %rax; mov %rbx, %rbx; pushf; cld; btl $10, (%rsp); lea 8(%rsp), %rsp\n"
        "jnc 99f\n"
        "cmpl $0, (%rdi); je 1b\n"
        "xor %eax, %eax; jmp 2f\n"
        "99: mov $1, %eax\n"
        "2: pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx; ret\n"
        ".size register_loop, .-register_loop\n");

int main(void) {
    stress_handle(SIGALRM, on_tick, SA_RESTART);
    struct itimerval every = {{0, 100}, {0, 100}};
    CHECK(setitimer(ITIMER_REAL, &every, NULL) == 0);
    SAME(register_loop(&stop), 0);
    CHECK(ticks >= 400);
    puts("registers kept");
    return 0;
}
