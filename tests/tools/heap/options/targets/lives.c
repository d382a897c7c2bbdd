// Blocks that live for a moment, for a tenth of a second, and to the end.
#include <stdlib.h>
#include <time.h>

static __attribute__((noinline)) void *brief(void) {
    return malloc(10);
}
static __attribute__((noinline)) void *lasting(void) {
    return malloc(20);
}
static __attribute__((noinline)) void *kept(void) {
    return malloc(30);
}

int main(void) {
    void *volatile first = kept();
    void *blocks[20];
    for (int i = 0; i < 20; i++)
        blocks[i] = lasting();
    nanosleep(&(struct timespec){.tv_nsec = 120000000}, NULL);
    for (int i = 0; i < 20; i++)
        free(blocks[i]);
    for (int i = 0; i < 1000; i++)
        free(brief());
    return first == NULL;
}
