// A child of a program with threads ends without cleaning up.
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_barrier_t ready;

static void *wait_for_ever(void *unused) {
    pthread_barrier_wait(&ready);
    pause();
    return NULL;
}

int main(void) {
    pthread_t threads[3];
    pthread_barrier_init(&ready, NULL, 4);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, wait_for_ever, NULL);
    pthread_barrier_wait(&ready);
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    return 0;
}
