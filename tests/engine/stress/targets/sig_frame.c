// The signal frame as programs and unwinders know it: alignment, red zone, restorer, fields of the
// context, and a backtrace from the handler through the frame into the interrupted function.
#include "stress.h"
#include <dlfcn.h>
#include <execinfo.h>

static uintptr_t interrupted_rsp, frame_address;
static int depth;
static void *trace[64];

static void on_signal(int s, siginfo_t *info, void *context) {
    ucontext_t *c = context;
    frame_address = (uintptr_t)__builtin_frame_address(0);
    interrupted_rsp = (uintptr_t)c->uc_mcontext.gregs[REG_RSP];
    printf("frame aligned %d, context above %d, info above %d\n", frame_address % 16 == 0,
           (uintptr_t)c > frame_address, (uintptr_t)info > frame_address);
    printf("context aligned %d\n", (uintptr_t)c % 8 == 0);
    printf("red zone kept %d\n", (uintptr_t)c->uc_mcontext.fpregs < interrupted_rsp - 128);
    printf("fp state aligned %d\n", (uintptr_t)c->uc_mcontext.fpregs % 64 == 0);
    printf("flags %lx link %d cs %x\n", c->uc_flags, c->uc_link == NULL,
           (unsigned)(c->uc_mcontext.gregs[REG_CSGSFS] & 0xffff));
    printf("stack flags %d\n", c->uc_stack.ss_flags);
    depth = backtrace(trace, 64);
}

static NOINLINE int inner(int n) {
    volatile int value = n;
    raise(SIGUSR1);
    return value + 1;
}

static NOINLINE int outer(int n) {
    return inner(n) * 2;
}

static int found(void *function, size_t size) {
    for (int i = 0; i < depth; i++)
        if ((char *)trace[i] > (char *)function && (char *)trace[i] <= (char *)function + size)
            return i;
    return -1;
}

int main(void) {
    void *warm[4];
    backtrace(warm, 4); // loads the unwinder outside the handler
    stress_handle(SIGUSR1, on_signal, 0);
    printf("result %d\n", outer(20));
    int a = found((void *)on_signal, 500), b = found((void *)inner, 60),
        c = found((void *)outer, 40);
    printf("handler %d, then inner %d, then outer %d\n", a >= 0, b > a, c > b);
    struct sigaction action;
    CHECK(sigaction(SIGUSR1, NULL, &action) == 0);
    Dl_info where;
    CHECK(dladdr(trace[a + 1], &where) != 0);
    printf("restorer in %s\n", strrchr(where.dli_fname, '/') + 1);
    return 0;
}
