// Held from thread-local variables and keys: of main, of a thread that stays, of one that has ended.
#include <pthread.h>
#include <semaphore.h>

#include "target.h"

static sem_t ready;
static __thread void *volatile own;
static __thread void *volatile many[200];
static pthread_key_t key;

static void *stay(void *argument) {
    own = calloc(20, 8);
    many[150] = calloc(21, 8);
    pthread_setspecific(key, calloc(22, 8));
    wipe();
    sem_post(&ready);
    for (;;)
        pause();
    return NULL;
}
static void *leave(void *argument) {
    own = calloc(30, 8);
    return NULL;
}
int main(void) {
    pthread_t thread;
    sem_init(&ready, 0, 0);
    pthread_key_create(&key, NULL);
    own = calloc(10, 8);
    many[100] = calloc(11, 8);
    pthread_setspecific(key, calloc(12, 8));
    pthread_create(&thread, NULL, stay, NULL);
    sem_wait(&ready);
    pthread_create(&thread, NULL, leave, NULL);
    pthread_join(thread, NULL);
    wipe();
    return 0;
}
