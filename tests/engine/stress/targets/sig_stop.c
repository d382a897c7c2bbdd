// SIGSTOP, SIGCONT and process groups as job control uses them.
#include "stress.h"

static volatile int continued, released;

static void on_continue(int s, siginfo_t *info, void *context) {
    continued++;
}

static void on_release(int s, siginfo_t *info, void *context) {
    released++;
}

static void *spin(void *arg) {
    for (;;)
        SPIN();
    return NULL;
}

int main(void) {
    int status;
    for (int i = 0; i < 10; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            stress_handle(SIGCONT, on_continue, 0);
            stress_handle(SIGUSR1, on_release, 0);
            if (i % 2)
                stress_thread(spin, NULL);
            raise(SIGSTOP);
            while (!continued || !released)
                stress_sleep_us(100);
            _exit(7);
        }
        CHECK(waitpid(pid, &status, WUNTRACED) == pid);
        CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
        CHECK(waitpid(pid, &status, WNOHANG | WUNTRACED) == 0);
        CHECK(kill(pid, SIGCONT) == 0);
        CHECK(waitpid(pid, &status, WCONTINUED) == pid && WIFCONTINUED(status));
        CHECK(kill(pid, SIGUSR1) == 0);
        CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7);
    }
    puts("stopped and continued");
    // A stopped child dies of SIGKILL; a group is signalled as one.
    pid_t group = 0, members[5];
    for (int i = 0; i < 5; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            setpgid(0, group);
            for (;;)
                pause();
        }
        setpgid(pid, group);
        if (!group)
            group = pid;
        members[i] = pid;
        SAME(getpgid(pid), group);
    }
    CHECK(kill(members[0], SIGSTOP) == 0);
    CHECK(waitpid(members[0], &status, WUNTRACED) == members[0] && WIFSTOPPED(status));
    CHECK(kill(-group, SIGTERM) == 0);
    CHECK(kill(members[0], SIGCONT) == 0);
    for (int i = 0; i < 5; i++)
        SAME(stress_wait(members[i]), SIGTERM);
    puts("group ended");
    pid_t pid = fork();
    if (pid == 0) {
        CHECK(setsid() == getpid());
        CHECK(getpgrp() == getpid() && getsid(0) == getpid());
        _exit(0);
    }
    SAME(stress_wait(pid), 0);
    return 0;
}
