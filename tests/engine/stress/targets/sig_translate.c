// Signals while the program runs code that never ran before: a timer fires all the time over fresh
// functions, each run only a few times, each result checked; the handler runs fresh code too.
#include "stress.h"
#include <sys/time.h>

typedef uint64_t (*function)(uint64_t);

static unsigned char *main_area, *handler_area;
static volatile int ticks;
static volatile unsigned handler_place;
enum { AREA = 4 << 20, SIZE = 256 };

// `length` times: imul $3,%rdi,%rdi (48 6b ff 03) or inc %rdi (48 ff c7), with a jump over junk
// now and then; then mov %rdi,%rax; ret. Gives the function's value at x.
static uint64_t emit(unsigned char *p, unsigned seed, int length, uint64_t x) {
    for (int i = 0; i < length; i++) {
        seed = seed * 1103515245 + 12345;
        switch (seed >> 16 & 3) {
        case 0:
            memcpy(p, "\x48\x6b\xff\x03", 4);
            p += 4;
            x *= 3;
            break;
        case 1:
            memcpy(p, "\xeb\x02\x0f\x0b", 4); // jmp over ud2
            p += 4;
            break;
        case 2:
            memcpy(p, "\x48\x85\xff\x75\x03\x48\xff\xc7", 8); // test; jnz over inc
            p += 8;
            x += x == 0;
            break;
        default:
            memcpy(p, "\x48\xff\xc7", 3);
            p += 3;
            x++;
        }
    }
    memcpy(p, "\x48\x89\xf8\xc3", 4);
    return x;
}

static void on_tick(int s, siginfo_t *info, void *context) {
    unsigned char *p = handler_area + handler_place++ % (AREA / SIZE) * SIZE;
    uint64_t expected = emit(p, (unsigned)ticks, 10, 5);
    SAME(((function)p)(5), expected);
    ticks++;
}

int main(void) {
    main_area = stress_map(AREA, PROT_READ | PROT_WRITE | PROT_EXEC);
    handler_area = stress_map(AREA, PROT_READ | PROT_WRITE | PROT_EXEC);
    stress_handle(SIGALRM, on_tick, SA_RESTART);
    struct itimerval every = {{0, 150}, {0, 150}};
    CHECK(setitimer(ITIMER_REAL, &every, NULL) == 0);
    uint64_t h = 0;
    for (unsigned i = 0; i < 6000 || ticks < 100; i++) {
        unsigned char *p = main_area + i % (AREA / SIZE) * SIZE;
        uint64_t expected = emit(p, i, 25, i);
        for (int k = 0; k < 3; k++)
            SAME(((function)p)(i), expected);
        if (i < 6000)
            h = stress_mix(h, expected);
    }
    printf("%016llx\n", (unsigned long long)h);
    return 0;
}
