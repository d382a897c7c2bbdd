// Timer signals interrupt a loop that saves the flags on the stack: the trap flag, which an engine
// may use to get from within an instruction to its end, must never be found there.
#include "stress.h"
#include <sys/time.h>

enum { TICKS = 2000 };

static volatile int ticks;

static void on_tick(int number) {
    ticks++;
}

int main(void) {
    struct itimerval every = {{0, 100}, {0, 100}};
    uint64_t flags, all = 0;
    signal(SIGALRM, on_tick);
    setitimer(ITIMER_REAL, &every, NULL);
    while (ticks < TICKS) {
        __asm__ volatile("lea -128(%%rsp), %%rsp\n"
                         "pushfq; pushfq; pushfq; pushfq; pushfq; pushfq; pushfq; pushfq\n"
                         "mov (%%rsp), %0; or 8(%%rsp), %0; or 16(%%rsp), %0; or 24(%%rsp), %0\n"
                         "or 32(%%rsp), %0; or 40(%%rsp), %0; or 48(%%rsp), %0; or 56(%%rsp), %0\n"
                         "lea 192(%%rsp), %%rsp"
                         : "=&r"(flags)
                         :
                         : "cc", "memory");
        all |= flags;
    }
    puts(all & 0x100 ? "the trap flag was seen" : "no trap flag");
    return 0;
}
