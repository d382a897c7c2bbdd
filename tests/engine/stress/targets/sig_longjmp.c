// siglongjmp out of handlers, 10,000 times: from raise, from faults, from timers.
#include "stress.h"
#include <setjmp.h>
#include <sys/time.h>

static sigjmp_buf jump;
static volatile int from_raise, from_fault, from_timer, armed;

static void on_raise(int s, siginfo_t *info, void *context) {
    from_raise++;
    siglongjmp(jump, from_raise);
}

static void on_fault(int s, siginfo_t *info, void *context) {
    from_fault++;
    siglongjmp(jump, 2);
}

static void on_timer(int s, siginfo_t *info, void *context) {
    if (armed) {
        armed = 0;
        from_timer++;
        siglongjmp(jump, 3);
    }
}

int main(void) {
    stress_handle(SIGUSR1, on_raise, 0);
    stress_handle(SIGSEGV, on_fault, 0);
    stress_handle(SIGALRM, on_timer, 0);
    for (volatile int i = 0; i < 10000; i++) {
        int r = sigsetjmp(jump, 1);
        if (r == 0)
            raise(SIGUSR1);
        else
            SAME(r, from_raise);
    }
    for (volatile int i = 0; i < 10000; i++)
        if (sigsetjmp(jump, 1) == 0)
            *(volatile int *)(uintptr_t)(8 + i % 64) = 1;
    struct itimerval every = {{0, 100}, {0, 100}};
    setitimer(ITIMER_REAL, &every, NULL);
    volatile uint64_t h = 0;
    while (from_timer < 500) {
        if (sigsetjmp(jump, 1) == 0) {
            armed = 1;
            for (;;)
                h = stress_mix(h, 1);
        }
    }
    sigset_t now;
    sigprocmask(SIG_SETMASK, NULL, &now);
    printf("%d %d %d blocked %d\n", from_raise, from_fault, from_timer,
           sigismember(&now, SIGALRM) + sigismember(&now, SIGSEGV));
    return 0;
}
