// sigreturn with a changed context: general registers, flags, stack pointer, instruction pointer,
// signal mask, xmm in the legacy area and ymm in the extended area take effect.
#include "stress.h"
#include <cpuid.h>

static volatile int mode, landed;
static unsigned char *other_stack;

static void landing(void) {
    landed++;
    _exit(landed == 1 && mode == 9 ? 0 : 4);
}

static void on_signal(int s, siginfo_t *info, void *context) {
    ucontext_t *c = context;
    greg_t *g = c->uc_mcontext.gregs;
    struct _libc_fpstate *fp = c->uc_mcontext.fpregs;
    switch (mode) {
    case 0:
        g[REG_RAX] = 0xa, g[REG_RBX] = 0xb, g[REG_RCX] = 0xc, g[REG_RDX] = 0xd;
        g[REG_RSI] = 0x51, g[REG_RDI] = 0xd1, g[REG_R8] = 8, g[REG_R9] = 9, g[REG_R10] = 10;
        g[REG_R11] = 11, g[REG_R12] = 12, g[REG_R13] = 13, g[REG_R14] = 14, g[REG_R15] = 15;
        g[REG_EFL] |= 0x8d5;
        g[REG_RIP] += 2;
        break;
    case 1:
        sigaddset(&c->uc_sigmask, SIGUSR2);
        break;
    case 2:
        fp->_xmm[3].element[0] = 0x11223344, fp->_xmm[3].element[3] = 0x55667788;
        fp->mxcsr = 0x5f80;
        fp->cwd = 0x0e7f;
        break;
    case 3: {
        unsigned eax, ebx, ecx, edx;
        __cpuid_count(0xd, 2, eax, ebx, ecx, edx);
        uint32_t *upper = (uint32_t *)((char *)fp + ebx);
        uint64_t *state = (uint64_t *)((char *)fp + 512);
        CHECK(((uint32_t *)fp)[116] == 0x46505853); // FP_XSTATE_MAGIC1
        upper[4 * 3] = 0xcafe, upper[4 * 3 + 3] = 0xbabe;
        *state |= 7;
        break;
    }
    case 9:
        g[REG_RIP] = (greg_t)landing;
        g[REG_RSP] = (greg_t)other_stack + 8 * PAGE - 8;
        break;
    }
}

static void general(void) {
    uint64_t r[15];
    mode = 0;
    __asm__ volatile("push %%rbp; mov %0, %%rbp; xor %%eax, %%eax; ud2\n"
                     "mov %%rax, (%%rbp); mov %%rbx, 8(%%rbp); mov %%rcx, 16(%%rbp)\n"
                     "mov %%rdx, 24(%%rbp); mov %%rsi, 32(%%rbp); mov %%rdi, 40(%%rbp)\n"
                     "mov %%r8, 48(%%rbp); mov %%r9, 56(%%rbp); mov %%r10, 64(%%rbp)\n"
                     "mov %%r11, 72(%%rbp); mov %%r12, 80(%%rbp); mov %%r13, 88(%%rbp)\n"
                     "mov %%r14, 96(%%rbp); mov %%r15, 104(%%rbp); pushf; popq 112(%%rbp)\n"
                     "pop %%rbp" ::"a"(r)
                     : "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
                       "r14", "r15", "cc", "memory");
    for (int i = 0; i < 14; i++)
        printf("%llx ", (unsigned long long)r[i]);
    printf("flags %llx\n", (unsigned long long)r[14] & 0x8d5);
}

static void mask_and_vectors(void) {
    sigset_t now;
    mode = 1;
    raise(SIGUSR1);
    CHECK(sigprocmask(SIG_SETMASK, NULL, &now) == 0);
    printf("SIGUSR2 blocked %d\n", sigismember(&now, SIGUSR2));
    mode = 2;
    uint32_t x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    unsigned mxcsr, normal = 0x1f80;
    unsigned short control;
    pid_t pid = getpid();
    __asm__ volatile("movdqu %0, %%xmm3; mov $62, %%eax; mov %3, %%edi; mov $10, %%esi; syscall\n"
                     "movdqu %%xmm3, %0; stmxcsr %1; fnstcw %2; fninit"
                     : "+m"(x), "=m"(mxcsr), "=m"(control)
                     : "r"(pid)
                     : "rax", "rdi", "rsi", "rcx", "r11", "xmm3", "memory");
    __asm__ volatile("ldmxcsr %0" ::"m"(normal));
    printf("xmm3 %x %x %x %x mxcsr %x control %x\n", x[0], x[1], x[2], x[3], mxcsr, control);
    if (!__builtin_cpu_supports("avx2"))
        return;
    mode = 3;
    __asm__ volatile("vmovdqu %0, %%ymm3; mov $62, %%eax; mov %1, %%edi; mov $10, %%esi; syscall\n"
                     "vmovdqu %%ymm3, %0; vzeroupper"
                     : "+m"(x)
                     : "r"(pid)
                     : "rax", "rdi", "rsi", "rcx", "r11", "xmm3", "memory");
    printf("ymm3 %x %x %x %x %x\n", x[0], x[4], x[5], x[6], x[7]);
}

int main(void) {
    stress_handle(SIGILL, on_signal, 0);
    stress_handle(SIGUSR1, on_signal, 0);
    general();
    mask_and_vectors();
    fflush(stdout);
    other_stack = stress_map(8 * PAGE, PROT_READ | PROT_WRITE);
    mode = 9;
    raise(SIGUSR1);
    return 5;
}
