#include "base/stack.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

void stack_call(size_t size, void (*function)(void)) {
    static ucontext_t caller, called;
    struct rlimit limit;
    void *stack = MAP_FAILED;
    if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < size)
        stack = mmap(NULL, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED || getcontext(&called) != 0) {
        function();
        return;
    }
    called.uc_stack = (stack_t){.ss_sp = stack, .ss_size = size};
    called.uc_link = &caller;
    makecontext(&called, function, 0);
    swapcontext(&caller, &called);
}
