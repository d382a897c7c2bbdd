// Syscall user dispatch: calls from outside of a range of code raise a signal.
#include <linux/prctl.h>
#include <sys/prctl.h>

#include "stress.h"

static volatile char selector;
static volatile int count;
static volatile long seen_number, seen_code, seen_arch, address_fits;

__attribute__((noinline)) static long call(long number, long argument) {
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(argument)
                     : "rcx", "r11", "memory");
    return result;
}

static void handler(int signal, siginfo_t *info, void *context) {
    ucontext_t *registers = context;
    selector = 0;
    count++;
    seen_code = info->si_code;
    seen_number = info->si_syscall;
    seen_arch = info->si_arch;
    uint64_t pc = (uint64_t)registers->uc_mcontext.gregs[REG_RIP];
    address_fits = (uint64_t)info->si_call_addr == pc;
    SAME(registers->uc_mcontext.gregs[REG_RAX], info->si_syscall);
    registers->uc_mcontext.gregs[REG_RAX] = 4711;
}

static int set(long mode, long start, long size, volatile char *where) {
    int result = prctl(PR_SET_SYSCALL_USER_DISPATCH, mode, start, size, where);
    return result ? errno : 0;
}

static void *other_thread(void *argument) {
    return (void *)call(SYS_getppid, 0);
}

int main(void) {
    stress_handle(SIGSYS, handler, 0);
    printf("wrong: %d %d %d\n", set(9, 0, 0, 0), set(0, 1, 0, 0), set(1, 4096, -4096l, &selector));
    CHECK(set(1, 0, 0, &selector) == 0);
    CHECK(call(SYS_getppid, 0) == getppid() && count == 0);
    for (int i = 0; i < 3; i++) {
        selector = 1;
        SAME(call(SYS_getpid, 0), 4711);
        CHECK(selector == 0);
        printf("%d: number %ld, code %ld, arch %lx, address %ld\n", count, seen_number, seen_code,
               seen_arch, address_fits);
    }
    // Numbers that do not exist, too.
    selector = 1;
    SAME(call(-2, 0), 4711);
    selector = 1;
    SAME(call(100000, 0), 4711);
    printf("%d: number %ld\n", count, seen_number);
    // Threads and children do not inherit it.
    pthread_t thread = stress_thread(other_thread, NULL);
    CHECK((long)stress_join(thread) == getppid());
    int child = fork();
    if (child == 0) {
        selector = 1;
        _exit(call(SYS_getpid, 0) == 4711);
    }
    printf("child: %x\n", stress_wait(child));
    // A range whose calls pass.
    CHECK(set(1, (long)call, 64, &selector) == 0);
    selector = 1;
    long pid = call(SYS_getpid, 0);
    selector = 0;
    CHECK(pid == getpid());
    CHECK(set(0, 0, 0, 0) == 0);
    selector = 1;
    CHECK(call(SYS_getpid, 0) == getpid());
    return 0;
}
