// SIGFPE, SIGILL, SIGTRAP and SIGBUS with code, address, trap number and rip.
#include "stress.h"
#include <fcntl.h>

// The address is that of the instruction unless there is another.
static void *volatile resume, *volatile expected_rip, *volatile expected_address;
static volatile int seen_signal, seen_code, count;
static volatile long seen_trap, seen_error, rip_distance, address_distance;

static void on_fault(int s, siginfo_t *info, void *context) {
    ucontext_t *c = context;
    count++;
    seen_signal = s;
    seen_code = info->si_code;
    seen_trap = c->uc_mcontext.gregs[REG_TRAPNO];
    seen_error = c->uc_mcontext.gregs[REG_ERR];
    rip_distance = c->uc_mcontext.gregs[REG_RIP] - (greg_t)expected_rip;
    address_distance =
        (char *)info->si_addr - (char *)(expected_address ? expected_address : expected_rip);
    c->uc_mcontext.gregs[REG_RIP] = (greg_t)resume;
}

#define RAISE(name, setup, instruction)                                                            \
    do {                                                                                           \
        __asm__ volatile("lea 2f(%%rip), %%rax; mov %%rax, %0\n"                                   \
                         "lea 1f(%%rip), %%rax; mov %%rax, %1\n" setup "\n"                        \
                         "1: " instruction "\n2:"                                                  \
                         : "=m"(resume), "=m"(expected_rip)                                        \
                         :                                                                         \
                         : "rax", "rcx", "rdx", "rbx", "cc", "memory", "xmm0", "xmm1");            \
        report(name);                                                                              \
    } while (0)

static void report(const char *name) {
    if (address_distance < -100000 || address_distance > 100000)
        address_distance = -1;
    printf("%s: signal %d code %d trap %ld error %ld rip %+ld address %+ld\n", name, seen_signal,
           seen_code, seen_trap, seen_error, rip_distance, address_distance);
}

static void arithmetic(void) {
    RAISE("divide by zero", "mov $7, %%eax; cltd; xor %%ecx, %%ecx", "idiv %%ecx");
    RAISE("divide overflow", "mov $0x80000000, %%eax; cltd; mov $-1, %%ecx", "idiv %%ecx");
    RAISE("unsigned overflow", "mov $5, %%edx; xor %%eax, %%eax; mov $5, %%ecx", "div %%ecx");
    unsigned mxcsr = 0x1f80 & ~0x200u, normal = 0x1f80;
    __asm__ volatile("ldmxcsr %0" ::"m"(mxcsr));
    RAISE("sse divide", "mov $1, %%eax; cvtsi2sd %%eax, %%xmm0; xorpd %%xmm1, %%xmm1",
          "divsd %%xmm1, %%xmm0");
    __asm__ volatile("ldmxcsr %0" ::"m"(normal));
    __asm__ volatile("ldmxcsr %0" ::"m"(normal));
    unsigned short control = 0x37f & ~4;
    __asm__ volatile("fninit; fldcw %0" ::"m"(control));
    RAISE("x87 divide", "fld1; fldz; fdivrp", "fwait");
    __asm__ volatile("fninit");
}

static void instructions(void) {
    RAISE("ud2", "", "ud2");
    RAISE("ud2 in a block", "mov $3, %%ecx; add $4, %%ecx", "ud2");
    RAISE("undefined opcode", "", ".byte 0x0f, 0xff, 0xc0");
    RAISE("invalid in 64 bit", "", ".byte 0x06");
    RAISE("lock without memory", "", ".byte 0xf0, 0x90");
    RAISE("int3", "", "int3");
    RAISE("int 3, two bytes", "", ".byte 0xcd, 0x03");
    RAISE("int 0x42", "", "int $0x42");
    RAISE("in", "", "in $0x42, %%al");
    RAISE("cli", "", "cli");
    RAISE("mov cr0", "", "mov %%cr0, %%rax");
    RAISE("rdmsr", "", "rdmsr");
}

static void bus(void) {
    int fd = open("/tmp", O_TMPFILE | O_RDWR, 0600);
    CHECK(fd >= 0 && ftruncate(fd, 3 * PAGE) == 0);
    unsigned char *p = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(p != MAP_FAILED);
    p[2 * PAGE] = 1;
    CHECK(ftruncate(fd, PAGE) == 0);
    unsigned char *at = p + 2 * PAGE + 5;
    uint64_t value;
    expected_address = at;
    __asm__ volatile("lea 2f(%%rip), %%rax; mov %%rax, %1; lea 1f(%%rip), %%rax; mov %%rax, %2\n"
                     "1: movzbl (%3), %%eax\n2: mov %%rax, %0"
                     : "=r"(value), "=m"(resume), "=m"(expected_rip)
                     : "r"(at)
                     : "rax", "memory");
    report("beyond the end of the file");
    CHECK(p[0] == 0);
    // The same in a kernel call is an error code, not a signal.
    int fds[2], before = count;
    CHECK(pipe(fds) == 0);
    CHECK(write(fds[1], at, 1) == -1 && errno == EFAULT);
    CHECK(write(fds[1], (void *)16, 1) == -1 && errno == EFAULT);
    SAME(count, before);
}

int main(void) {
    static const int signals[] = {SIGFPE, SIGILL, SIGTRAP, SIGBUS, SIGSEGV};
    for (size_t i = 0; i < LENGTH(signals); i++)
        stress_handle(signals[i], on_fault, 0);
    arithmetic();
    instructions();
    bus();
    printf("%d faults\n", count);
    return 0;
}
