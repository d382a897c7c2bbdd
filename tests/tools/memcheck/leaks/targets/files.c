// Held from a mapped file that is shorter than its mapping.
#include <fcntl.h>
#include <sys/mman.h>

#include "target.h"

static void make(void) {
    char name[] = "/tmp/quern-leaks-XXXXXX";
    int file = mkstemp(name);
    unlink(name);
    if (file < 0 || ftruncate(file, 8192))
        _exit(2);
    void **shared = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    void **private = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    shared[100] = words(10);
    private[600] = words(11);
    shared[900] = words(12);
    if (ftruncate(file, 4096))
        _exit(2);
    close(file);
}
int main(void) {
    make();
    wipe();
    return 0;
}
