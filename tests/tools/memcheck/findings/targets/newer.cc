// One mistake of each kind that Valgrind reports since 3.21, and their right twins.
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>

#include <new>

static void *volatile kept;
static volatile size_t nothing, three = 3;

__attribute__((noinline)) static void resizes_to_nothing() {
    kept = realloc(malloc(10), nothing);
    free(kept);
    kept = reallocarray(malloc(10), nothing, 4);
    free(kept);
    kept = realloc(nullptr, nothing); // is malloc
    free(kept);
}

__attribute__((noinline)) static void alignments() {
    kept = memalign(three, 100);
    free(kept);
    void *block = nullptr;
    if (posix_memalign(&block, three, 100) == 0)
        free(block);
    kept = memalign(64, nothing);
    free(kept);
    if (posix_memalign(&block, 64, nothing) == 0)
        free(block);
    kept = operator new(8, std::align_val_t(three));
    operator delete(kept, std::align_val_t(4));
}

__attribute__((noinline)) static void sizes() {
    operator delete(operator new(10), size_t(11));
    operator delete[](operator new[](10), size_t(11));
    operator delete(operator new(10, std::align_val_t(64)), size_t(11), std::align_val_t(64));
}

__attribute__((noinline)) static void alignments_of_delete() {
    operator delete(operator new(10, std::align_val_t(64)));
    operator delete(operator new(10), std::align_val_t(64));
    operator delete[](operator new[](10, std::align_val_t(64)), std::align_val_t(32));
    operator delete(operator new(2000000, std::align_val_t(64)), size_t(2000000));
}

__attribute__((noinline)) static void right() {
    struct alignas(128) wide {
        char bytes[256];
    };
    delete new int;
    delete[] new long[7];
    delete new wide;
    delete[] new wide[3];
    free(aligned_alloc(32, 64));
    free(memalign(32, 5));
    void *block = nullptr;
    if (posix_memalign(&block, 32, 5) == 0)
        free(realloc(block, 9));
}

int main() {
    resizes_to_nothing();
    alignments();
    sizes();
    alignments_of_delete();
    right();
    size_t before = mallinfo2().uordblks;
    kept = malloc(1000);
    size_t after = mallinfo2().uordblks;
    free(kept);
    return after - before != 1000;
}
