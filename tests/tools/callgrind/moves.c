// Mappings that grow and move where their place is a matter of what lies around them. Prints what a
// program may rely on.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, MEGABYTE = 1 << 20, LARGE = 64 * MEGABYTE };

static char *map(size_t size) {
    return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                0);
}

static void tell(const char *what, const void *address) {
    printf("%s: %s\n", what, address == MAP_FAILED ? strerror(errno) : "done");
}

// For the kernel these are two mappings.
static void grow_beside_another(void) {
    char *first = map(30 * PAGE), *second = first + 10 * PAGE;
    munmap(first + 20 * PAGE, 10 * PAGE);
    second[0] = 5;
    madvise(first, 10 * PAGE, MADV_DONTFORK);
    tell("grows where it is", mremap(second, 10 * PAGE, 15 * PAGE, 0));
    second = mremap(second, 15 * PAGE, 20 * PAGE, MREMAP_MAYMOVE);
    tell("grows", second);
    second[20 * PAGE - 1] = 6;
    printf("holds %d\n", second[0]);
}

static void stay(void) {
    char *place = map(10 * PAGE);
    tell("is full", mremap(place, 5 * PAGE, 8 * PAGE, 0));
    tell("may not", mremap(place, 5 * PAGE, 5 * PAGE, MREMAP_DONTUNMAP, NULL));
}

// The room that is left to code below 2 GiB is not for data.
static void move_when_all_is_full(void) {
    char *last = map(LARGE);
    for (int i = 0; i < 1500; i++)
        map(MEGABYTE);
    last[7] = 8;
    last = mremap(last, LARGE, 2 * LARGE, MREMAP_MAYMOVE);
    printf("holds %d, %s\n", last[7], (unsigned long)last >> 32 ? "high" : "low");
}

int main(void) {
    grow_beside_another();
    stay();
    move_when_all_is_full();
    return 0;
}
