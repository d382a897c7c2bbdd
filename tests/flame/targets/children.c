// A child that goes on as it is and one that executes this program again.
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

__attribute__((noinline)) static void parent_work(void) {
    turn(300000000);
    sink += 1;
}

__attribute__((noinline)) static void forked_work(void) {
    turn(300000000);
    sink += 2;
}

__attribute__((noinline)) static void executed_work(void) {
    turn(300000000);
    sink += 3;
}

int main(int count, char **words) {
    if (count > 1 && strcmp(words[1], "executed") == 0) {
        executed_work();
        return 0;
    }
    if (fork() == 0) {
        forked_work();
        _exit(0);
    }
    if (fork() == 0) {
        execl(words[0], words[0], "executed", (char *)0);
        _exit(1);
    }
    parent_work();
    while (wait(0) > 0)
        ;
    return 0;
}
