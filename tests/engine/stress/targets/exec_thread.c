// exec from a thread that is not the first while others run: the process keeps its id, the others
// vanish, mask and ignored signals are inherited, handlers are not.
#include "stress.h"
#include <fcntl.h>
#include <signal.h>

static char **arguments;
static volatile int ready;

static void on_signal(int s, siginfo_t *info, void *context) {}

static void *busy(void *arg) {
    uint64_t h = 0;
    __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
    for (;;)
        h = stress_mix(h, 1);
    return NULL;
}

static void *blocked(void *arg) {
    __atomic_add_fetch(&ready, 1, __ATOMIC_SEQ_CST);
    for (;;)
        pause();
    return NULL;
}

static void *execute(void *arg) {
    while (ready < 4)
        stress_sleep_us(100);
    execv("/proc/self/exe", arguments);
    CHECK(!"exec failed");
    return NULL;
}

static void second(char **argv) {
    struct sigaction now;
    sigset_t mask;
    SAME(getpid(), atoi(argv[2]));
    SAME(stress_tid(), getpid());
    CHECK(sigaction(SIGUSR1, NULL, &now) == 0 && now.sa_handler == SIG_DFL);
    CHECK(sigaction(SIGHUP, NULL, &now) == 0 && now.sa_handler == SIG_IGN);
    CHECK(sigprocmask(SIG_SETMASK, NULL, &mask) == 0);
    CHECK(sigismember(&mask, SIGUSR2) == 1 && sigismember(&mask, SIGUSR1) == 0);
    sigset_t pending;
    CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGUSR2) == 1);
    CHECK(fcntl(20, F_GETFD) == 0 && fcntl(21, F_GETFD) == -1);
    stack_t stack;
    CHECK(sigaltstack(NULL, &stack) == 0 && stack.ss_flags == SS_DISABLE);
}

int main(int argc, char **argv) {
    setbuf(stdout, NULL);
    int generation = argc > 1 ? atoi(argv[1]) : 0;
    if (generation > 0)
        second(argv);
    printf("generation %d: %s %s\n", generation, argc > 3 ? argv[3] : "",
           getenv("STRESS_VALUE") ? getenv("STRESS_VALUE") : "none");
    if (generation == 5)
        return 23;
    char number[16], pid[16];
    snprintf(number, sizeof(number), "%d", generation + 1);
    snprintf(pid, sizeof(pid), "%d", getpid());
    char *next[] = {argv[0], number, pid, (char *)"argument with spaces\tand tab", NULL};
    arguments = next;
    setenv("STRESS_VALUE", number, 1);
    stress_handle(SIGUSR1, on_signal, 0);
    signal(SIGHUP, SIG_IGN);
    sigset_t block;
    sigemptyset(&block);
    sigaddset(&block, SIGUSR2);
    sigprocmask(SIG_BLOCK, &block, NULL);
    kill(getpid(), SIGUSR2);
    dup2(1, 20);
    dup3(1, 21, O_CLOEXEC);
    for (int i = 0; i < 2; i++) {
        stress_thread(busy, NULL);
        stress_thread(blocked, NULL);
    }
    stress_thread(execute, NULL);
    for (;;)
        pause();
}
