// Children with busy, blocked and signalled threads end at once with the right status: exit from a
// thread, return from main, a fatal signal in a thread, _exit during a storm.
#include "stress.h"
#include <sys/resource.h>

static int mode;
static _Atomic int started;

static void *busy(void *arg) {
    uint64_t h = 0;
    started++;
    for (;;)
        h = stress_mix(h, 1);
    return NULL;
}

static void *blocked(void *arg) {
    started++;
    for (;;)
        pause();
    return NULL;
}

static void *ending(void *arg) {
    while (started < 6)
        stress_sleep_us(100);
    if (mode == 0)
        exit(31);
    if (mode == 1)
        syscall(SYS_exit_group, 32);
    if (mode == 2)
        __builtin_trap();
    if (mode == 3)
        *(volatile int *)8 = 1;
    if (mode == 4)
        kill(getpid(), SIGKILL);
    return NULL;
}

static int child(void) {
    for (int i = 0; i < 3; i++) {
        stress_thread(busy, NULL);
        stress_thread(blocked, NULL);
    }
    pthread_t thread = stress_thread(ending, NULL);
    stress_join(thread);
    return 36;
}

int main(void) {
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    for (int round = 0; round < 4; round++)
        for (mode = 0; mode < 6; mode++) {
            fflush(stdout);
            pid_t pid = fork();
            if (pid == 0)
                return child();
            int status = stress_wait(pid);
            if (round == 0)
                printf("%d: %x\n", mode, (unsigned)status & ~0x80u);
        }
    return 0;
}
