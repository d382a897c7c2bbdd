// Four threads make short system calls and check each result while signals rain on them.
#include "stress.h"
#include <fcntl.h>

enum { THREADS = 4, ROUNDS = 1500 };

static volatile int stop;
static _Atomic long handled;
static pthread_t threads[THREADS];
static _Atomic int finished;

static void on_signal(int s, siginfo_t *info, void *context) {
    handled++;
    CHECK(getpid() == info->si_pid);
}

static void *work(void *arg) {
    pid_t pid = getpid(), tid = stress_tid();
    uint64_t sum = 0;
    for (int i = 0; i < ROUNDS; i++) {
        SAME(syscall(SYS_getpid), pid);
        SAME(syscall(SYS_gettid), tid);
        unsigned char *p = stress_map(PAGE * 2, PROT_READ | PROT_WRITE);
        p[PAGE] = (unsigned char)i;
        CHECK(mprotect(p, PAGE, PROT_READ) == 0);
        sum = stress_mix(sum, p[PAGE]);
        CHECK(munmap(p, PAGE * 2) == 0);
        int fd = open("/proc/self/status", O_RDONLY);
        CHECK(fd >= 0);
        char text[16];
        CHECK(pread(fd, text, 5, 0) == 5 && memcmp(text, "Name:", 5) == 0);
        CHECK(close(fd) == 0);
        CHECK(syscall(SYS_close, -1) == -1 && errno == EBADF);
        CHECK(access("/nonexistent", R_OK) == -1 && errno == ENOENT);
    }
    finished++;
    while (!stop)
        stress_sleep_us(100);
    return (void *)sum;
}

int main(void) {
    stress_handle(SIGUSR1, on_signal, SA_RESTART);
    for (int i = 0; i < THREADS; i++)
        threads[i] = stress_thread(work, NULL);
    for (int i = 0; finished < THREADS || handled < 200; i++) {
        pthread_kill(threads[i % THREADS], SIGUSR1);
        if (i % 8 == 0)
            stress_sleep_us(50);
    }
    stop = 1;
    for (int i = 0; i < THREADS; i++)
        printf("%016llx\n", (unsigned long long)stress_join(threads[i]));
    return 0;
}
