// A traced child: stops at exec, registers and memory read and changed, system calls seen, signals
// suppressed.
#include "stress.h"
#include <sys/ptrace.h>
#include <sys/user.h>

static volatile long secret = 0x5ec4e7;

int main(void) {
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        raise(SIGUSR1); // would kill; the tracer swallows it
        _exit(secret == 0x600d ? 5 : 6);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    errno = 0;
    SAME(ptrace(PTRACE_PEEKDATA, pid, (void *)&secret, NULL), 0x5ec4e7);
    CHECK(ptrace(PTRACE_POKEDATA, pid, (void *)&secret, (void *)0x600d) == 0);
    CHECK(ptrace(PTRACE_CONT, pid, NULL, NULL) == 0);
    CHECK(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status) && WSTOPSIG(status) == SIGUSR1);
    CHECK(ptrace(PTRACE_CONT, pid, NULL, NULL) == 0);
    CHECK(waitpid(pid, &status, 0) == pid);
    printf("traced child %x\n", (unsigned)status);

    pid = fork();
    if (pid == 0)
        for (;;)
            pause();
    CHECK(ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0);
    CHECK(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) == 0);
    CHECK(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
    struct user_regs_struct regs;
    CHECK(ptrace(PTRACE_GETREGS, pid, NULL, &regs) == 0);
    CHECK(ptrace(PTRACE_DETACH, pid, NULL, NULL) == 0);
    CHECK(kill(pid, SIGKILL) == 0);
    printf("seized child %x\n", (unsigned)stress_wait(pid));
    return 0;
}
