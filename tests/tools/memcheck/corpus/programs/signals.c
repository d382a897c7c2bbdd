// Signals: errors in handlers, alternate stacks, handlers that leave by a jump, handlers of faults.
//
// case handler_undefined -DWAY=1
// case handler_invalid -DWAY=2
// case handler_alternate_stack -DWAY=3
// case handler_alternate_stack_heap -DWAY=4
// case handler_nested -DWAY=5
// case handler_leaves -DWAY=6
// case handler_of_fault -DWAY=7
// case handler_of_fault_address -DWAY=8
// case handler_of_divide -DWAY=9
// case handler_changes_nothing -DWAY=10 clean
// case handler_mallocs -DWAY=11
// case handler_below_stack -DWAY=12
// case handler_info_defined -DWAY=13 clean
// case handler_registers -DWAY=14 clean
// case handler_keeps_undefined -DWAY=15
// case handler_of_stack_overflow -DWAY=16
// case handler_in_thread -DWAY=17
// case handler_wait_info -DWAY=18 clean
// case handler_undefined_O2 -DWAY=1 -O2
// case handler_alternate_clang clang -DWAY=3
// case handler_timer -DWAY=19 clean
// case handler_origins -DWAY=1 --track-origins=yes
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

volatile int kept;
static char *block;
static sigjmp_buf back;
static volatile sig_atomic_t times;

static void set(int number, void (*function)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action = {.sa_sigaction = function, .sa_flags = SA_SIGINFO | flags};
    sigaction(number, &action, NULL);
}

static void undefined(int number, siginfo_t *info, void *context)
{
    int value[4];
    __asm__ volatile("" : : "r"(value) : "memory");
    if (value[2]) // bug
        kept = 1;
}

static void invalid(int number, siginfo_t *info, void *context)
{
    block[10] = 1; // bug
}

static void nested(int number, siginfo_t *info, void *context)
{
    if (times++ < 3)
        raise(number); // bug
    else
        undefined(number, info, context); // bug
}

static void leaves(int number, siginfo_t *info, void *context)
{
    siglongjmp(back, 1);
}

static void address(int number, siginfo_t *info, void *context)
{
    printf("%d %lx\n", info->si_code, (long)info->si_addr & 0xfff);
    siglongjmp(back, 1);
}

static void counts(int number, siginfo_t *info, void *context)
{
    times++;
}

static void mallocs(int number, siginfo_t *info, void *context)
{
    block = realloc(block, 99); // leak
    malloc(17); // leak
}

static void looks(int number, siginfo_t *info, void *context)
{
    if (info->si_signo == number && info->si_pid)
        kept = 1;
    ucontext_t *state = context;
    for (int i = 0; i < 17; i++)
        if (state->uc_mcontext.gregs[i] == 12345)
            kept = 2;
}

static int deep(int depth)
{
    volatile char frame[2000];
    frame[0] = depth;
    return deep(depth + 1) + frame[0]; // bug
}

static void *raises(void *unused)
{
    raise(SIGUSR1); // bug
    return NULL;
}

int main(void)
{
    static char stack[65536];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof(stack)};
    block = malloc(10);
#if WAY == 1
    set(SIGUSR1, undefined, 0);
    raise(SIGUSR1); // bug
#elif WAY == 2
    set(SIGUSR1, invalid, 0);
    raise(SIGUSR1); // bug
#elif WAY == 3
    sigaltstack(&alternate, NULL);
    set(SIGUSR1, undefined, SA_ONSTACK);
    raise(SIGUSR1); // bug
#elif WAY == 4
    alternate.ss_sp = malloc(sizeof(stack));
    sigaltstack(&alternate, NULL);
    set(SIGUSR1, undefined, SA_ONSTACK);
    raise(SIGUSR1); // bug
    raise(SIGUSR1);
    alternate.ss_flags = SS_DISABLE;
    sigaltstack(&alternate, NULL);
    free(alternate.ss_sp);
#elif WAY == 5
    set(SIGUSR1, nested, SA_NODEFER);
    raise(SIGUSR1); // bug
#elif WAY == 6
    set(SIGUSR1, leaves, 0);
    if (!sigsetjmp(back, 1))
        raise(SIGUSR1);
    undefined(0, NULL, NULL); // bug
#elif WAY == 7
    set(SIGSEGV, leaves, 0);
    if (!sigsetjmp(back, 1))
        *(volatile int *)0 = 1; // bug
    if (!sigsetjmp(back, 1))
        *(volatile int *)16 = 1; // bug
#elif WAY == 8
    set(SIGSEGV, address, 0);
    if (!sigsetjmp(back, 1))
        kept = *(volatile int *)0x1234; // bug
    if (!sigsetjmp(back, 1))
        *(volatile char *)"x" = 1; // bug
#elif WAY == 9
    set(SIGFPE, leaves, 0);
    if (!sigsetjmp(back, 1))
        kept = 1 / kept;
    block[12] = 1; // bug
#elif WAY == 10
    set(SIGUSR1, counts, 0);
    for (int i = 0; i < 200; i++)
        raise(SIGUSR1);
    if (times != 200)
        return 1;
#elif WAY == 11
    set(SIGUSR1, mallocs, 0);
    raise(SIGUSR1); // leak
    block[99] = 1; // bug
#elif WAY == 12
    set(SIGUSR1, counts, 0);
    raise(SIGUSR1);
    kept = *((volatile char *)__builtin_frame_address(0) - 900); // bug
#elif WAY == 13 || WAY == 14
    set(SIGUSR1, looks, 0);
    kill(getpid(), SIGUSR1);
#elif WAY == 15
    int value[4];
    __asm__ volatile("" : : "r"(value) : "memory");
    int carried = value[1];
    set(SIGUSR1, counts, 0);
    raise(SIGUSR1);
    if (carried) // bug
        kept = 1;
#elif WAY == 16
    sigaltstack(&alternate, NULL);
    set(SIGSEGV, leaves, SA_ONSTACK);
    struct rlimit limit = {300000, 300000};
    if (!sigsetjmp(back, 1))
        deep(1); // bug
    block[11] = 1; // bug
#elif WAY == 17
    pthread_t thread;
    set(SIGUSR1, undefined, 0);
    pthread_create(&thread, NULL, raises, NULL);
    pthread_join(thread, NULL);
#elif WAY == 18
    sigset_t wanted;
    siginfo_t info;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGUSR2);
    sigprocmask(SIG_BLOCK, &wanted, NULL);
    raise(SIGUSR2);
    if (sigwaitinfo(&wanted, &info) != SIGUSR2 || info.si_signo != SIGUSR2)
        return 1;
#elif WAY == 19
    struct itimerval often = {{0, 1000}, {0, 1000}};
    set(SIGALRM, counts, SA_RESTART);
    setitimer(ITIMER_REAL, &often, NULL);
    while (times < 20)
        kept += strlen(strcpy(block, "text"));
    often.it_value.tv_usec = 0;
    setitimer(ITIMER_REAL, &often, NULL);
#endif
    free(block);
    return 0;
}
