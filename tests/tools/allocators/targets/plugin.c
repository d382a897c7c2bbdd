// A library with an allocator of its own, for loader.c. It allocates first while it is being loaded.
#include <stddef.h>
#include <string.h>

static _Alignas(16) char memory[1 << 20];
static size_t used;
void *kept[100];

__attribute__((noinline)) void *own_malloc(size_t size) {
    size_t *place = (size_t *)(memory + used);
    used += (size + 31) & ~15ul;
    place[0] = size;
    return place + 2;
}

__attribute__((noinline)) void *own_mallocx(size_t size, int flags) {
    (void)flags;
    return own_malloc(size);
}

__attribute__((noinline)) void *own_realloc(void *block, size_t size) {
    void *moved = own_malloc(size);
    memcpy(moved, block, ((size_t *)block)[-2]);
    return moved;
}

__attribute__((noinline)) void own_free(void *block) {
    memset(block, 0, ((size_t *)block)[-2]);
}

int own_mallctlbymib(void) { // by this name, jemalloc is recognised
    return 0;
}

__attribute__((constructor)) static void start(void) {
    for (int i = 0; i < 10; i++)
        kept[i] = own_malloc(1000);
}

void use(void) {
    for (int i = 10; i < 20; i++)
        kept[i] = own_mallocx(2000, 0);
    for (int i = 0; i < 5; i++)
        kept[i] = own_realloc(kept[i], 3000);
    for (int i = 15; i < 20; i++)
        own_free(kept[i]);
}
