// Held from memory that was written and then made read-only.
#include <sys/mman.h>

#include "target.h"

static void make(void) {
    void **frozen =
        mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    frozen[1000] = words(10);
    mprotect(frozen, 1 << 16, PROT_READ);
}
int main(void) {
    make();
    wipe();
    return 0;
}
