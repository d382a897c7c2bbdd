// Blocks and chunks that the program declares itself.
#include <stdlib.h>
#include <valgrind/memcheck.h>
#include <valgrind/valgrind.h>

static char area[10000];

static void give(char *start, size_t size) {
    VALGRIND_MALLOCLIKE_BLOCK(start, size, 0, 0);
}

static void take(char *start) {
    VALGRIND_FREELIKE_BLOCK(start, 0);
}

static void resize(char *start, size_t from, size_t to) {
    VALGRIND_RESIZEINPLACE_BLOCK(start, from, to, 0);
}

static void carve(char *pool, char *start, size_t size) {
    VALGRIND_MEMPOOL_ALLOC(pool, start, size);
}

static void give_back(char *pool, char *start) {
    VALGRIND_MEMPOOL_FREE(pool, start);
}

int main(void) {
    give(area, 100);
    give(area + 1000, 50);
    give(area + 2000, 60);
    resize(area, 100, 300);
    resize(area + 1000, 50, 20);
    take(area + 2000);
    char *pool = malloc(5000);
    VALGRIND_CREATE_MEMPOOL(pool, 0, 0);
    carve(pool, pool, 100);
    carve(pool, pool + 200, 60);
    give_back(pool, pool + 200);
    return 0;
}
