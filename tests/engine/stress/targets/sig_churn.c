// Signals to the process and to threads while threads start and end all the time: every thread's
// work is right, every signal sent to the process is handled by somebody, none is lost for good.
#include "stress.h"

static _Atomic long handled;
static volatile int stop;
static _Atomic uint64_t total;

static void on_signal(int s, siginfo_t *info, void *context) {
    handled++;
}

static void *storm(void *arg) {
    while (!stop) {
        kill(getpid(), SIGUSR1);
        stress_sleep_us(30);
    }
    return NULL;
}

static void *work(void *arg) {
    uint64_t h = (uint64_t)arg;
    for (int i = 0; i < 200; i++)
        h = stress_mix(h, (uint64_t)i);
    pthread_kill(pthread_self(), SIGUSR2);
    total += h & 0xffff;
    return (void *)h;
}

int main(void) {
    stress_handle(SIGUSR1, on_signal, SA_RESTART);
    stress_handle(SIGUSR2, on_signal, SA_RESTART);
    pthread_t stormer = stress_thread(storm, NULL);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < 600; i += 4) {
        pthread_t threads[4];
        for (uint64_t k = 0; k < 4; k++)
            threads[k] = stress_thread(work, (void *)(i + k));
        for (uint64_t k = 0; k < 4; k++) {
            pthread_kill(threads[k], SIGUSR1); // it may have ended already, but is not joined
            sum = stress_mix(sum, (uint64_t)stress_join(threads[k]));
        }
    }
    stop = 1;
    stress_join(stormer);
    CHECK(handled >= 600);
    sigset_t pending;
    CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGUSR1) == 0);
    printf("%016llx %llu\n", (unsigned long long)sum, (unsigned long long)total);
    return 0;
}
