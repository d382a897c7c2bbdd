// System calls that concern whoever runs the program: limits, prctl, personality, fs and gs bases,
// rseq, seccomp, scheduling, the system-call interface itself.
#include "stress.h"
#include <asm/prctl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/utsname.h>

static void limits(void) {
    struct rlimit stack = {4 << 20, RLIM_INFINITY}, now;
    CHECK(getrlimit(RLIMIT_STACK, &now) == 0);
    stack.rlim_max = now.rlim_max;
    CHECK(setrlimit(RLIMIT_STACK, &stack) == 0 && getrlimit(RLIMIT_STACK, &now) == 0);
    printf("stack limit %ld\n", (long)now.rlim_cur);
    struct rlimit core = {0, 0};
    CHECK(prlimit(0, RLIMIT_CORE, &core, NULL) == 0);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit time = {1, 1};
        setrlimit(RLIMIT_CPU, &time);
        signal(SIGXCPU, SIG_DFL);
        for (;;)
            SPIN();
    }
    int status = stress_wait(pid);
    printf("over the CPU limit: %d\n", WTERMSIG(status) == SIGKILL || WTERMSIG(status) == SIGXCPU);
}

static void segments(void) {
    unsigned long fs = 0, gs = 0, self;
    CHECK(syscall(SYS_arch_prctl, ARCH_GET_FS, &fs) == 0);
    __asm__("mov %%fs:0, %0" : "=r"(self));
    printf("fs base %d\n", fs == self && fs == (unsigned long)pthread_self());
    static unsigned long area[4] = {1, 2, 3, 4};
    CHECK(syscall(SYS_arch_prctl, ARCH_SET_GS, area) == 0);
    CHECK(syscall(SYS_arch_prctl, ARCH_GET_GS, &gs) == 0 && gs == (unsigned long)area);
    unsigned long third;
    __asm__ volatile("mov %%gs:16, %0" : "=r"(third));
    printf("gs:16 %ld\n", (long)third);
    if (getauxval(AT_HWCAP2) & 2) {
        unsigned long by_instruction;
        __asm__ volatile("rdfsbase %0" : "=r"(by_instruction));
        CHECK(by_instruction == fs);
        __asm__ volatile("wrgsbase %0" ::"r"(area + 1));
        __asm__ volatile("mov %%gs:16, %0" : "=r"(third));
        CHECK(third == 4);
        __asm__ volatile("rdgsbase %0" : "=r"(by_instruction));
        CHECK(by_instruction == (unsigned long)(area + 1));
        // Another fs for a moment; no C in between.
        unsigned long seen;
        __asm__ volatile("wrfsbase %1; mov %%fs:8, %0; wrfsbase %2"
                         : "=&r"(seen)
                         : "r"(area), "r"(fs));
        SAME(seen, 2);
    }
    CHECK(errno == errno);
    CHECK(syscall(SYS_arch_prctl, ARCH_SET_FS, ~0ul) == -1 && errno == EPERM);
}

static volatile int handled;
static void on_sys(int s, siginfo_t *info, void *context) {
    ucontext_t *c = context;
    handled = info->si_syscall;
    c->uc_mcontext.gregs[REG_RAX] = 4242;
}

static void seccomp(void) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        stress_handle(SIGSYS, on_sys, 0);
        struct sock_filter code[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getuid, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {LENGTH(code), code};
        CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
        CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
        CHECK(syscall(SYS_getppid) == -1 && errno == EACCES);
        SAME(syscall(SYS_getuid), 4242);
        SAME(handled, SYS_getuid);
        _exit(8);
    }
    printf("seccomp %x\n", (unsigned)stress_wait(pid));
}

static void interface(void) {
    // All registers but rax, rcx and r11 survive a system call, and so do the vector registers.
    uint64_t in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[10];
    __asm__ volatile(
        "movdqu (%0), %%xmm0; movdqu (%0), %%xmm15; mov $0x77, %%ebx\n"
        "mov $0x88, %%r12d; mov $0x99, %%edi; mov $0xaa, %%r9d; stc\n"
        "mov $39, %%eax; syscall; mov %%rbx, (%1); mov %%r12, 8(%1); mov %%rdi, 16(%1)\n"
        "mov %%r9, 24(%1); setc 32(%1); movdqu %%xmm15, 40(%1); movdqu %%xmm0, 56(%1)"
        :
        : "r"(in), "S"(out)
        : "rax", "rcx", "r11", "rbx", "r12", "rdi", "r9", "memory", "cc", "xmm0", "xmm15");
    printf("kept %lx %lx %lx %lx carry %d vector %d\n", (long)out[0], (long)out[1], (long)out[2],
           (long)out[3], (int)(out[4] & 1),
           memcmp(out + 5, in, 16) == 0 && memcmp(out + 7, in, 16) == 0);
    uint64_t rcx, r11, next;
    __asm__ volatile("mov $39, %%eax; lea 1f(%%rip), %2; syscall\n1: mov %%rcx, %0; mov %%r11, %1"
                     : "=&r"(rcx), "=&r"(r11), "=&r"(next)
                     :
                     : "rax", "rcx", "r11", "memory", "cc");
    printf("rcx is the return address %d, r11 the flags %d\n", rcx == next, (r11 & 0x202) == 0x202);
    CHECK(syscall(9999) == -1 && errno == ENOSYS);
    CHECK(syscall(-1) == -1 && errno == ENOSYS);
}

int main(void) {
    limits();
    segments();
    seccomp();
    interface();
    char name[16] = "";
    CHECK(prctl(PR_SET_NAME, "a new name that is long") == 0 && prctl(PR_GET_NAME, name) == 0);
    puts(name);
    printf("personality %x dumpable %d pdeathsig %d\n", (unsigned)personality(0xffffffff),
           prctl(PR_GET_DUMPABLE), prctl(PR_SET_PDEATHSIG, 0));
    struct utsname uts;
    CHECK(uname(&uts) == 0);
    printf("%s %s\n", uts.sysname, uts.machine);
    unsigned cpu = 99;
    CHECK(getcpu(&cpu, NULL) == 0 && cpu < 1024 && sched_getcpu() >= 0);
    cpu_set_t set;
    CHECK(sched_getaffinity(0, sizeof(set), &set) == 0);
    int first = 0; // of those that it may have
    while (!CPU_ISSET(first, &set))
        first++;
    CPU_ZERO(&set);
    CPU_SET(first, &set);
    CHECK(sched_setaffinity(0, sizeof(set), &set) == 0);
    SAME(sched_getcpu(), first);
    struct timespec a, b;
    struct timeval c;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &a) == 0 && gettimeofday(&c, NULL) == 0);
    CHECK(clock_gettime(CLOCK_REALTIME, &b) == 0 && labs(b.tv_sec - c.tv_sec) < 10);
    CHECK(labs(time(NULL) - c.tv_sec) < 10);
    printf("vdso %d\n", getauxval(AT_SYSINFO_EHDR) != 0);
    return 0;
}
