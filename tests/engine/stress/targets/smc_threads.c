// One thread rewrites code while others run it. The writer changes an aligned 4-byte immediate; a
// runner may see the old or the new value but nothing else, never an older one than was published,
// and the last in the end. Others run functions made anew all the time at new addresses.
#include "stress.h"

typedef uint32_t (*function)(void);

static unsigned char *code;
static volatile uint32_t published;
static volatile int stop;

static void *run(void *arg) {
    function f = (function)code;
    uint32_t last = 0;
    while (!stop) {
        uint32_t before = published, value = f();
        // The writer publishes after writing, so a value seen published may not be undone.
        CHECK(value >= before);
        CHECK((value & 0xff) == 0x5a);
        CHECK(value >= last);
        last = value;
    }
    CHECK(f() == published);
    return NULL;
}

// The other page: functions made anew all the time, published through a pointer.
static _Atomic(function) current;
static _Atomic uint32_t expected_generation;

static void *run_fresh(void *arg) {
    while (!stop) {
        uint32_t low = expected_generation;
        function f = current;
        uint32_t value = f();
        CHECK(value >= low);
    }
    return NULL;
}

int main(void) {
    CHECK(syscall(SYS_membarrier, 1 << 6 /* REGISTER_PRIVATE_EXPEDITED_SYNC_CORE */, 0, 0) == 0);
    code = stress_map(2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
    unsigned char *f = code + 3; // the immediate of mov at f+1 is aligned
    memset(code, 0x90, 16);
    f[0] = 0xb8;
    *(volatile uint32_t *)(f + 1) = 0x5a;
    f[5] = 0xc3;
    published = 0x5a;
    unsigned char *fresh = stress_map(64 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC);
    fresh[0] = 0xb8;
    memset(fresh + 1, 0, 4);
    fresh[5] = 0xc3;
    current = (function)fresh;
    pthread_t threads[4];
    for (int i = 0; i < 2; i++) {
        threads[i] = stress_thread(run, NULL);
        threads[i + 2] = stress_thread(run_fresh, NULL);
    }
    uint32_t value = 0x5a;
    for (uint32_t i = 1; i <= 3000; i++) {
        value += 0x100;
        __atomic_store_n((uint32_t *)(f + 1), value, __ATOMIC_SEQ_CST);
        syscall(SYS_membarrier, 1 << 5 /* PRIVATE_EXPEDITED_SYNC_CORE */, 0, 0);
        published = value;
        unsigned char *at = fresh + i * 80;
        at[0] = 0xb8;
        memcpy(at + 1, &i, 4);
        at[5] = 0xc3;
        current = (function)at;
        expected_generation = i;
        if (i % 50 == 0)
            stress_sleep_us(100);
    }
    stop = 1;
    for (int i = 0; i < 4; i++)
        stress_join(threads[i]);
    printf("last value %x generation %u\n", published, expected_generation);
    return 0;
}
