// Code that a program makes writable and executable again, as JITs and patchers do. Who runs the
// program may not go through all of its mappings each time: the cost is compared with that of data.
#include "stress.h"
#include <time.h>

enum { MAPPINGS = 3000, TURNS = 300, MOST = 100 };

__attribute__((aligned(4096))) NOINLINE static unsigned code(unsigned value) {
    return value * 3 + 1;
}

static unsigned char data[2 * PAGE] __attribute__((aligned(4096)));

static double cpu_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double time_changes(void *page, int prot) {
    double start = cpu_seconds();
    for (unsigned i = 0; i < TURNS; i++) {
        CHECK(mprotect(page, PAGE, prot | PROT_WRITE) == 0);
        CHECK(mprotect(page, PAGE, prot) == 0);
    }
    return cpu_seconds() - start;
}

int main(void) {
    unsigned char *many = stress_map(MAPPINGS * PAGE, PROT_READ);
    for (unsigned i = 0; i < MAPPINGS; i += 2)
        CHECK(mprotect(many + i * PAGE, PAGE, PROT_READ | PROT_WRITE) == 0);
    unsigned sum = code(5);
    double of_data = time_changes(data, PROT_READ);
    double of_code = time_changes((void *)code, PROT_READ | PROT_EXEC);
    printf("%u, %s\n", sum + code(6), of_code < MOST * of_data ? "cheap" : "expensive");
    return 0;
}
