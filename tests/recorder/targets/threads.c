// Threads that allocate, hand blocks to each other to free, and end. `threads N ROUNDS [TAIL]`: what
// stays allocated in the end is N * 10000 bytes in blocks of 1000; before that, TAIL blocks come and
// go. Says how many blocks were allocated, and how many resized: a slot that is still empty makes one
// of the other, and who finds it so goes by chance.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *_Atomic slots[64];
static int rounds;
static void *kept[256][10];
static _Atomic long allocated, resized;

static void *work(void *argument) {
    long number = (long)argument;
    unsigned state = (unsigned)number * 77 + 1;
    for (int i = 0; i < rounds; i++) {
        state = state * 1103515245 + 12345;
        void *old = __atomic_exchange_n((void **)&slots[(state >> 16) % 64],
                                        malloc(16 + (state >> 8) % 1000), __ATOMIC_ACQ_REL);
        if (state % 5 == 0) {
            if (old)
                resized++;
            else
                allocated++;
            old = realloc(old, 200);
        }
        free(old);
    }
    allocated += rounds + 10;
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
    for (int i = 0; argc > 3 && i < atoi(argv[3]); i++, allocated++)
        free(malloc(1000));
    // Nothing that would allocate.
    char line[64];
    write(1, line, snprintf(line, sizeof line, "%ld %ld\n", allocated, resized));
    return 0;
}
