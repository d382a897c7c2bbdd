// Jumps to where no code is, and fatal signals.
//
// case jump_null -DTO=0 unmarked
// case jump_low -DTO=0x10 unmarked
// case jump_unmapped -DTO=0x60000000 unmarked
// case jump_heap -DTO=heap unmarked
// case jump_freed -DTO=heap -DFREED unmarked
// case jump_stack -DTO=stack unmarked
// case jump_data -DTO=data unmarked
// case jump_null_xml -DTO=0 xml
// case jump_null_caught -DTO=0 -DCAUGHT unmarked
// case jump_return_address -DTO=0x50 -DRETURN unmarked
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>

static sigjmp_buf back;
char data[16];

static void caught(int number)
{
    siglongjmp(back, 1);
}

int main(void)
{
    char *heap = malloc(16);
    char stack[16] = {0xc3};
    heap[0] = 0xc3;
#ifdef FREED
    free(heap);
#endif
#ifdef CAUGHT
    struct sigaction action = {.sa_handler = caught};
    sigaction(SIGSEGV, &action, NULL);
    if (sigsetjmp(back, 1)) {
        free(heap);
        return 0;
    }
#endif
    ((void (*)(void))TO)(); // bug
    return 0;
}
