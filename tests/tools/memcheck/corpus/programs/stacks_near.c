// Stacks of the program's own, side by side: a move from one to the other is no frame.
//
// case stack_near_registered -DREGISTER=1 clean
// case stack_near_changed -DREGISTER=2 clean
// case stack_near_context alone
// case stack_near_undefined -DREGISTER=1 -DUNDEFINED
#include <stdio.h>
#include <ucontext.h>
#include <valgrind/valgrind.h>

enum { SIZE = 64 * 1024, STACKS = 3, ROUNDS = 5 };

static char memory[STACKS][SIZE] __attribute__((aligned(64)));
static ucontext_t contexts[STACKS], outer;
volatile long kept;

__attribute__((noinline)) static long undefined(void)
{
    int values[8];
    __asm__ volatile("" : : "r"(values) : "memory");
    return values[3] ? 1 : 2; // bug
}

static void run(int number)
{
    volatile long sums[50];
    for (int i = 0; i < 50; i++)
        sums[i] = number + i;
    for (int round = 0; round < ROUNDS; round++) {
        swapcontext(&contexts[number], round + 1 < ROUNDS ? &contexts[(number + 1) % STACKS] : &outer);
#ifdef UNDEFINED
        if (number == 0 && round == 1)
            kept += undefined(); // bug
#endif
        for (int i = 0; i < 50; i++)
            if (sums[i] == number + i)
                kept++;
    }
}

int main(void)
{
    for (int i = 0; i < STACKS; i++) {
#if REGISTER == 1
        VALGRIND_STACK_REGISTER(memory[i], memory[i] + SIZE);
#elif REGISTER == 2
        VALGRIND_STACK_CHANGE(VALGRIND_STACK_REGISTER(memory[i], memory[i] + 100), memory[i],
                              memory[i] + SIZE);
#endif
        getcontext(&contexts[i]);
        contexts[i].uc_stack.ss_sp = memory[i];
        contexts[i].uc_stack.ss_size = SIZE;
        contexts[i].uc_link = &outer;
        makecontext(&contexts[i], (void (*)(void))run, 1, i);
    }
    swapcontext(&outer, &contexts[0]);
    printf("%ld\n", kept);
    return 0;
}
