// Alternate signal stacks: where handlers run, what sigaltstack reports inside them, stack overflow
// in the main thread and in others recovered with siglongjmp, SS_AUTODISARM.
#include "stress.h"
#include <setjmp.h>

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1u << 31)
#endif

static sigjmp_buf jump;
static __thread sigjmp_buf thread_jump;
static __thread char *alternate;
static volatile int on_it, flags_inside, overflows, change_error;
enum { SIZE = 64 * 1024 };

static void on_signal(int s, siginfo_t *info, void *context) {
    char here;
    stack_t now;
    on_it = &here >= alternate && &here < alternate + SIZE;
    CHECK(sigaltstack(NULL, &now) == 0);
    flags_inside = (int)now.ss_flags;
    stack_t other = {.ss_sp = alternate, .ss_size = SIZE};
    change_error = sigaltstack(&other, NULL) == 0 ? 0 : errno;
}

static void on_overflow(int s, siginfo_t *info, void *context) {
    char here;
    CHECK(&here >= alternate && &here < alternate + SIZE);
    overflows++;
    siglongjmp(jump, 1);
}

static void on_thread_overflow(int s, siginfo_t *info, void *context) {
    char here;
    CHECK(&here >= alternate && &here < alternate + SIZE);
    siglongjmp(thread_jump, 1);
}

static NOINLINE int dig(int n) {
    volatile char hole[2000];
    hole[0] = hole[1999] = (char)n;
    return dig(n + 1) + hole[0];
}

static void use_stack(unsigned flags) {
    if (!alternate)
        alternate = (char *)stress_map(SIZE, PROT_READ | PROT_WRITE);
    stack_t stack = {.ss_sp = alternate, .ss_size = SIZE, .ss_flags = (int)flags};
    CHECK(sigaltstack(&stack, NULL) == 0);
}

static void *thread_overflow(void *arg) {
    use_stack(0);
    for (volatile int i = 0; i < 5; i++)
        if (sigsetjmp(thread_jump, 1) == 0)
            dig(0);
    return (void *)1;
}

static void *no_stack(void *arg) {
    stack_t now;
    CHECK(sigaltstack(NULL, &now) == 0);
    return (void *)(long)now.ss_flags;
}

int main(void) {
    stack_t now;
    CHECK(sigaltstack(NULL, &now) == 0 && now.ss_flags == SS_DISABLE);
    use_stack(0);
    stress_handle(SIGUSR1, on_signal, SA_ONSTACK);
    raise(SIGUSR1);
    printf("on it %d flags %d change %d\n", on_it, flags_inside, change_error);
    CHECK(sigaltstack(NULL, &now) == 0);
    printf("outside: flags %d same %d size %zu\n", now.ss_flags, now.ss_sp == alternate,
           now.ss_size);
    stress_handle(SIGUSR1, on_signal, 0);
    raise(SIGUSR1);
    printf("without SA_ONSTACK: on it %d flags %d\n", on_it, flags_inside);

    use_stack(SS_AUTODISARM);
    stress_handle(SIGUSR1, on_signal, SA_ONSTACK);
    raise(SIGUSR1);
    printf("autodisarm: on it %d flags %d change %d\n", on_it, flags_inside, change_error);
    CHECK(sigaltstack(NULL, &now) == 0);
    printf("after autodisarm: flags %x\n", (unsigned)now.ss_flags);

    stack_t small = {.ss_sp = alternate, .ss_size = 100};
    CHECK(sigaltstack(&small, NULL) == -1 && errno == ENOMEM);
    use_stack(0);
    stress_handle(SIGSEGV, on_overflow, SA_ONSTACK);
    for (volatile int i = 0; i < 20; i++)
        if (sigsetjmp(jump, 1) == 0)
            dig(0);
    printf("%d overflows\n", overflows);

    stress_handle(SIGSEGV, on_thread_overflow, SA_ONSTACK);
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        threads[i] = stress_thread(thread_overflow, NULL);
    long done = 0;
    for (int i = 0; i < 8; i++)
        done += (long)stress_join(threads[i]);
    printf("%ld threads\n", done);
    printf("new thread: flags %ld\n", (long)stress_join(stress_thread(no_stack, NULL)));
    return 0;
}
