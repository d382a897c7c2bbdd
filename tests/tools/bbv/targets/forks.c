#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) void work(volatile long *value, long times) {
    for (long i = 0; i < times; i++)
        *value += i;
}

int main(void) {
    long value = 0;
    work(&value, 1000);
    pid_t child = fork();
    work(&value, child ? 1000 : 2000);
    if (child)
        waitpid(child, NULL, 0);
    return 0;
}
