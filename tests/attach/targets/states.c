// Processes that cannot be attached to: the first argument says which. Prints a number, the process
// to try, and waits for the end of stdin.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void *wait_for_ever(void *argument) {
    *(int *)argument = (int)syscall(SYS_gettid);
    for (;;)
        pause();
}

static int tell(int number) {
    char line[32], byte;
    int size = snprintf(line, sizeof line, "%d\n", number);
    if (write(1, line, (size_t)size) < 0)
        return 1;
    while (read(0, &byte, 1) > 0)
        continue;
    return 0;
}

int main(int argc, char **argv) {
    static volatile int tid;
    pthread_t thread;
    free(malloc(10));
    if (strcmp(argv[1], "thread") == 0) {
        pthread_create(&thread, NULL, wait_for_ever, (void *)&tid);
        while (!tid)
            usleep(1000);
        return tell(tid);
    }
    if (strcmp(argv[1], "undumpable") == 0)
        prctl(PR_SET_DUMPABLE, 0);
    if (strcmp(argv[1], "zombie") == 0 || strcmp(argv[1], "traced") == 0) {
        int child = fork();
        if (child == 0) {
            if (strcmp(argv[1], "zombie") == 0)
                _exit(0);
            prctl(PR_SET_PDEATHSIG, 9);
            for (;;)
                pause();
        }
        if (strcmp(argv[1], "traced") == 0)
            ptrace(PTRACE_SEIZE, child, NULL, NULL);
        siginfo_t info;
        if (strcmp(argv[1], "zombie") == 0)
            waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
        return tell(child);
    }
    return tell(getpid());
}
