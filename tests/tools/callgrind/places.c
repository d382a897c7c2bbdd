// Prints where the program's memory lies, as it is asked for, given back and enlarged.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, MANY = 24 };

static char data[100];

static void tell(const char *what, const void *address) {
    printf("%s %#lx\n", what, (unsigned long)address);
}

static char *map(size_t pages, int prot) {
    return mmap(NULL, pages * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void *thread(void *unused) {
    tell("thread", __builtin_frame_address(0));
    return malloc(100);
}

static void map_and_unmap(void) {
    char *places[MANY];
    for (int i = 0; i < MANY; i++)
        tell("mapped", places[i] = map(1 + i * 5 % 17, PROT_READ | (i % 3 ? PROT_WRITE : 0)));
    for (int i = 0; i < MANY; i += 2)
        munmap(places[i], (1 + i * 5 % 17) * PAGE);
    // Into the gaps, or behind everything.
    for (int i = 0; i < MANY; i += 2)
        tell("again", places[i] = map(1 + i * 7 % 19, PROT_READ | PROT_WRITE));
    tell("huge", map(4 * 512, PROT_READ | PROT_WRITE));
    tell("code", map(3, PROT_READ | PROT_EXEC));
    tell("wished", mmap(places[1] + PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    char *last = map(700, PROT_READ | PROT_WRITE);
    tell("grows", mremap(last, 700 * PAGE, 900 * PAGE, MREMAP_MAYMOVE));
    // Side by side with another, which has come from elsewhere.
    char *first = map(300, PROT_READ | PROT_WRITE), *second = map(300, PROT_READ | PROT_WRITE);
    first[0] = second[0] = 1;
    first = mremap(first, 300 * PAGE, 1500 * PAGE, MREMAP_MAYMOVE);
    second = mremap(second, 300 * PAGE, 1600 * PAGE, MREMAP_MAYMOVE);
    second[0] = 2;
    tell("first", first);
    tell("second", second);
    tell("second", mremap(second, 1600 * PAGE, 1700 * PAGE, MREMAP_MAYMOVE));
    tell("moves", mremap(places[3], PAGE, 800 * PAGE, MREMAP_MAYMOVE));
}

static void allocate(void) {
    for (int i = 4; i < 24; i += 3) {
        char *block = malloc(1ul << i);
        block[0] = 1;
        tell("allocated", block);
    }
    tell("break", sbrk(0));
    // The break comes to its end, and the allocator maps instead.
    for (int i = 0; i < 100; i++)
        tell("block", malloc(80000 + i * 400));
    tell("break", sbrk(0));
    tell("none", sbrk(9 << 20));
}

int main(int argc, char **argv, char **envp) {
    tell("code", (void *)main);
    tell("data", data);
    // Where the program can tell the difference only in the upper half.
    printf("strings %#lx %#lx\n", (uintptr_t)argv[0] & 0xffffffff, (uintptr_t)envp[0] & 0xffffffff);
    printf("random, platform %#lx %#lx\n", getauxval(AT_RANDOM) & 0xffffffff,
           getauxval(AT_PLATFORM) & 0xffffffff);
    printf("stack %#lx\n", (uintptr_t)__builtin_frame_address(0) & 0xffffffff);
    allocate();
    map_and_unmap();
    pthread_t other;
    void *result;
    pthread_create(&other, NULL, thread, NULL);
    pthread_join(other, &result);
    tell("its own", result);
    struct timespec now;
    return clock_gettime(CLOCK_MONOTONIC, &now);
}
