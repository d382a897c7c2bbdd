// The process ends in a signal handler, on a stack of its own.
#include <signal.h>

#include "target.h"

static void end(int number) {
    void *volatile here = calloc(20, 8);
    calloc(21, 8);
    (void)here;
    _exit(0);
}
int main(void) {
    static char stack[1 << 16];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = end, .sa_flags = SA_ONSTACK};
    void *volatile here = calloc(10, 8);
    sigaltstack(&alternate, NULL);
    sigaction(SIGUSR1, &action, NULL);
    wipe();
    kill(getpid(), SIGUSR1);
    return here == NULL;
}
