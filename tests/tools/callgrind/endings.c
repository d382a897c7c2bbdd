// How a process ends: by exit deep in calls, by a signal, by SIGKILL, by a write to address 0, after
// a fork.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define APART __attribute__((noinline))

APART static int spin(int times) {
    volatile int sum = 0;
    for (int i = 0; i < times; i++)
        sum += i;
    return sum;
}

APART static void end(const char *how) {
    spin(100);
    if (strcmp(how, "exit") == 0)
        exit(spin(10) & 0);
    if (strcmp(how, "kill") == 0)
        raise(SIGKILL);
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "nowhere") == 0)
        *(volatile int *)(strlen(how) - 7) = spin(3);
    if (strcmp(how, "fork") == 0) {
        if (fork() == 0) {
            spin(7);
            _exit(0);
        }
        wait(NULL);
    }
}

int main(int argc, char **argv) {
    end(argc > 1 ? argv[1] : "");
    return 0;
}
