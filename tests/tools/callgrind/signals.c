// Handlers that return: what they cost is not what they interrupt. One on a stack of its own.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define APART __attribute__((noinline))

static volatile int hits;

APART static void count(int times) {
    for (int i = 0; i < times; i++)
        hits++;
}

APART static void inner(int number) {
    count(number);
}

APART static void outer(int number) {
    count(1);
    if (hits < 200)
        raise(SIGUSR2);
    count(2);
}

APART static void work(int rounds, int number) {
    for (int i = 0; i < rounds; i++) {
        count(2);
        raise(number);
    }
}

int main(void) {
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    struct sigaction apart = {.sa_handler = outer, .sa_flags = SA_ONSTACK};
    signal(SIGUSR2, inner);
    work(3, SIGUSR2);
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &apart, NULL);
    work(5, SIGUSR1);
    count(4);
    return printf("%d\n", hits) < 0;
}
