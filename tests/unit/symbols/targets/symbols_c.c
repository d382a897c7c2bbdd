/*
 * Functions, inlined functions and variables for the symbol tests. With an argument it also prints
 * backtraces through Valgrind, and its own mappings, so that both can be compared.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef WITH_VALGRIND
#include <valgrind/valgrind.h>
#else
#define VALGRIND_PRINTF_BACKTRACE(...) ((void)0)
#endif

int initialised_variable[10] = {1, 2, 3};
int zeroed_variable[3000];
const char constant_variable[] = "constant";
static volatile int sink;

static inline __attribute__((always_inline)) int innermost(int value) {
    VALGRIND_PRINTF_BACKTRACE("backtrace innermost\n");
    sink += value;
    return sink * 3;
}

static inline __attribute__((always_inline)) int middle(int value) {
    int sum = 0;
    for (int i = 0; i < 2; i++)
        sum += innermost(value + i);
    return sum;
}

__attribute__((noinline)) int outermost(int value) {
    return middle(value) + 1;
}

static int compare(const void *left, const void *right) {
    VALGRIND_PRINTF_BACKTRACE("backtrace compare\n");
    return *(const int *)left - *(const int *)right;
}

__attribute__((noinline)) static int recursive(int depth) {
    if (!depth) {
        VALGRIND_PRINTF_BACKTRACE("backtrace deep\n");
        return sink;
    }
    return recursive(depth - 1) + sink;
}

__attribute__((constructor)) static void before_main(void) {
    VALGRIND_PRINTF_BACKTRACE("backtrace constructor\n");
}

static void at_exit(void) {
    VALGRIND_PRINTF_BACKTRACE("backtrace exit\n");
}

static void *thread(void *argument) {
    VALGRIND_PRINTF_BACKTRACE("backtrace thread\n");
    return argument;
}

static void print_mappings(void) {
    char line[4096];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        printf("%s", line);
    fflush(stdout);
}

int main(int argc, char **argv) {
    int numbers[] = {3, 1, 2};
    atexit(at_exit);
    qsort(numbers, 3, sizeof *numbers, compare);
    pthread_t other;
    pthread_create(&other, NULL, thread, NULL);
    pthread_join(other, NULL);
    if (argc > 1)
        print_mappings();
    return (outermost(argc) + recursive(20) + zeroed_variable[argc]) & 0;
}
