// A server keeps every answer it has ever computed. Fixed: the cache has a bound.
#include <stdlib.h>
#include <string.h>

#include "common.h"

enum { BUCKETS = 4096, MOST = 100 };

struct entry {
    struct entry *next;
    unsigned key;
    char answer[200];
};

static struct entry *buckets[BUCKETS];
static unsigned count;

static void cache_put(unsigned key, const char *answer) {
    struct entry *entry = malloc(sizeof *entry);
    entry->key = key;
    strcpy(entry->answer, answer);
    entry->next = buckets[key % BUCKETS];
    buckets[key % BUCKETS] = entry;
    count++;
}

static void cache_drop_some(unsigned key) {
    for (unsigned i = 0; i < BUCKETS && count > MOST; i++) {
        struct entry **at = &buckets[(key + 1 + i) % BUCKETS];
        while (*at && count > MOST) {
            struct entry *gone = *at;
            *at = gone->next;
            free(gone);
            count--;
        }
    }
}

static void serve(unsigned request) {
    char *buffer = malloc(512), *copy = malloc(128);
    memset(buffer, 'x', 100);
    buffer[100] = '\0';
    memcpy(copy, buffer, 100);
    cache_put(request, buffer);
    if (IS_FIXED)
        cache_drop_some(request);
    free(copy);
    free(buffer);
}

int main(void) {
    for (unsigned request = 0; still_within(1200); request++) {
        serve(request);
        rest(200);
    }
    return 0;
}
