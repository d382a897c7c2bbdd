// Signal handlers that allocate while the program does nothing but allocate, some of which leave by
// siglongjmp. They run only while the program itself is not inside the allocator.
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

static volatile sig_atomic_t inside, fired;
static sigjmp_buf back;
static void *volatile block;

static void handler(int signal) {
    if (inside)
        return;
    fired++;
    inside = 1;
    free(malloc(64));
    inside = 0;
    if (fired % 3 == 0)
        siglongjmp(back, 1);
}

int main(void) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    static char other[65536];
    stack_t stack = {.ss_sp = other, .ss_size = sizeof other};
    sigaltstack(&stack, NULL);
    sigaction(SIGALRM, &action, NULL);
    struct itimerval timer = {{0, 500}, {0, 500}};
    setitimer(ITIMER_REAL, &timer, NULL);
    sigsetjmp(back, 1);
    while (fired < 300) {
        inside = 1;
        block = malloc(100);
        inside = 0;
        for (volatile int i = 0; i < 1000; i++)
            ;
        inside = 1;
        free(block);
        inside = 0;
    }
    return 0;
}
