/* Maps and unmaps as many pages as it is told to, in several ways. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int count, char **words) {
    size_t size = (size_t)atoi(words[1]) * 4096;
    // Before and after the rest, so that there is a snapshot.
    mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!size)
        return 0;
    char *area = mmap(NULL, 4 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(area + size, size);
    char *moved = mremap(area + 2 * size, size, 3 * size, MREMAP_MAYMOVE);
    if (sbrk((long)size) == (void *)-1 || sbrk(-(long)size) == (void *)-1)
        return 1;
    munmap(moved, 3 * size);
    mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return 0;
}
