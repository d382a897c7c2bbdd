// Makes mappings that cannot be merged, then large blocks, then mappings again. All must succeed.
// Arguments: how many of each.
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { PAGE = 4096, BLOCK = 300000 };

static void map_pages(long count)
{
    char *start = mmap(NULL, count * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) {
        puts("no mapping");
        exit(1);
    }
    for (long i = 0; i < count; i += 2)
        if (mprotect(start + i * PAGE, PAGE, PROT_NONE)) {
            printf("mapping %ld of %ld failed\n", i, count);
            exit(1);
        }
}

int main(int argc, char **argv)
{
    map_pages(atol(argv[1]));
    for (long i = atol(argv[2]); i > 0; i--)
        if (!malloc(BLOCK))
            return 2;
    map_pages(atol(argv[3]));
    return 0;
}
