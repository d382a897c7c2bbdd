// System calls that sleep and that do not; instructions that lock.
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define APART __attribute__((noinline))

// The instruction itself, so that its cost is not the C library's.
APART static long system_call(long number, long first, long second) {
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(first), "S"(second)
                     : "rcx", "r11", "memory");
    return result;
}

APART static void nap(void) {
    struct timespec time = {.tv_nsec = 20000000};
    system_call(SYS_nanosleep, (long)&time, 0);
}

APART static long ask(int times) {
    long sum = 0;
    for (int i = 0; i < times; i++)
        sum += system_call(SYS_getppid, 0, 0) + system_call(SYS_getuid, 0, 0);
    return sum;
}

static long words[2];

APART static long locked(void) {
    for (int i = 0; i < 50; i++) {
        __atomic_add_fetch(&words[0], 1, __ATOMIC_SEQ_CST);
        long expected = i;
        __atomic_compare_exchange_n(&words[1], &expected, i + 1, 0, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST);
        __atomic_exchange_n(&words[1], i + 1, __ATOMIC_SEQ_CST);
        __atomic_fetch_sub(&words[0], 2, __ATOMIC_SEQ_CST);
        words[1] = i + 1;
    }
    words[1] = 0;
    return words[0];
}

int main(int argc, char **argv) {
    long sum = 0;
    for (int i = 0; i < atoi(argv[1]); i++) {
        nap();
        sum += ask(7);
        sum += locked();
    }
    return sum == 1;
}
