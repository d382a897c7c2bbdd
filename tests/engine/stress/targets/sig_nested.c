// Handlers that interrupt handlers: SA_NODEFER recursion, masks of sa_mask, deep nesting of
// different signals, pending signals delivered when a handler returns.
#include "stress.h"

static volatile int depth, deepest, order[64], orders;

static void recurse(int s, siginfo_t *info, void *context) {
    depth++;
    if (depth > deepest)
        deepest = depth;
    if (depth < 50)
        raise(s);
    depth--;
}

static void chain(int s, siginfo_t *info, void *context) {
    order[orders++] = s;
    if (s < SIGRTMIN + 12)
        raise(s + 1);
    order[orders++] = -s;
}

static void masked(int s, siginfo_t *info, void *context) {
    order[orders++] = s;
    if (s == SIGUSR1) {
        raise(SIGUSR2); // held back by sa_mask
        raise(SIGUSR1); // held back because it is being handled
        sigset_t pending;
        sigpending(&pending);
        order[orders++] = sigismember(&pending, SIGUSR2) * 10 + sigismember(&pending, SIGUSR1);
        if (depth++ > 0)
            return;
    }
    order[orders++] = -s;
}

static void print(const char *what) {
    printf("%s:", what);
    for (int i = 0; i < orders; i++) {
        int n = order[i], s = n < 0 ? -n : n;
        if (s >= SIGRTMIN && s <= SIGRTMAX)
            printf(" %sR%d", n < 0 ? "-" : "", s - SIGRTMIN);
        else
            printf(" %d", n);
    }
    putchar('\n');
    orders = 0;
}

int main(void) {
    stress_handle(SIGUSR1, recurse, SA_NODEFER);
    for (int i = 0; i < 200; i++)
        raise(SIGUSR1);
    printf("deepest %d, now %d\n", deepest, depth);

    for (int s = SIGRTMIN; s <= SIGRTMIN + 12; s++)
        stress_handle(s, chain, 0);
    raise(SIGRTMIN);
    print("chain");

    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_sigaction = masked;
    action.sa_flags = SA_SIGINFO;
    CHECK(sigaction(SIGUSR2, &action, NULL) == 0);
    sigaddset(&action.sa_mask, SIGUSR2);
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    raise(SIGUSR1);
    print("masked");

    // Several blocked signals come at once, lowest number first, all before the call returns.
    sigset_t all, old;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &old);
    for (int s = SIGRTMIN; s <= SIGRTMIN + 12; s++)
        stress_handle(s, masked, 0);
    for (int s = SIGRTMIN + 12; s >= SIGRTMIN; s--)
        raise(s);
    SAME(orders, 0);
    sigprocmask(SIG_SETMASK, &old, NULL);
    SAME(orders, 26);
    print("unblocked");
    return 0;
}
