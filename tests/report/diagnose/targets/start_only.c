// A server that parses its settings when it starts, with a temporary block for each word, and then
// waits for work, for twenty times as long: nothing in it is hot.
#include <stdlib.h>
#include <time.h>

static void *volatile word;

static void parse(void) {
    word = malloc(16);
    free(word);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(void) {
    double start = now();
    for (int i = 0; i < 50000; i++)
        parse();
    double end = now() + 20 * (now() - start);
    while (now() < end)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    word = malloc(100);
    return 0;
}
