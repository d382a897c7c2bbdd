// Stacks: what lies below them, jumps between frames, stacks of the program's own making.
//
// case stack_below_pointer -DWAY=1
// case stack_red_zone -DWAY=2 -O2 clean
// case stack_below_red_zone -DWAY=3
// case stack_longjmp_dead -DWAY=4
// case stack_longjmp_clean -DWAY=5 clean
// case stack_swapcontext_heap -DWAY=6
// case stack_swapcontext_mapping -DWAY=7
// case stack_swapcontext_clean -DWAY=8 clean
// case stack_swapcontext_registered -DWAY=9
// case stack_big_frame -DWAY=10
// case stack_big_frame_allowed -DWAY=10 --max-stackframe=5000000
// case stack_big_frame_clean -DWAY=11 clean
// case stack_alloca_loop -DWAY=12 clean
// case stack_returned_pointer -DWAY=13
// case stack_returned_pointer_O2 -DWAY=13 -O2
// case stack_frame_reused -DWAY=14
// case stack_argument_area -DWAY=15
// case stack_ignore_below -DWAY=1 --ignore-range-below-sp=4096-2048 clean
// case stack_origins_swapcontext -DWAY=6 --track-origins=yes
// case stack_leak_held_by_context -DWAY=16
#include <alloca.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <valgrind/valgrind.h>

volatile int kept;
static jmp_buf back;
static ucontext_t outer, inner;
static void *shared;

__attribute__((noinline)) static int leaf(int a)
{
    volatile int room[20];
    for (int i = 0; i < 20; i++)
        room[i] = a + i;
    return room[a & 15];
}

__attribute__((noinline)) static int undefined(void)
{
    int value[8];
    __asm__ volatile("" : : "r"(value) : "memory");
    if (value[3]) // bug
        kept = 1;
    return 0;
}

__attribute__((noinline)) static void leave(int depth)
{
    volatile char frame[500];
    frame[7] = depth;
    shared = (void *)frame;
    if (depth == 0)
        longjmp(back, 1);
    leave(depth - 1);
}

static void context(void)
{
    undefined(); // bug
    swapcontext(&inner, &outer);
    undefined();
    char *block = malloc(9);
    block[9] = 1; // bug
    free(block);
    swapcontext(&inner, &outer);
}

static void clean_context(void)
{
    for (int i = 0; i < 5; i++) {
        kept += leaf(i);
        swapcontext(&inner, &outer);
    }
}

static void holding_context(void)
{
    void *volatile block = malloc(111); // leak
    swapcontext(&inner, &outer);
    kept = block != NULL;
}

static void make(void *stack, size_t size, void (*function)(void))
{
    getcontext(&inner);
    inner.uc_stack.ss_sp = stack;
    inner.uc_stack.ss_size = size;
    inner.uc_link = &outer;
    makecontext(&inner, function, 0);
}

__attribute__((noinline)) static int big(void)
{
    char frame[3000000];
    __asm__ volatile("" : : "r"(frame) : "memory");
    frame[5] = 1;
    __asm__ volatile("" : : "r"(frame) : "memory");
    return frame[5] + (frame[2000000] ? 1 : 2); // bug
}

__attribute__((noinline)) static int medium(void)
{
    volatile char frame[1500000];
    frame[5] = 1;
    frame[1400000] = 2;
    return frame[5] + frame[1400000];
}

__attribute__((noinline)) static char *returned(void)
{
    char local[400];
    char *volatile address = local;
    memset(local, 5, 400);
    return address;
}

int main(void)
{
    char *stack;
#if WAY == 1
    kept = *((volatile char *)__builtin_frame_address(0) - 3000); // bug
#elif WAY == 2
    for (int i = 0; i < 100; i++)
        kept += leaf(i);
#elif WAY == 3
    __asm__ volatile("movb $1, -500(%%rsp)" : : : "memory"); // bug
#elif WAY == 4
    if (!setjmp(back))
        leave(10);
    kept = *(volatile char *)shared; // bug
#elif WAY == 5
    for (volatile int i = 0; i < 10; i++)
        if (!setjmp(back))
            leave(i);
#elif WAY == 6
    stack = malloc(65536);
    make(stack, 65536, context);
    swapcontext(&outer, &inner);
    swapcontext(&outer, &inner);
    free(stack);
#elif WAY == 7
    stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    make(stack, 65536, context);
    swapcontext(&outer, &inner);
    swapcontext(&outer, &inner);
#elif WAY == 8
    stack = malloc(65536);
    make(stack, 65536, clean_context);
    for (int i = 0; i < 6; i++)
        swapcontext(&outer, &inner);
    free(stack);
#elif WAY == 9
    stack = malloc(65536);
    unsigned id = VALGRIND_STACK_REGISTER(stack, stack + 65536);
    make(stack, 65536, context);
    swapcontext(&outer, &inner);
    swapcontext(&outer, &inner);
    VALGRIND_STACK_DEREGISTER(id);
    free(stack);
#elif WAY == 10
    kept = big(); // bug
#elif WAY == 11
    kept = medium();
#elif WAY == 12
    for (int i = 1; i < 50; i++)
        memset(alloca(i * 10), i, i * 10);
#elif WAY == 13
    kept = *(volatile char *)(returned() + 50); // bug
#elif WAY == 14
    leaf(3);
    leaf(4);
    undefined(); // bug
#elif WAY == 15
    undefined(); // bug
    kept = *((volatile char *)__builtin_frame_address(0) - 200); // bug
#elif WAY == 16
    stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    make(stack, 65536, holding_context);
    swapcontext(&outer, &inner);
#endif
    return 0;
}
