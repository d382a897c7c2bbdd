// Addresses where a tool may have memory of its own, but the program has none.
//
// case wild_addresses
// case wild_addresses_O2 -O2
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static const unsigned long places[] = {0x70000000,     0x70001000,     0x7fff0000,    0x80000000,
                                       0x200000000,    0x200003000000, 0x201000000000 - 4096,
                                       0x400000000000, 0x401003000000, 0x450000000000,
                                       0x30000000,     0x1bfff5000,    0x250000000000,
                                       0x2a0003000000, 0x2a1030000000, 0x530000000000};
static sigjmp_buf back;
static volatile int code;
static void *volatile where;
static volatile char kept;

static void on_fault(int number, siginfo_t *info, void *context)
{
    code = info->si_code;
    where = info->si_addr;
    siglongjmp(back, 1);
}

__attribute__((noinline)) static int never_set(void)
{
    int value;
    __asm__ volatile("" : : "r"(&value) : "memory");
    return value;
}

__attribute__((noinline)) static void touch(int way, volatile long *place)
{
    if (way == 0)
        kept = *place; // bug
    else if (way == 1)
        *place = 1; // bug
    else if (way == 2)
        *place = never_set(); // bug
    else if (way == 3)
        *place += never_set(); // bug
    else if (way == 4)
        memset((void *)place, 1, 100); // bug
    else
        kept = strlen((char *)place); // bug
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
        for (int way = 0; way < 6; way++) {
            code = 0;
            if (sigsetjmp(back, 1) == 0)
                touch(way, (volatile long *)places[i]); // bug
            printf("%lx %d: %d %d\n", places[i], way, code, where == (void *)places[i]);
        }
    }
    return 0;
}
