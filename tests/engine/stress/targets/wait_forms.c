// wait4 with rusage, waitid, WNOHANG, WNOWAIT, exit codes of every kind, subreaper.
#include "stress.h"
#include <sys/prctl.h>
#include <sys/resource.h>

static void burn(void) {
    struct rusage use;
    uint64_t h = 0;
    do {
        for (int i = 0; i < 10000; i++)
            h = stress_mix(h, 1);
        getrusage(RUSAGE_SELF, &use);
    } while (use.ru_utime.tv_usec < 20000 && use.ru_utime.tv_sec == 0);
}

int main(void) {
    int status;
    struct rusage use;
    pid_t pid = fork();
    if (pid == 0) {
        burn();
        _exit(3);
    }
    CHECK(wait4(pid, &status, 0, &use) == pid);
    printf("%x burnt %d\n", (unsigned)status, use.ru_utime.tv_usec >= 20000 || use.ru_utime.tv_sec);

    int fds[2];
    char byte;
    CHECK(pipe(fds) == 0);
    pid = fork();
    if (pid == 0) {
        close(fds[1]);
        _exit(read(fds[0], &byte, 1) == 0 ? 4 : 5);
    }
    CHECK(waitpid(pid, &status, WNOHANG) == 0);
    close(fds[1]);
    siginfo_t info;
    CHECK(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0);
    printf("waitid %d %d %d\n", info.si_signo, info.si_code, info.si_status);
    CHECK(waitid(P_ALL, 0, &info, WEXITED) == 0 && info.si_pid == pid);

    for (int code = 0; code < 256; code += 51) {
        pid = fork();
        if (pid == 0)
            exit(code);
        printf("exit %d: %x\n", code, (unsigned)stress_wait(pid));
    }
    fflush(stdout);
    pid = fork();
    if (pid == 0)
        abort();
    printf("abort %x\n", (unsigned)stress_wait(pid) & 0x7f);

    // A grandchild whose parent dies comes to the subreaper.
    CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        if (fork() == 0) {
            stress_sleep_us(2000);
            _exit(66);
        }
        _exit(0);
    }
    SAME(stress_wait(pid), 0);
    CHECK(wait(&status) > 0);
    printf("adopted %x\n", (unsigned)status);
    CHECK(wait(&status) == -1 && errno == ECHILD);
    return 0;
}
