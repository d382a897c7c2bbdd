// The place that the kernel clears when a thread ends, asked for and set again: joining works.
#include <linux/prctl.h>
#include <sys/prctl.h>

#include "stress.h"

static void *ask(void *argument) {
    uint64_t address = 0;
    if (prctl(PR_GET_TID_ADDRESS, &address) != 0)
        return (void *)1; // a kernel without it
    *(uint64_t *)argument = address;
    CHECK(syscall(SYS_set_tid_address, address) == stress_tid());
    return (void *)2;
}

int main(void) {
    static uint32_t own;
    uint64_t address = 0, first;
    for (int i = 0; i < 20; i++) {
        pthread_t thread = stress_thread(ask, &address);
        CHECK(stress_join(thread) != NULL);
    }
    // It lies in the thread's descriptor.
    pthread_t thread = stress_thread(ask, &address);
    first = address;
    long got = (long)stress_join(thread);
    printf("got %ld, address %d\n", got, got == 1 || address - (uint64_t)thread < 4096);
    CHECK(syscall(SYS_set_tid_address, &own) == stress_tid());
    CHECK(got == 1 || (prctl(PR_GET_TID_ADDRESS, &address) == 0 && address == (uint64_t)&own));
    return first == 1;
}
