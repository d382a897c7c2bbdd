// Signals taken without handlers: sigpending, sigsuspend, sigwait, sigtimedwait, signalfd; masks of
// threads and their inheritance.
#include "stress.h"
#include <poll.h>
#include <sys/signalfd.h>

static volatile int handled;

static void on_signal(int s, siginfo_t *info, void *context) {
    handled++;
}

static void *send_many(void *arg) {
    for (int i = 0; i < 500; i++) {
        union sigval value = {.sival_int = i};
        CHECK(sigqueue(getpid(), SIGRTMIN + 3, value) == 0);
    }
    return NULL;
}

static void *check_mask(void *arg) {
    sigset_t now;
    sigprocmask(SIG_SETMASK, NULL, &now);
    return (void *)(long)(sigismember(&now, SIGUSR1) * 2 + sigismember(&now, SIGUSR2));
}

static void suspend(sigset_t *old) {
    for (int i = 0; i < 300; i++) {
        sigset_t pending, open = *old;
        handled = 0;
        CHECK(raise(SIGUSR1) == 0 && handled == 0);
        CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGUSR1) == 1);
        sigdelset(&open, SIGUSR1);
        CHECK(sigsuspend(&open) == -1 && errno == EINTR && handled == 1);
        CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGUSR1) == 0);
    }
}

int main(void) {
    sigset_t block, old, now;
    siginfo_t info;
    int s;
    sigemptyset(&block);
    sigaddset(&block, SIGUSR1);
    sigaddset(&block, SIGUSR2);
    sigaddset(&block, SIGRTMIN + 3);
    CHECK(sigprocmask(SIG_BLOCK, &block, &old) == 0);
    stress_handle(SIGUSR1, on_signal, 0);
    suspend(&old);
    puts("sigsuspend");

    CHECK(kill(getpid(), SIGUSR2) == 0);
    CHECK(sigwait(&block, &s) == 0 && s == SIGUSR2);
    pthread_t thread = stress_thread(send_many, NULL);
    for (int i = 0; i < 500; i++) {
        sigset_t one;
        sigemptyset(&one);
        sigaddset(&one, SIGRTMIN + 3);
        CHECK(sigwaitinfo(&one, &info) == SIGRTMIN + 3);
        SAME(info.si_value.sival_int, i);
        SAME(info.si_code, SI_QUEUE);
    }
    stress_join(thread);
    struct timespec soon = {0, 1000000};
    CHECK(sigtimedwait(&block, &info, &soon) == -1 && errno == EAGAIN);
    puts("sigwait");

    int fd = signalfd(-1, &block, SFD_NONBLOCK);
    struct signalfd_siginfo data;
    CHECK(fd >= 0 && read(fd, &data, sizeof(data)) == -1 && errno == EAGAIN);
    thread = stress_thread(send_many, NULL);
    for (unsigned i = 0; i < 500; i++) {
        struct pollfd p = {fd, POLLIN, 0};
        CHECK(poll(&p, 1, -1) == 1);
        SAME(read(fd, &data, sizeof(data)), sizeof(data));
        SAME(data.ssi_signo, SIGRTMIN + 3);
        SAME(data.ssi_int, i);
        SAME(data.ssi_pid, getpid());
    }
    stress_join(thread);
    puts("signalfd");

    SAME(stress_join(stress_thread(check_mask, NULL)), 3);
    CHECK(sigprocmask(SIG_UNBLOCK, &block, NULL) == 0);
    SAME(stress_join(stress_thread(check_mask, NULL)), 0);
    CHECK(sigprocmask(SIG_SETMASK, NULL, &now) == 0);
    // SIGKILL and SIGSTOP cannot be blocked; the kernel drops them from the mask.
    sigfillset(&block);
    CHECK(sigprocmask(SIG_SETMASK, &block, NULL) == 0 && sigprocmask(SIG_SETMASK, NULL, &now) == 0);
    for (s = 1; s < 65; s++)
        if (s != 32 && s != 33)
            putchar(sigismember(&now, s) ? '1' : '0');
    putchar('\n');
    CHECK(sigprocmask(77, &block, NULL) == -1 && errno == EINVAL);
    CHECK(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &block, NULL, 4) == -1 && errno == EINVAL);
    CHECK(syscall(SYS_rt_sigprocmask, SIG_BLOCK, (void *)8, NULL, 8) == -1 && errno == EFAULT);
    return 0;
}
