// Endless recursion: SIGSEGV ends the program, in a thread (of a child) and in the main thread.
#include "stress.h"
#include <sys/resource.h>

static NOINLINE int dig(int n) {
    volatile char frame[500];
    frame[n % 500] = 1;
    return dig(n + 1) + frame[n % 500];
}

static void *work(void *arg) {
    return (void *)(long)dig(0);
}

int main(void) {
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    puts("overflowing");
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        stress_join(stress_thread(work, NULL));
    printf("thread: signal %d\n", stress_wait(pid) & 0x7f);
    fflush(stdout);
    return dig(0);
}
