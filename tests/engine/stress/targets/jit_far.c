// More functions than a table of usual size is made for, far from each other. Threads call them in
// an order of their own while the other ones are still being met for the first time.
#include "stress.h"

enum { AREAS = 4, SLOT = 8, FUNCTIONS = 80000, THREADS = 2, ALL = AREAS * FUNCTIONS };
static unsigned char *areas[AREAS];

// mov $value,%eax; ret
static void write_functions(unsigned area) {
    areas[area] = mmap((void *)(0x10000000000ul * (area + 1)), FUNCTIONS * SLOT,
                       PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(areas[area] != MAP_FAILED);
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        unsigned char *at = areas[area] + i * SLOT;
        uint32_t value = area * FUNCTIONS + i;
        at[0] = 0xb8;
        memcpy(at + 1, &value, sizeof value);
        at[5] = 0xc3;
    }
    CHECK(mprotect(areas[area], FUNCTIONS * SLOT, PROT_READ | PROT_EXEC) == 0);
}

static void *call_all(void *argument) {
    const uint64_t step = (uintptr_t)argument; // has no factor in common with ALL
    uint64_t sum = 0;
    for (uint64_t i = 0; i < ALL; i++) {
        unsigned number = (unsigned)(i * step % ALL);
        unsigned (*function)(void) =
            (unsigned (*)(void))(areas[number / FUNCTIONS] + number % FUNCTIONS * SLOT);
        SAME(function(), number);
        sum = stress_mix(sum, number);
    }
    return (void *)sum;
}

int main(void) {
    static const uintptr_t steps[THREADS] = {12347, 98773};
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < AREAS; i++)
        write_functions(i);
    for (unsigned i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, call_all, (void *)steps[i]) == 0);
    for (unsigned i = 0; i < THREADS; i++) {
        void *sum;
        CHECK(pthread_join(threads[i], &sum) == 0);
        printf("%lx\n", (uintptr_t)sum);
    }
    return 0;
}
