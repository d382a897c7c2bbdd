// A thread holds blocks in its stack and in a variable of its own; another one loses a block for
// every line it reads.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static __thread char *volatile own;
static int ready[2];

static void *hold(void *argument) {
    char *volatile here = malloc(111);
    own = malloc(222);
    write(ready[1], "x", 1);
    pause();
    free(here);
    return NULL;
}

static __attribute__((noinline)) void lose(void) {
    char *volatile block = malloc(3000);
    block = NULL;
}

static __attribute__((noinline)) void overwrite(void) {
    volatile char below[8192];
    memset((char *)below, 0, sizeof below);
}

int main(void) {
    char line[100];
    pthread_t thread;
    pipe(ready);
    pthread_create(&thread, NULL, hold, NULL);
    read(ready[0], line, 1);
    while (fgets(line, sizeof line, stdin)) {
        lose();
        overwrite();
        fputs(line, stdout);
        fflush(stdout);
    }
    return 0;
}
