// longjmp out of deep calls, again and again.
#include <setjmp.h>
#include <stdio.h>

#define APART __attribute__((noinline))

static jmp_buf outer, inner;

APART static void dive(int depth) {
    if (depth == 0)
        longjmp(outer, 1);
    if (depth < 100)
        dive(depth - 1);
    __asm__ volatile("");
}

APART static int work(int x) {
    return x * 3;
}

APART static int attempt(int depth) {
    volatile int done = work(depth);
    if (setjmp(inner) == 0) {
        if (depth & 1)
            longjmp(inner, 2);
        dive(depth);
    }
    return done + work(2);
}

int main(void) {
    volatile int sum = 0;
    for (volatile int i = 0; i < 8; i++) {
        if (setjmp(outer) == 0)
            sum += attempt(i);
        else
            sum += work(i);
    }
    return printf("%d\n", sum) < 0;
}
