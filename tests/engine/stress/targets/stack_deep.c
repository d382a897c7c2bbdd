// 7 MB of stack by recursion, large frames touched out of order, alloca.
#include "stress.h"
#include <alloca.h>

static NOINLINE uint64_t dig(int n, uint64_t h) {
    volatile char frame[900];
    frame[n % 900] = (char)n;
    if (n == 0)
        return h;
    return dig(n - 1, stress_mix(h, (uint64_t)n)) + (uint64_t)(frame[n % 900] == (char)n);
}

static NOINLINE int big_frame(void) {
    volatile char frame[6 << 20];
    frame[0] = 1; // far below everything touched so far
    frame[sizeof(frame) - 1] = 2;
    return frame[0] + frame[sizeof(frame) - 1];
}

static void *work(void *arg) {
    return (void *)dig(7000, 2);
}

int main(void) {
    printf("%d\n", big_frame());
    printf("%016llx\n", (unsigned long long)dig(7200, 1));
    long total = 0;
    for (int i = 1; i < 200; i++) {
        char *p = alloca((size_t)i * 100);
        memset(p, i, (size_t)i * 100);
        total += p[i];
    }
    printf("%ld\n", total);
    printf("%016llx\n", (unsigned long long)(uint64_t)stress_join(stress_thread(work, NULL)));
    return 0;
}
