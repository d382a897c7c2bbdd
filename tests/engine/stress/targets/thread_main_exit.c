// The first thread leaves with pthread_exit while the others go on; signals still work; the last
// one ends the process.
#include "stress.h"

static pthread_t first;
static volatile int handled;

static void on_signal(int s, siginfo_t *info, void *context) {
    handled++;
}

static void *work(void *arg) {
    stress_join(first);
    stress_handle(SIGUSR1, on_signal, 0);
    uint64_t h = 0;
    for (int i = 0; i < 100000; i++)
        h = stress_mix(h, 1);
    CHECK(getpid() != stress_tid());
    kill(getpid(), SIGUSR1);
    while (!handled)
        stress_sleep_us(50);
    pid_t pid = fork();
    if (pid == 0)
        _exit(4);
    SAME(stress_wait(pid), 4 << 8);
    printf("%016llx\n", (unsigned long long)h);
    return NULL;
}

static void *last(void *arg) {
    stress_join(*(pthread_t *)arg);
    puts("last");
    exit(21);
}

int main(void) {
    static pthread_t worker;
    first = pthread_self();
    worker = stress_thread(work, NULL);
    stress_thread(last, &worker);
    pthread_exit(NULL);
}
