// Threads change the state of large neighbouring ranges at once, and bits that look like a code in
// bytes that lie side by side. Nobody may see the other's state. Argument: rounds.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <valgrind/memcheck.h>

enum { THREADS = 4, SIZE = 1 << 20, SHARED = 4096 };

static unsigned char shared[SHARED * THREADS];
static long rounds;
static pthread_barrier_t barrier;

static void expect(const void *at, unsigned char wanted, const char *what)
{
    unsigned char bits = 0;
    int answer = VALGRIND_GET_VBITS(at, &bits, 1);
    if (answer != 1 || bits != wanted)
        printf("%s: %d, %02x instead of %02x\n", what, answer, bits, wanted);
}

static void *run(void *argument)
{
    long own = (long)argument;
    unsigned char code = 0xa5, none = 0;
    pthread_barrier_wait(&barrier);
    for (long round = 0; round < rounds; round++) {
        unsigned char *block = malloc(SIZE + own * 4096);
        expect(block, 0xff, "new");
        expect(block + SIZE - 1, 0xff, "new");
        block[5] = 1;
        block[SIZE / 2] = 1;
        expect(block + 5, 0, "written");
        expect(block + 6, 0xff, "beside it");
        memset(block, 0, SIZE);
        expect(block + SIZE - 1, 0, "filled");
        for (unsigned i = own; i < sizeof shared; i += THREADS)
            VALGRIND_SET_VBITS(shared + i, round % 2 ? &none : &code, 1);
        for (unsigned i = own; i < sizeof shared; i += THREADS)
            expect(shared + i, round % 2 ? 0 : 0xa5, "side by side");
        free(block);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    rounds = strtol(argv[1], NULL, 10);
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run, (void *)i);
    for (long i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    puts("end");
    return 0;
}
