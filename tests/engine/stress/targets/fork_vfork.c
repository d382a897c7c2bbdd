// vfork: the child borrows the parent's memory and stack until it execs or exits.
#include "stress.h"
#include <sched.h>

static volatile int from_child;

static NOINLINE int once(int i, char **argv) {
    pid_t pid = vfork();
    if (pid == 0) {
        from_child = i;
        if (i % 3 == 1) {
            execv("/proc/self/exe", argv);
            _exit(98);
        }
        if (i % 3 == 2) {
            execl("/nonexistent/program", "x", (char *)NULL);
            from_child = -errno;
            _exit(97);
        }
        _exit(5);
    }
    CHECK(pid > 0);
    return stress_wait(pid);
}

static void *spin(void *arg) {
    volatile int *stop = arg;
    uint64_t h = 0;
    while (!*stop)
        h = stress_mix(h, 1);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc > 1)
        return 17;
    char *arguments[] = {argv[0], (char *)"child", NULL};
    volatile int stop = 0;
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        threads[i] = stress_thread(spin, (void *)&stop);
    for (int i = 0; i < 30; i++) {
        int status = once(i, arguments);
        if (i < 3)
            printf("status %x\n", (unsigned)status);
        SAME(status, (i % 3 == 0 ? 5 : i % 3 == 1 ? 17 : 97) << 8);
        SAME(from_child, i % 3 == 2 ? -ENOENT : i);
    }
    stop = 1;
    for (int i = 0; i < 2; i++)
        stress_join(threads[i]);
    puts("vfork agrees");
    return 0;
}
