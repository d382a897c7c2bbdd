#include "base/guard.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>

static const int guarded_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGABRT};
enum { GUARDED = sizeof guarded_signals / sizeof *guarded_signals };

static _Thread_local sigjmp_buf *way_out;
/* Threads may be in guards at the same time: the first one in changes the handlers, the last one
 * out restores them. */
static pthread_mutex_t handlers = PTHREAD_MUTEX_INITIALIZER;
static unsigned inside;
static struct sigaction before[GUARDED];

/*
 * A signal on another thread is not ours: the handler of before takes over, and a fault that was
 * not sent by another process happens again as soon as this one returns.
 */
static void on_signal(int number, siginfo_t *info, void *context) {
    (void)info;
    (void)context;
    if (way_out)
        siglongjmp(*way_out, 1);
    for (size_t i = 0; i < GUARDED; i++)
        if (guarded_signals[i] == number)
            sigaction(number, &before[i], NULL);
}

// Within another: the handlers are there already.
static bool run_nested(void (*work)(void *context), void *context) {
    sigjmp_buf here;
    sigjmp_buf *outer = way_out;
    volatile bool whole = false;
    if (!sigsetjmp(here, 0)) {
        way_out = &here;
        work(context);
        whole = true;
    }
    way_out = outer;
    return whole;
}

static void enter(const struct sigaction *action) {
    pthread_mutex_lock(&handlers);
    for (size_t i = 0; !inside && i < GUARDED; i++)
        sigaction(guarded_signals[i], action, &before[i]);
    inside++;
    pthread_mutex_unlock(&handlers);
}

static void leave(void) {
    pthread_mutex_lock(&handlers);
    inside--;
    for (size_t i = 0; !inside && i < GUARDED; i++)
        sigaction(guarded_signals[i], &before[i], NULL);
    pthread_mutex_unlock(&handlers);
}

bool guard_run(void (*work)(void *context), void *context) {
    if (way_out)
        return run_nested(work, context);
    sigjmp_buf here;
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigemptyset(&action.sa_mask);
    enter(&action);
    bool whole = false;
    if (!sigsetjmp(here, 1)) {
        way_out = &here;
        work(context);
        whole = true;
    }
    way_out = NULL;
    leave();
    return whole;
}

_Noreturn void guard_give_up(void) {
    if (way_out)
        siglongjmp(*way_out, 1);
    abort();
}
