// The library of loads.c.
#include <stdlib.h>

void *plugin_make(size_t size);

void *plugin_make(size_t size) {
    void *volatile block = malloc(size);
    return block;
}
