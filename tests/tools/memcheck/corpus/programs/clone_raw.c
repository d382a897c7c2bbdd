// Threads made by clone itself, which says where a stack ends, but not where it begins.
//
// case clone_stack_amid -DWAY=1 clean
// case clone_stack_amid_O2 -DWAY=1 -O2 clean
// case clone_stack_last -DWAY=2 clean
// case clone_stack_alone -DWAY=3 clean
// case clone_stack_undefined -DWAY=3 -DBUG
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SIZE = 64 * 1024, ALL = 16 * SIZE, WORDS = SIZE / sizeof(long) };

static long *words; // below the stack, and above
static int running = 1;
volatile long kept;

__attribute__((noinline)) static long work(int depth)
{
    volatile long frame[20];
    for (int i = 0; i < 20; i++)
        frame[i] = depth;
    return depth ? work(depth - 1) + frame[3] : 0;
}

#ifdef BUG
__attribute__((noinline)) static void undefined(void)
{
    int values[8];
    __asm__ volatile("" : : "r"(values) : "memory");
    if (values[3]) // bug
        kept = 1;
}
#endif

// The C library does not know of this thread.
static int run(void *argument)
{
    kept += work(10);
#ifdef BUG
    undefined(); // bug
#endif
    for (int i = 0; words && i < WORDS; i++)
        if (words[i] == i)
            kept++;
    syscall(SYS_exit, 0);
    return 0;
}

int main(void)
{
    char *memory = mmap(NULL, ALL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *stack = memory + (WAY == 1 ? 5 : 15) * SIZE;
    if (WAY != 3) {
        words = (long *)(memory + 2 * SIZE);
        for (int i = 0; i < WORDS; i++)
            words[i] = i;
    }
    clone(run, stack + SIZE,
          CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
              CLONE_CHILD_CLEARTID,
          NULL, NULL, NULL, &running);
    while (__atomic_load_n(&running, __ATOMIC_SEQ_CST))
        syscall(SYS_futex, &running, FUTEX_WAIT, 1, NULL, NULL, 0);
    for (int i = 0; words && i < WORDS; i++)
        if (words[i] == i)
            kept++;
    printf("%ld\n", kept);
    return 0;
}
