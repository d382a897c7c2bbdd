// The process is ended by another thread, while main holds a block on its stack.
#include <pthread.h>

#include "target.h"

static void *end(void *argument) {
    void *volatile here = calloc(20, 8);
    calloc(21, 8);
    (void)here;
    wipe();
    _exit(0);
}
int main(void) {
    void *volatile here[10];
    pthread_t thread;
    here[5] = calloc(10, 8);
    calloc(11, 8);
    wipe();
    pthread_create(&thread, NULL, end, NULL);
    pthread_join(thread, NULL);
    return here[5] == NULL;
}
