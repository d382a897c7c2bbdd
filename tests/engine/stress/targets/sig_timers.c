// timer_create with every kind of notification; values and recipients must be right.
#include "stress.h"

static _Atomic int by_signal, by_thread, to_thread;
static pid_t worker_tid;

static void on_signal(int s, siginfo_t *info, void *context) {
    SAME(info->si_code, SI_TIMER);
    SAME(info->si_value.sival_int, 4711);
    by_signal++;
}

static void on_worker(int s, siginfo_t *info, void *context) {
    SAME(stress_tid(), worker_tid);
    SAME(info->si_value.sival_int, 1234);
    to_thread++;
}

static void notified(union sigval value) {
    SAME(value.sival_int, 77);
    by_thread++;
}

static void *work(void *arg) {
    worker_tid = stress_tid();
    BARRIER();
    timer_t timer;
    struct sigevent event;
    memset(&event, 0, sizeof(event));
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = SIGRTMIN + 1;
    event.sigev_value.sival_int = 1234;
    event._sigev_un._tid = worker_tid;
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    struct itimerspec every = {{0, 300000}, {0, 300000}};
    CHECK(timer_settime(timer, 0, &every, NULL) == 0);
    uint64_t h = 1;
    while (to_thread < 100)
        h = stress_mix(h, 3);
    CHECK(timer_delete(timer) == 0);
    return NULL;
}

int main(void) {
    timer_t timer[3];
    struct sigevent event;
    struct itimerspec every = {{0, 300000}, {0, 300000}}, left;
    stress_handle(SIGRTMIN, on_signal, SA_RESTART);
    stress_handle(SIGRTMIN + 1, on_worker, SA_RESTART);

    memset(&event, 0, sizeof(event));
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGRTMIN;
    event.sigev_value.sival_int = 4711;
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer[0]) == 0);
    CHECK(timer_settime(timer[0], 0, &every, NULL) == 0);

    memset(&event, 0, sizeof(event));
    event.sigev_notify = SIGEV_THREAD;
    event.sigev_notify_function = notified;
    event.sigev_value.sival_int = 77;
    CHECK(timer_create(CLOCK_REALTIME, &event, &timer[1]) == 0);
    CHECK(timer_settime(timer[1], 0, &every, NULL) == 0);

    memset(&event, 0, sizeof(event));
    event.sigev_notify = SIGEV_NONE;
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer[2]) == 0);
    struct itimerspec far = {{0, 0}, {1000, 0}};
    CHECK(timer_settime(timer[2], 0, &far, NULL) == 0);
    CHECK(timer_gettime(timer[2], &left) == 0 && left.it_value.tv_sec >= 900);

    pthread_t worker = stress_thread(work, NULL);
    uint64_t h = 1;
    while (by_signal < 100 || by_thread < 20)
        h = stress_mix(h, 5);
    stress_join(worker);
    for (int i = 0; i < 3; i++)
        CHECK(timer_delete(timer[i]) == 0);
    CHECK(timer_gettime(timer[2], &left) == -1 && errno == EINVAL);
    puts("timers agree");
    return 0;
}
