// setjmp/longjmp in loops, between frames, out of deep recursion, and in several threads at once.
#include "stress.h"
#include <setjmp.h>

static NOINLINE void dive(jmp_buf jump, int depth, int value) {
    volatile char frame[100];
    frame[depth % 100] = (char)depth;
    if (depth == 0)
        longjmp(jump, value);
    dive(jump, depth - 1, value);
    frame[0]++;
}

static void *work(void *arg) {
    jmp_buf jump;
    volatile uint64_t h = 0;
    for (volatile int i = 1; i <= 2000; i++) {
        int value = setjmp(jump);
        if (value == 0)
            dive(jump, i % 50, i);
        h = stress_mix(h, (uint64_t)value);
    }
    return (void *)h;
}

int main(void) {
    jmp_buf jump;
    volatile int count = 0;
    for (int round = 0; round < 5; round++)
        if (setjmp(jump) == 0)
            dive(jump, 20000, 1);
        else
            count++;
    printf("out of deep recursion %d\n", count);
    count = 0;
    int value = setjmp(jump);
    if (value < 10000) {
        count++;
        longjmp(jump, value + 1);
    }
    printf("same frame %d\n", count);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        threads[i] = stress_thread(work, NULL);
    for (int i = 0; i < 4; i++)
        printf("%016llx\n", (unsigned long long)stress_join(threads[i]));
    return 0;
}
