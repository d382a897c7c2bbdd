// The three interval timers fire over a computation whose checksum must come out right.
#include "stress.h"
#include <sys/time.h>

static volatile sig_atomic_t ticks;
static volatile uint64_t scratch[8];

static void on_tick(int s, siginfo_t *info, void *context) {
    ticks++;
    for (int i = 0; i < 8; i++)
        scratch[i] = scratch[i] * 7 + (uint64_t)i;
}

static uint64_t compute(uint64_t seed) {
    uint64_t table[256], h = seed;
    double x = 1.0;
    for (int i = 0; i < 256; i++)
        table[i] = (uint64_t)i * 0x100000001b3ull;
    for (int i = 0; i < 20000; i++) {
        h = stress_mix(h, table[h & 255]);
        table[h >> 56] ^= h;
        x = x * 1.0000001 + (double)(h & 7);
        if (h & 64)
            h = (h << 13) | (h >> 51);
    }
    return h ^ (uint64_t)x;
}

int main(void) {
    static const struct {
        int which, signal;
    } timers[] = {{ITIMER_REAL, SIGALRM}, {ITIMER_VIRTUAL, SIGVTALRM}, {ITIMER_PROF, SIGPROF}};
    for (size_t t = 0; t < LENGTH(timers); t++) {
        stress_handle(timers[t].signal, on_tick, SA_RESTART);
        ticks = 0;
        struct itimerval every = {{0, 200}, {0, 200}};
        int wanted = timers[t].which == ITIMER_REAL ? 300 : 15;
        CHECK(setitimer(timers[t].which, &every, NULL) == 0);
        uint64_t expected = compute(t), rounds = 0;
        while (ticks < wanted || rounds < 30) {
            SAME(compute(t), expected);
            rounds++;
        }
        memset(&every, 0, sizeof(every));
        CHECK(setitimer(timers[t].which, &every, NULL) == 0);
        printf("timer %d: %016llx\n", timers[t].which, (unsigned long long)expected);
    }
    return 0;
}
