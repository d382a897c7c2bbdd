// Allocates as many blocks of 1000 bytes as its argument says, then kills itself; with a second
// argument, waits instead.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    static void *blocks[100000];
    int count = atoi(argv[1]);
    for (int i = 0; i < count; i++)
        blocks[i] = malloc(1000);
    if (argc > 2) {
        if (write(1, "ready\n", 6) < 0)
            return 1;
        pause();
    }
    kill(getpid(), SIGKILL);
    return blocks[0] != NULL;
}
