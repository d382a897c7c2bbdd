// Coroutines with makecontext and swapcontext, switching stacks 20,000 times, also while a timer
// interrupts, and one per thread.
#include "stress.h"
#include <sys/time.h>

enum { COROUTINES = 10, SWITCHES = 2000 };

struct set {
    ucontext_t main, each[COROUTINES];
    char *stacks;
    int current;
    uint64_t sums[COROUTINES];
};

static volatile int ticks;
static void on_tick(int s, siginfo_t *info, void *context) {
    ticks++;
}

static void run(unsigned low, unsigned high, int id) {
    struct set *set = (struct set *)((uint64_t)high << 32 | low);
    double x = id;
    for (int i = 0; i < SWITCHES; i++) {
        x = x * 1.25 + 1;
        if (x > 1e9)
            x -= 1e9;
        set->sums[id] = stress_mix(set->sums[id], (uint64_t)x);
        swapcontext(&set->each[id], &set->main);
    }
}

static void *work(void *arg) {
    struct set *set = calloc(1, sizeof(*set));
    set->stacks = malloc(COROUTINES * 32768);
    for (int i = 0; i < COROUTINES; i++) {
        getcontext(&set->each[i]);
        set->each[i].uc_stack.ss_sp = set->stacks + i * 32768;
        set->each[i].uc_stack.ss_size = 32768;
        set->each[i].uc_link = &set->main;
        makecontext(&set->each[i], (void (*)(void))run, 3, (unsigned)(uint64_t)set,
                    (unsigned)((uint64_t)set >> 32), i);
    }
    for (int s = 0; s <= SWITCHES; s++)
        for (int i = 0; i < COROUTINES; i++)
            swapcontext(&set->main, &set->each[i]);
    uint64_t h = 0;
    for (int i = 0; i < COROUTINES; i++)
        h = stress_mix(h, set->sums[i]);
    free(set->stacks);
    free(set);
    return (void *)h;
}

int main(void) {
    stress_handle(SIGALRM, on_tick, SA_RESTART);
    struct itimerval every = {{0, 500}, {0, 500}};
    setitimer(ITIMER_REAL, &every, NULL);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        threads[i] = stress_thread(work, NULL);
    for (int i = 0; i < 3; i++)
        printf("%016llx\n", (unsigned long long)stress_join(threads[i]));
    printf("%016llx\n", (unsigned long long)(uint64_t)work(NULL));
    return 0;
}
