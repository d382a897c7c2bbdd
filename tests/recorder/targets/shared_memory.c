// Shares 64 MiB with its children, if it had any; the heap stays small.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
enum { STEPS = 64, STEP = 1 << 20 };
int main(void) {
    free(malloc(1000));
    usleep(50000);
    char *shared = mmap(NULL, (size_t)STEPS * STEP, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    for (int i = 0; i < STEPS; i++)
        memset(shared + (size_t)i * STEP, 1, STEP);
    return 0;
}
