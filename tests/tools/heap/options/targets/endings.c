// Loses 5,000 bytes and ends in the way it is told; a child loses 700 bytes more.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *volatile kept;

static __attribute__((noinline)) void lose(size_t size) {
    void *volatile block = malloc(size);
    block = NULL;
}

static __attribute__((noinline)) void overwrite(void) {
    volatile char below[8192];
    memset((char *)below, 0, sizeof below);
}

static void *end_in_thread(void *argument) {
    overwrite();
    exit(0);
}

int main(int argc, char **argv) {
    kept = malloc(300);
    lose(5000);
    overwrite();
    if (strcmp(argv[1], "_exit") == 0)
        _exit(0);
    if (strcmp(argv[1], "quick_exit") == 0)
        quick_exit(0);
    if (strcmp(argv[1], "thread") == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, end_in_thread, NULL);
        pthread_join(thread, NULL);
    }
    if (strcmp(argv[1], "fork") == 0) {
        pid_t child = fork();
        if (child == 0) {
            lose(700);
            overwrite();
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    if (strcmp(argv[1], "vfork") == 0) {
        pid_t child = vfork();
        if (child == 0)
            _exit(0);
        waitpid(child, NULL, 0);
    }
    return 0;
}
