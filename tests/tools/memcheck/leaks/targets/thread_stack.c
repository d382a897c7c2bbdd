// Threads that are still there at the end hold blocks on their stacks; ended ones do not.
#include <pthread.h>
#include <semaphore.h>

#include "target.h"

static sem_t ready;

static void *stay(void *argument) {
    void *volatile here[100];
    here[50] = calloc((size_t)argument, 8);
    sem_post(&ready);
    for (;;)
        pause();
    return here[50];
}
static void *leave(void *argument) {
    void *volatile here[100];
    here[50] = calloc((size_t)argument, 8);
    return NULL;
}
int main(void) {
    pthread_t thread;
    sem_init(&ready, 0, 0);
    for (size_t i = 10; i < 13; i++) {
        pthread_create(&thread, NULL, stay, (void *)i);
        sem_wait(&ready);
    }
    pthread_create(&thread, NULL, leave, (void *)20);
    pthread_join(thread, NULL);
    wipe();
    return 0;
}
