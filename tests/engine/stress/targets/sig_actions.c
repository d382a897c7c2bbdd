// Default actions as the parent sees them, sigaction's answers, SA_RESETHAND, SA_NOCLDWAIT,
// SIGCHLD's siginfo, raw sigaction fields.
#include "stress.h"
#include <sys/resource.h>

static volatile int runs, child_code, child_status;

static void on_signal(int s, siginfo_t *info, void *context) {
    runs++;
}
static void on_child(int s, siginfo_t *info, void *context) {
    child_code = info->si_code;
    child_status = info->si_status;
    runs++;
}

static void default_actions(void) {
    for (int s = 1; s < 65; s++) {
        if (s == SIGSTOP || s == SIGTSTP || s == SIGTTIN || s == SIGTTOU || s == 32 || s == 33)
            continue;
        pid_t pid = fork();
        if (pid == 0) {
            signal(s, SIG_DFL);
            kill(getpid(), s);
            _exit(99);
        }
        printf("%d:%x ", s, stress_wait(pid) & ~0x80);
    }
    putchar('\n');
}

struct raw_action {
    void *handler;
    unsigned long flags;
    void *restorer;
    unsigned long mask;
};

int main(void) {
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    fflush(stdout);
    default_actions();

    stress_handle(SIGUSR1, on_signal, SA_RESETHAND);
    raise(SIGUSR1);
    struct sigaction now;
    CHECK(sigaction(SIGUSR1, NULL, &now) == 0);
    printf("after SA_RESETHAND default %d, ran %d\n", now.sa_handler == SIG_DFL, runs);

    struct raw_action raw = {(void *)on_signal, SA_SIGINFO | 0x04000000, (void *)0x1234, 0xff00},
                      back;
    CHECK(syscall(SYS_rt_sigaction, SIGUSR2, &raw, NULL, 8) == 0);
    CHECK(syscall(SYS_rt_sigaction, SIGUSR2, NULL, &back, 8) == 0);
    printf("raw handler %d flags %lx restorer %d mask %lx\n", back.handler == raw.handler,
           back.flags, back.restorer == raw.restorer, back.mask);
    CHECK(sigaction(SIGKILL, &now, NULL) == -1 && errno == EINVAL);
    CHECK(syscall(SYS_rt_sigaction, SIGUSR2, NULL, &back, 16) == -1 && errno == EINVAL);
    CHECK(syscall(SYS_rt_sigaction, 65, NULL, &back, 8) == -1 && errno == EINVAL);

    runs = 0;
    stress_handle(SIGCHLD, on_child, SA_RESTART);
    pid_t pid = fork();
    if (pid == 0)
        _exit(42);
    SAME(stress_wait(pid), 42 << 8);
    while (runs < 1)
        stress_sleep_us(100);
    printf("child: code %d status %d\n", child_code, child_status);
    pid = fork();
    if (pid == 0)
        for (;;)
            pause();
    kill(pid, SIGKILL);
    SAME(stress_wait(pid), SIGKILL);
    while (runs < 2)
        stress_sleep_us(100);
    printf("child: code %d status %d\n", child_code, child_status);

    stress_handle(SIGCHLD, on_child, SA_NOCLDWAIT);
    pid = fork();
    if (pid == 0)
        _exit(1);
    CHECK(waitpid(pid, NULL, 0) == -1 && (errno == ECHILD || errno == EINTR));
    signal(SIGCHLD, SIG_IGN);
    pid = fork();
    if (pid == 0)
        _exit(1);
    CHECK(waitpid(pid, NULL, 0) == -1 && errno == ECHILD);
    puts("no zombies");
    fflush(stdout);
    // Die by a signal while others are handled: the status is the signal.
    signal(SIGTERM, SIG_DFL);
    raise(SIGTERM);
    return 1;
}
