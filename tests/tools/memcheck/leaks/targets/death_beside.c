// A process that shares this one's memory dies by a signal; this one goes on, and leaks.
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STACK = 64 * 1024 };

static int die(void *unused)
{
    kill(getpid(), SIGTERM);
    return 0;
}

static int death_by(int flags, char *stack)
{
    int status = 0, child = clone(die, stack + STACK, CLONE_VM | flags | SIGCHLD, NULL);
    waitpid(child, &status, 0);
    return WTERMSIG(status);
}

int main(void)
{
    char *stack = malloc(STACK);
    printf("%d %d\n", death_by(0, stack), death_by(CLONE_VFORK, stack));
    free(stack);
    *(char *volatile *)&stack = malloc(77);
    *(char *volatile *)&stack = NULL;
    return 0;
}
