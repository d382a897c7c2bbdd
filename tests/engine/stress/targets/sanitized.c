// Built with a sanitizer: threads, allocations, memory that the program places itself.
#include "stress.h"

// The search for leaks is the subject of sanitized_leaks.c.
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "detect_leaks=0";
}

enum { THREADS = 4, TURNS = 2000 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long sum;

static void *work(void *argument) {
    unsigned seed = (unsigned)(uintptr_t)argument;
    for (unsigned i = 0; i < TURNS; i++) {
        size_t size = 1 + (seed = seed * 1103515245 + 12345) % 5000;
        unsigned char *block = malloc(size);
        CHECK(block);
        memset(block, (int)i, size);
        pthread_mutex_lock(&lock);
        sum += block[size - 1];
        pthread_mutex_unlock(&lock);
        free(block);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)(i + 1)) == 0);
    for (unsigned i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    unsigned char *mapped = stress_map(64 * PAGE, PROT_READ | PROT_WRITE);
    memset(mapped, 1, 64 * PAGE);
    CHECK(munmap(mapped, 64 * PAGE) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        _exit(7);
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    printf("%lu %d\n", sum, WEXITSTATUS(status));
    return 0;
}
