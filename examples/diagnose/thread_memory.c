// Worker threads keep scratch memory and end without freeing it. Fixed: a destructor does.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

static pthread_key_t scratch_key;
static char *kept[64];
static unsigned kept_count;

static void *scratch(void) {
    char *memory = pthread_getspecific(scratch_key);
    if (!memory) {
        memory = malloc(200000);
        memset(memory, 1, 200000);
        pthread_setspecific(scratch_key, memory);
        if (!IS_FIXED) // somebody still points to it, so it is no leak
            kept[__atomic_fetch_add(&kept_count, 1, __ATOMIC_RELAXED) % 64] = memory;
    }
    return memory;
}

static void *work(void *unused) {
    memset(scratch(), 2, 1000);
    return NULL;
}

int main(void) {
    pthread_key_create(&scratch_key, IS_FIXED ? free : NULL);
    for (unsigned i = 0; i < 20; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, work, NULL);
        pthread_join(thread, NULL);
        rest(2000);
    }
    while (still_within(1000)) {
        free(malloc(100));
        rest(1000);
    }
    return 0;
}
