// Signals that are handled, and one that ends the program.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

volatile int handled;

static void handle(int number) {
    handled += number;
}

static void after(void) {
    printf("handled %d\n", handled);
    fflush(stdout);
}

int main(int count, char **words) {
    signal(SIGUSR1, handle);
    signal(SIGUSR2, handle);
    raise(SIGUSR1);
    raise(SIGUSR2);
    after();
    if (count > 1)
        *(volatile int *)8 = 1;
    return 0;
}
