// A buffer is enlarged for one huge message and kept. Fixed: it is made small again.
#include <stdlib.h>
#include <string.h>

#include "common.h"

static char *buffer;
static size_t capacity;

static void reserve(size_t size) {
    while (capacity < size) {
        capacity = capacity ? capacity * 2 : 4096;
        buffer = realloc(buffer, capacity);
    }
}

static void receive(size_t size) {
    reserve(size);
    memset(buffer, 1, size);
    if (IS_FIXED && capacity > 65536 && size < capacity / 4) {
        capacity = 4096;
        buffer = realloc(buffer, capacity);
    }
}

int main(void) {
    char *table = malloc(100000);
    memset(table, 0, 100000);
    for (unsigned message = 0; still_within(1000); message++) {
        receive(message == 100 ? 8 << 20 : 1000);
        free(malloc(100));
        rest(500);
    }
    free(table);
    return buffer[0] - 1;
}
