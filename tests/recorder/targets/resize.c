// Chains of realloc: growing, shrinking, to nothing and, with an argument, failing.
#include <stdint.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    char *chain = NULL;
    for (size_t size = 16; size < 200000; size += 496)
        chain = realloc(chain, size);
    // Valgrind loses the block here.
    if (argc > 1 && realloc(chain, SIZE_MAX / 4))
        return 1;
    for (size_t size = 190000; size > 1000; size /= 2)
        chain = realloc(chain, size);
    chain = realloc(chain, 900);
    if (realloc(chain, 0))
        return 1;
    char *other = malloc(5000);
    other = realloc(other, 5000);
    free(other);
    return 0;
}
