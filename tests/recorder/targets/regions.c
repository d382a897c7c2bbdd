// Maps memory in all ways there are, and names its threads.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PAGE 4096

static void *map(size_t pages, int flags, int fd) {
    void *memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (memory == MAP_FAILED)
        exit(1);
    return memory;
}

static void *named_by_itself(void *barrier) {
    free(malloc(10));
    prctl(PR_SET_NAME, "itself", 0, 0, 0);
    pthread_barrier_wait(barrier);
    return NULL;
}

static void *named_by_others(void *barrier) {
    free(malloc(10));
    pthread_barrier_wait(barrier);
    pthread_barrier_wait(barrier);
    return NULL;
}

int main(int argc, char **argv) {
    // The allocator's own mapping is not a region.
    char *large = malloc(10 << 20);
    madvise(large + PAGE - (size_t)large % PAGE, (10 << 20) - PAGE, MADV_NOHUGEPAGE); // a fault for each page
    memset(large, 1, 10 << 20);
    char *memory = map(100, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    munmap(memory + 10 * PAGE, 20 * PAGE);          // a hole: 80 left
    memory = mremap(memory + 30 * PAGE, 70 * PAGE, 200 * PAGE, MREMAP_MAYMOVE); // 210
    int fd = open("/proc/self/exe", O_RDONLY);
    void *file = map(2, MAP_PRIVATE, fd); // 212
    sbrk(3 * PAGE);                       // 215
    sbrk(-PAGE);                          // 214
    munmap(file, 2 * PAGE);               // 212
    munmap(memory + PAGE / 2, PAGE);      // refused
    static pthread_barrier_t barrier; // the second thread may use it after main has returned
    pthread_t first, second;
    pthread_barrier_init(&barrier, NULL, 3);
    pthread_create(&first, NULL, named_by_itself, &barrier);
    pthread_create(&second, NULL, named_by_others, &barrier);
    pthread_barrier_wait(&barrier);
    pthread_setname_np(second, "others");
    pthread_join(first, NULL);
    if (argc > 1) // waits until somebody closes its input
        read(0, &argc, 1);
    free(large);
    // The second thread is still there.
    return 0;
}
