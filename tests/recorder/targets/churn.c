// Allocates and frees without end, and keeps count in a file that outlives it: its pid, then the
// bytes that are allocated. `churn FILE`.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv) {
    static void *blocks[1000];
    static long sizes[1000];
    int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, 4096) < 0)
        return 1;
    volatile long *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    unsigned state = (unsigned)getpid();
    shared[0] = getpid();
    for (;;) {
        state = state * 1103515245 + 12345;
        unsigned at = (state >> 16) % 1000;
        free(blocks[at]);
        shared[1] -= sizes[at];
        sizes[at] = 1 + (state >> 8) % 2000;
        blocks[at] = malloc(sizes[at]);
        shared[1] += sizes[at];
    }
}
