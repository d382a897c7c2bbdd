// Exceptions thrown out of handlers of synchronous faults (-fnon-call-exceptions): the unwinder
// must step through the signal frame to the exact faulting instruction.
#include "stress.h"

struct Fault {
    int signal;
    void *address;
};

static int destroyed;
struct Guard {
    ~Guard() { destroyed++; }
};

static void on_fault(int s, siginfo_t *info, void *context) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, s);
    sigprocmask(SIG_UNBLOCK, &set, nullptr);
    throw Fault{s, info->si_addr};
}

static NOINLINE int load(const volatile int *p) {
    Guard guard;
    return *p;
}

static NOINLINE int divide(int a, int b) {
    Guard guard;
    return a / b;
}

int main() {
    stress_handle(SIGSEGV, on_fault, SA_NODEFER);
    stress_handle(SIGFPE, on_fault, SA_NODEFER);
    long segv = 0, fpe = 0;
    for (int i = 0; i < 300; i++) {
        try {
            load(reinterpret_cast<int *>(static_cast<uintptr_t>(16 * i)));
        } catch (const Fault &f) {
            SAME(f.signal, SIGSEGV);
            SAME(f.address, static_cast<uintptr_t>(16 * i));
            segv++;
        }
        try {
            divide(i, segv > 100000);
        } catch (const Fault &f) {
            SAME(f.signal, SIGFPE);
            fpe++;
        }
    }
    printf("segv %ld fpe %ld destroyed %d\n", segv, fpe, destroyed);
    return 0;
}
