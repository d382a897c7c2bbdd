// Four threads fork and exec at the same time under signals; pipes carry the children's output.
#include "stress.h"
#include <fcntl.h>
#include <sys/time.h>

static volatile int ticks;
static char self[4096];

static void on_tick(int s, siginfo_t *info, void *context) {
    ticks++;
}

static void *work(void *arg) {
    uint64_t h = 0;
    for (int i = 0; i < 8; i++) {
        int fds[2];
        char number[16], text[16] = "";
        snprintf(number, sizeof(number), "%d", i * 100 + (int)(long)arg);
        CHECK(pipe2(fds, O_CLOEXEC) == 0);
        pid_t pid = i % 2 ? fork() : vfork();
        if (pid == 0) {
            dup2(fds[1], 1);
            execl(self, self, number, (char *)NULL);
            _exit(99);
        }
        close(fds[1]);
        long n, got = 0;
        while ((n = read(fds[0], text + got, sizeof(text) - 1 - (size_t)got)) != 0) {
            CHECK(n > 0);
            got += n;
        }
        close(fds[0]);
        SAME(stress_wait(pid), (i % 7) << 8);
        SAME(atoi(text), 2 * atoi(number));
        h = stress_mix(h, (uint64_t)atoi(text));
    }
    return (void *)h;
}

int main(int argc, char **argv) {
    if (argc > 1) {
        int number = atoi(argv[1]);
        printf("%d\n", number * 2);
        return number / 100 % 7;
    }
    long n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    CHECK(n > 0);
    stress_handle(SIGALRM, on_tick, SA_RESTART);
    struct itimerval every = {{0, 2000}, {0, 2000}};
    CHECK(setitimer(ITIMER_REAL, &every, NULL) == 0);
    pthread_t threads[4];
    for (long i = 0; i < 4; i++)
        threads[i] = stress_thread(work, (void *)i);
    for (int i = 0; i < 4; i++)
        printf("%016llx\n", (unsigned long long)stress_join(threads[i]));
    return 0;
}
