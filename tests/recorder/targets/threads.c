// Threads that allocate, hand blocks to each other to free, and end. `threads N ROUNDS`: what stays
// allocated in the end is N * 10000 bytes in blocks of 1000.
#include <pthread.h>
#include <stdlib.h>

static void *_Atomic slots[64];
static int rounds;
static void *kept[256][10];

static void *work(void *argument) {
    long number = (long)argument;
    unsigned state = (unsigned)number * 77 + 1;
    for (int i = 0; i < rounds; i++) {
        state = state * 1103515245 + 12345;
        void *old = __atomic_exchange_n((void **)&slots[(state >> 16) % 64],
                                        malloc(16 + (state >> 8) % 1000), __ATOMIC_ACQ_REL);
        if (state % 5 == 0)
            old = realloc(old, 200);
        free(old);
    }
    for (int i = 0; i < 10; i++)
        kept[number][i] = malloc(1000);
    return NULL;
}

int main(int argc, char **argv) {
    int count = atoi(argv[1]);
    pthread_t threads[256];
    rounds = atoi(argv[2]);
    for (long i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i))
            return 1;
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 64; i++)
        free(slots[i]);
    return 0;
}
