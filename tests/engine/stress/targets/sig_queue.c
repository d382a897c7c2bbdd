// Queued signals: values, order, coalescing of standard signals, codes and senders, signals to
// threads, and which thread gets a signal sent to the process.
#include "stress.h"

static volatile int got[4096], count, codes[16], plain;
static volatile pid_t receiver;

static void on_value(int s, siginfo_t *info, void *context) {
    got[count++] = (s - SIGRTMIN) * 1000 + info->si_value.sival_int;
    SAME(info->si_pid, getpid());
    SAME(info->si_uid, getuid());
}

static void on_plain(int s, siginfo_t *info, void *context) {
    receiver = stress_tid();
    codes[plain++ % 16] = info->si_code;
}

static volatile int hold = 1;
static volatile pid_t idle_tid;

static void *idle(void *arg) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    if (arg)
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    if (arg)
        idle_tid = stress_tid();
    while (hold)
        stress_sleep_us(200);
    return NULL;
}

int main(void) {
    sigset_t all, old;
    for (int s = SIGRTMIN; s < SIGRTMIN + 4; s++)
        stress_handle(s, on_value, 0);
    stress_handle(SIGUSR1, on_plain, 0);
    stress_handle(SIGUSR2, on_plain, 0);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &old);
    for (int i = 0; i < 400; i++) {
        union sigval value = {.sival_int = i};
        CHECK(sigqueue(getpid(), SIGRTMIN + i % 4, value) == 0);
    }
    for (int i = 0; i < 10; i++)
        CHECK(kill(getpid(), SIGUSR1) == 0);
    sigprocmask(SIG_SETMASK, &old, NULL);
    // Of the pending ones the kernel takes the lowest first, but it builds one frame on the other,
    // so the handlers of the last ones run first: only order within one signal is promised.
    uint64_t sums[4] = {0};
    int last[4] = {-1, -1, -1, -1}, disorder = 0;
    for (int i = 0; i < count; i++) {
        int v = got[i] % 1000, s = got[i] / 1000;
        disorder += v < last[s];
        last[s] = v;
        sums[s] += (uint64_t)v;
    }
    printf("SIGUSR1 handled %d\n", plain);
    printf("count %d sums %d %d %d %d disorder %d\n", count, (int)sums[0], (int)sums[1],
           (int)sums[2], (int)sums[3], disorder);

    plain = 0;
    raise(SIGUSR1);
    kill(getpid(), SIGUSR1);
    syscall(SYS_tkill, stress_tid(), SIGUSR1);
    siginfo_t info;
    memset(&info, 0, sizeof(info));
    info.si_code = SI_QUEUE;
    info.si_pid = 7;
    CHECK(syscall(SYS_rt_sigqueueinfo, getpid(), SIGUSR1, &info) == 0);
    info.si_code = SI_MESGQ;
    CHECK(syscall(SYS_rt_tgsigqueueinfo, getpid(), stress_tid(), SIGUSR1, &info) == 0);
    for (int i = 0; i < plain; i++)
        printf("code %d\n", codes[i]);
    CHECK(kill(getpid(), 0) == 0);
    CHECK(kill(getpid(), 65) == -1 && errno == EINVAL);
    CHECK(syscall(SYS_tgkill, getpid(), 1, SIGUSR1) == -1 && errno == ESRCH);

    // Every real-time signal belongs to the program, however it is sent.
    int outside = 0;
    for (int s = SIGRTMIN; s <= SIGRTMAX; s++) {
        stress_handle(s, on_value, 0);
        int before = count;
        union sigval value = {.sival_int = 0};
        CHECK(raise(s) == 0 && kill(getpid(), s) == 0 && sigqueue(getpid(), s, value) == 0);
        outside += count - before != 3;
    }
    printf("real-time signals lost %d\n", outside);

    // Only one thread has SIGUSR2 open.
    sigset_t two;
    sigemptyset(&two);
    sigaddset(&two, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &two, NULL);
    pthread_t threads[4];
    for (long i = 0; i < 4; i++)
        threads[i] = stress_thread(idle, (void *)(long)(i == 2));
    while (!idle_tid)
        stress_sleep_us(50);
    for (int i = 0; i < 100; i++) {
        receiver = 0;
        CHECK(kill(getpid(), SIGUSR2) == 0);
        while (!receiver)
            stress_sleep_us(20);
        SAME(receiver, idle_tid);
    }
    hold = 0;
    for (int i = 0; i < 4; i++)
        stress_join(threads[i]);
    puts("right thread");
    return 0;
}
