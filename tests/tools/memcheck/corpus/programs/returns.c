// Addresses that are jumped, called or returned to and were never set.
//
// case return_undefined -DWAY=1
// case return_undefined_clang clang -DWAY=1
// case return_undefined_origins -DWAY=1 --track-origins=yes
// case return_undefined_xml -DWAY=1 xml
// case return_undefined_roundtrip -DWAY=1 roundtrip
// case return_not_addressable -DWAY=2
// case return_with_count_undefined -DWAY=4
// case call_undefined_memory -DWAY=5
// case call_undefined_register -DWAY=6
// case call_undefined_origins -DWAY=6 --track-origins=yes
// case jump_undefined -DWAY=7
// case return_defined -DWAY=9 clean
// case return_from_handler -DWAY=10 clean
// case return_not_canonical -DWAY=11
// case call_not_canonical -DWAY=12 unmarked
#include <signal.h>
#include <stdlib.h>
#include <valgrind/memcheck.h>

volatile int kept;

#define CLOBBERED "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory"

__attribute__((noinline, used)) static void called(void)
{
    kept++;
}

// Pushes a return address and what is at place, and returns to the latter.
__attribute__((noinline)) static void return_to(void **place)
{
    __asm__ volatile("sub $128, %%rsp; lea 1f(%%rip), %%rax; push %%rax; push (%0);" // bug
                     "ret; 1: add $128, %%rsp" : : "r"(place) : CLOBBERED);
}

// The same with an instruction that drops another word.
__attribute__((noinline)) static void return_with_count(void **place)
{
    __asm__ volatile("sub $128, %%rsp; lea 1f(%%rip), %%rax; push %%rax; push %%rax; push (%0);" // bug
                     "ret $8; 1: add $128, %%rsp" : : "r"(place) : CLOBBERED);
}

__attribute__((noinline)) static void spoil(void)
{
    void **slot = (void **)__builtin_frame_address(0) + 1;
    VALGRIND_MAKE_MEM_NOACCESS(slot, sizeof *slot);
    kept++;
} // bug

static void handler(int number)
{
    kept++;
}

int main(void)
{
    void **place = malloc(sizeof *place);
    *place = called;
#if WAY != 9
    VALGRIND_MAKE_MEM_UNDEFINED(place, sizeof *place);
#endif
#if WAY == 1 || WAY == 9
    return_to(place); // bug
#elif WAY == 2
    spoil();
#elif WAY == 4
    return_with_count(place); // bug
#elif WAY == 5
    ((void (*)(void))*place)(); // bug
#elif WAY == 6
    __asm__ volatile("mov (%0), %%rax; call *%%rax" : : "r"(place) : CLOBBERED); // bug
#elif WAY == 7
    // The difference of a value with itself is undefined where its bits are.
    __asm__ volatile("lea 1f(%%rip), %%rax; mov (%0), %%rsi; sub (%0), %%rsi;" // bug
                     "add %%rsi, %%rax; jmp *%%rax; 1:" : : "r"(place) : CLOBBERED);
#elif WAY == 10
    signal(SIGUSR1, handler);
    raise(SIGUSR1);
#elif WAY == 11
    VALGRIND_MAKE_MEM_DEFINED(place, sizeof *place);
    *place = (void *)0x4141414141414141;
    return_to(place); // bug
#elif WAY == 12
    VALGRIND_MAKE_MEM_DEFINED(place, sizeof *place);
    *place = (void *)0x4141414141414141;
    ((void (*)(void))*place)(); // bug
#endif
    free(place);
    return 0;
}
