// Held from mappings: private, shared, one that is gone, one that cannot be read.
#include <sys/mman.h>

#include "target.h"

static void **map(int flags) {
    return mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
}
static void make(void) {
    void **kept = map(MAP_PRIVATE), **shared = map(MAP_SHARED), **gone = map(MAP_PRIVATE);
    void **closed = map(MAP_PRIVATE);
    kept[1000] = words(10);
    shared[8191] = words(11);
    gone[5] = words(12);
    munmap(gone, 1 << 16);
    closed[513] = words(13);
    mprotect(closed, 1 << 16, PROT_NONE);
    void **partly = map(MAP_PRIVATE);
    partly[512] = words(14);
    partly[0] = words(15);
    munmap((char *)partly + 4096, 4096);
    // Much address space, little of it touched.
    void **large = mmap(NULL, 1ul << 28, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (large != MAP_FAILED)
        large[1 << 24] = words(16);
}
int main(void) {
    make();
    wipe();
    return 0;
}
