// Large buffers of system calls, which are not looked through where the heap knows better.
//
// case read_large -DCALL='read(zero, block + 16, 19984)' clean
// case read_large_after -DCALL='read(zero, block + 16, 19985)'
// case read_large_before -DCALL='read(zero, block - 8, 2000)'
// case read_large_freed -DCALL='free(block), read(zero, block, 20000), block = 0'
// case read_large_hole -DCALL='VALGRIND_MAKE_MEM_NOACCESS(block + 9000, 8), read(zero, block, 20000)'
// case write_large_undefined -DCALL='memset(block, 65, 19000), write(null, block, 20000)'
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <valgrind/memcheck.h>

int main(void) {
    char *block = malloc(20000);
    int zero = open("/dev/zero", O_RDONLY), null = open("/dev/null", O_WRONLY);
    CALL; // bug
    free(block);
    close(zero);
    close(null);
    return 0;
}
