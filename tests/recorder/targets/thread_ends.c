// Many short threads, with destructors that free after the thread's last line.
#include <pthread.h>
#include <stdlib.h>

static pthread_key_t key;

static void *work(void *argument) {
    pthread_setspecific(key, malloc(500));
    return malloc(100);
}

int main(void) {
    void *result;
    pthread_t thread;
    pthread_key_create(&key, free);
    for (int i = 0; i < 3000; i++) {
        if (pthread_create(&thread, NULL, work, NULL))
            return 1;
        pthread_join(thread, &result);
        free(result);
    }
    return 0;
}
