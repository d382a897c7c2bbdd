// Searches that run over memory that must not be touched into memory that is not there.
//
// case end_strlen -DCALL='kept = strlen(page)'
// case end_strchr -DCALL='kept = !!strchr(page, 121)'
// case end_strcpy -DCALL='strcpy(copy, page)'
// case end_rawmemchr -DCALL='kept = !!rawmemchr(page, 121)'
// case end_memchr -DCALL='kept = !!memchr(page, 121, 5000)' -fno-builtin
// case end_strnlen -DCALL='kept = strnlen(page, 5000)'
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <valgrind/memcheck.h>

volatile long kept;
static char copy[8192];

int main(void)
{
    char *page = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(page + 4096, 4096);
    memset(page, 'x', 4096);
    (void)VALGRIND_MAKE_MEM_NOACCESS(page + 4090, 6);
    (void)VALGRIND_MAKE_MEM_UNDEFINED(page + 100, 1);
    CALL; // bug
    return 0;
}
