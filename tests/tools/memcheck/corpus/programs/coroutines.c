// Coroutines made by hand: a switch is a few instructions, and nobody is told of the stacks.
//
// case coroutine_mapping -DWAY=1 clean
// case coroutine_mapping_O2 -DWAY=1 -O2 clean
// case coroutine_heap -DWAY=2 alone clean
// case coroutine_end -DWAY=3 clean
// case coroutine_neighbours -DWAY=4 alone clean
// case coroutine_neighbours_O2 -DWAY=4 -O2 alone clean
// case coroutine_neighbours_clang clang -DWAY=4 -O1 alone clean
// case coroutine_pool -DWAY=5 alone clean
// case coroutine_heap_pool -DWAY=6 alone clean
// case coroutine_neighbours_bugs -DWAY=4 -DBUGS alone
// case coroutine_far_bugs -DWAY=1 -DBUGS
// case coroutine_far_bugs_O2 -DWAY=1 -DBUGS -O2
// case coroutine_end_bugs -DWAY=3 -DBUGS
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { STACKS = 4, SIZE = 64 * 1024, ROUNDS = 6 };

// switch_to(&old, new): callee-saved registers are kept on the stack that is left.
void switch_to(void **old, void *new);
__asm__(".globl switch_to\n"
        ".type switch_to, @function\n"
        "switch_to:\n"
        "    push %rbp\n    push %rbx\n    push %r12\n    push %r13\n    push %r14\n    push %r15\n"
        "    mov %rsp, (%rdi)\n"
        "    mov %rsi, %rsp\n"
        "    pop %r15\n    pop %r14\n    pop %r13\n    pop %r12\n    pop %rbx\n    pop %rbp\n"
        "    ret\n"
        ".size switch_to, . - switch_to\n");

static void *contexts[STACKS], *outer;
static char *stacks[STACKS];
static char area[STACKS][SIZE] __attribute__((aligned(4096)));
static int current;
volatile long kept;

__attribute__((noinline)) static void left_by_jump(jmp_buf back, int depth)
{
    volatile char frame[300];
    frame[depth] = depth;
    if (depth == 0)
        longjmp(back, 1);
    left_by_jump(back, depth - 1);
}

__attribute__((noinline)) static long variable(int size)
{
    long sum = 0;
    for (int round = 1; round < 4; round++) {
        volatile int values[size * round];
        for (int i = 0; i < size * round; i++)
            values[i] = i;
        sum += values[size - 1];
    }
    return sum;
}

__attribute__((noinline)) static void yield(int number)
{
    volatile char frame[200];
    for (int i = 0; i < 200; i++)
        frame[i] = number + i;
    int next = (number + 3) % STACKS; // down and up
    current = next;
    switch_to(&contexts[number], contexts[next]);
    for (int i = 0; i < 200; i++)
        if (frame[i] == (char)(number + i))
            kept++;
}

#ifdef BUGS
__attribute__((noinline)) static void undefined(void)
{
    int values[8];
    __asm__ volatile("" : : "r"(values) : "memory");
    if (values[3]) // bug(coroutine_neighbours_bugs): Conditional jump or move depends on uninitialised value(s)
        kept++;
}

__attribute__((noinline)) static volatile char *dead(void)
{
    char local[400];
    char *volatile address = local;
    memset(local, 5, 400);
    return address;
}
#endif

static void run(void)
{
    int number = current;
    volatile long sums[100];
    jmp_buf back;
    for (int i = 0; i < 100; i++)
        sums[i] = number + i;
    for (int round = 0; round < ROUNDS; round++) {
        yield(number);
#ifdef BUGS
        if (number == 2 && (round == 0 || round == 3)) {
            undefined(); // bug
            // An invalid read, but where a stack ends that nobody has announced is not known.
            if (dead()[50] == 5) // bug(coroutine_neighbours_bugs): Conditional jump or move depends on uninitialised value(s)
                kept++;
        }
#endif
        if (!setjmp(back))
            left_by_jump(back, 5);
        kept += variable(10 + number);
        for (int i = 0; i < 100; i++)
            if (sums[i] == number + i)
                kept++;
    }
    switch_to(&contexts[number], outer);
}

static void prepare(int number, char *stack)
{
    void **top = (void **)(stack + SIZE) - 10;
    memset(top, 0, 10 * sizeof *top);
    top[6] = (void *)run; // what switch_to returns to
    contexts[number] = top;
}

static inline char *map(size_t size)
{
    return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

int main(void)
{
    char *stack = NULL;
    for (int i = 0; i < STACKS; i++) {
#if WAY == 1 // far apart from each other
        stack = map(4000000) + 1000000;
#elif WAY == 2
        stack = malloc(SIZE);
#elif WAY == 3
        stack = map(4000000) + 4000000 - SIZE;
#elif WAY == 4
        stack = area[i];
#elif WAY == 5
        stack = i ? stack + SIZE : map(STACKS * SIZE);
#elif WAY == 6
        stack = i ? stack + SIZE : malloc(STACKS * SIZE);
#endif
        stacks[i] = stack;
        prepare(i, stack);
    }
    current = 1;
    switch_to(&outer, contexts[1]);
    for (int i = 0; i < STACKS; i++)
        if (WAY == 2 || (WAY == 6 && i == 0))
            free(stacks[i]);
    printf("%ld\n", kept);
    return 0;
}
