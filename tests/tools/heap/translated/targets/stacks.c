/* Stacks that grow and fall: by recursion, by alloca, with the heap growing beside them. Nothing is
   allocated where the stack is deepest, so that no allocator's own frames count. */
#include <stdlib.h>

static volatile long sink;

static long deep(int n) {
    volatile char frame[200];
    frame[0] = (char)n;
    return n == 0 ? frame[0] : deep(n - 1) + frame[0];
}

static long wide(int n) {
    volatile char *frame = __builtin_alloca(n * 100);
    for (int i = 0; i < n * 100; i++)
        frame[i] = (char)i;
    return frame[n];
}

int main(void) {
    char *block = malloc(1000);
    sink = deep(50) + wide(200) + deep(300);
    free(block);
    block = malloc(2000);
    sink = deep(100);
    return 0;
}
