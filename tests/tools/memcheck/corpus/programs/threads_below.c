// What lies below another thread's stack pointer is nobody's; what lies above may be undefined.
//
// case below_other_thread -DWAY=1
// case below_other_thread_O2 -DWAY=1 -O2
// case below_main_thread -DWAY=2
// case above_other_thread -DWAY=3 clean
// case below_other_thread_reused -DWAY=4 clean
#include <pthread.h>
#include <string.h>

enum { SIZE = 20000 };

static pthread_barrier_t barrier;
static char *volatile shown;
static char copy[200];
volatile char kept;

static void wait_for_other(void)
{
    pthread_barrier_wait(&barrier);
}

// The frame is left: its lower end is far below what the barrier needs.
__attribute__((noinline)) static void leave(void)
{
    char local[SIZE];
    char *volatile address = local;
    memset(address, 1, SIZE);
    shown = address;
}

static void *leaves(void *unused)
{
    leave();
    wait_for_other();
    wait_for_other();
    return NULL;
}

static inline void *keeps(void *unused)
{
    char local[SIZE];
    shown = local;
    __asm__ volatile("" : : "r"(local) : "memory");
    wait_for_other();
    wait_for_other();
    return NULL;
}

static inline void *reads(void *unused)
{
    wait_for_other();
    kept = shown[20]; // bug
    wait_for_other();
    return NULL;
}

int main(void)
{
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
#if WAY == 1
    pthread_create(&thread, NULL, leaves, NULL);
    wait_for_other();
    kept = shown[20]; // bug
    wait_for_other();
#elif WAY == 2
    pthread_create(&thread, NULL, reads, NULL);
    leaves(NULL);
#else // what was never set is copied, more often than is asked
    for (int round = 0; round < 2; round++) {
        pthread_create(&thread, NULL, WAY == 3 || round ? keeps : leaves, NULL);
        wait_for_other();
        for (int i = 0; (WAY == 3 || round) && i < 2000; i++)
            copy[i % 200] = shown[i];
        wait_for_other();
        if (!round)
            pthread_join(thread, NULL);
    }
#endif
    pthread_join(thread, NULL);
    return 0;
}
