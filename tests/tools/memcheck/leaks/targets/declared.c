// Blocks of the program's own making: in a block of the heap, in a mapping, in a pool.
#include <sys/mman.h>
#include <valgrind/memcheck.h>

#include "target.h"

static void make(void) {
    char *around = malloc(4096);
    VALGRIND_MAKE_MEM_NOACCESS(around, 4096);
    VALGRIND_MALLOCLIKE_BLOCK(around + 64, 100, 8, 1);
    VALGRIND_MALLOCLIKE_BLOCK(around + 256, 101, 8, 1);
    VALGRIND_MALLOCLIKE_BLOCK(around + 512, 102, 8, 1);
    held[0] = around + 64;
    VALGRIND_FREELIKE_BLOCK(around + 512, 8);
    VALGRIND_RESIZEINPLACE_BLOCK(around + 256, 101, 90, 8);
    char *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    VALGRIND_MALLOCLIKE_BLOCK(mapped + 128, 110, 0, 1);
    VALGRIND_MALLOCLIKE_BLOCK(mapped + 512, 111, 0, 1);
    held[1] = mapped + 128;
    char *pool = malloc(8192);
    VALGRIND_MAKE_MEM_NOACCESS(pool, 8192);
    VALGRIND_CREATE_MEMPOOL(pool, 8, 1);
    for (int i = 0; i < 4; i++)
        VALGRIND_MEMPOOL_ALLOC(pool, pool + 64 + 256 * i, 120 + i);
    held[2] = pool + 64;
    *(void *volatile *)(pool + 64) = pool + 64 + 256;
    VALGRIND_MEMPOOL_FREE(pool, pool + 64 + 512);
    VALGRIND_MEMPOOL_CHANGE(pool, pool + 64 + 768, pool + 64 + 776, 50);
    char *second = malloc(1024);
    VALGRIND_MAKE_MEM_NOACCESS(second, 1024);
    VALGRIND_CREATE_MEMPOOL(second, 0, 1);
    VALGRIND_MEMPOOL_ALLOC(second, second, 100);
    VALGRIND_MEMPOOL_ALLOC(second, second + 200, 100);
    VALGRIND_MEMPOOL_ALLOC(second, second + 400, 100);
    VALGRIND_MEMPOOL_TRIM(second, second, 250);
    VALGRIND_MOVE_MEMPOOL(second, second + 8);
    held[3] = VALGRIND_MEMPOOL_EXISTS(second + 8) && !VALGRIND_MEMPOOL_EXISTS(second)
                  ? malloc(77)
                  : NULL;
}
int main(void) {
    make();
    wipe();
    return 0;
}
