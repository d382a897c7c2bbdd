// Every way in which the address of a bad access is described.
//
// case place_null -DWHERE=1
// case place_low -DWHERE=2
// case place_unmapped -DWHERE=3
// case place_code -DWHERE=4
// case place_read_only_data -DWHERE=5
// case place_below_stack -DWHERE=6
// case place_dead_frame -DWHERE=7
// case place_dead_frame_O2 -DWHERE=7 -O2
// case place_stack_noaccess -DWHERE=8
// case place_data_noaccess -DWHERE=9
// case place_bss_noaccess -DWHERE=10
// case place_static_local_noaccess -DWHERE=11
// case place_mapping_noaccess -DWHERE=12
// case place_file_mapping_noaccess -DWHERE=13
// case place_client_block -DWHERE=14
// case place_inside_heap_noaccess -DWHERE=15
// case place_recycled -DWHERE=16 --freelist-vol=0
// case place_caller_frame_noaccess -DWHERE=17
// case place_between_blocks -DWHERE=18
// case place_munmapped -DWHERE=19
// case place_protected -DWHERE=20
// case place_brk -DWHERE=21
// case place_thread_local_noaccess -DWHERE=22
// case place_var_info -DWHERE=8 --read-var-info=yes
// case place_shared_mapping -DWHERE=23
// case place_noncanonical -DWHERE=24
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <valgrind/memcheck.h>

char written[64] = "written";
char zero[64];
static __thread char own[64];
volatile char kept;

__attribute__((noinline)) static char *dead(void)
{
    char local[256];
    char *volatile address = local;
    for (int i = 0; i < 256; i++)
        local[i] = i;
    return address;
}

__attribute__((noinline)) static void use(volatile char *address)
{
    kept = *address; // bug
}

__attribute__((noinline)) static void deeper(volatile char *address)
{
    use(address); // bug
}

int main(void)
{
    char local[64] = "local";
    static char inner[64] = "inner";
    (void)local, (void)inner;
#if WHERE == 1
    use(NULL); // bug
#elif WHERE == 2
    use((char *)0x18); // bug
#elif WHERE == 3
    use((char *)0x70000000); // bug
#elif WHERE == 4
    *(volatile char *)main = 1; // bug
#elif WHERE == 5
    *(volatile char *)"text" = 1; // bug
#elif WHERE == 6
    use((char *)__builtin_frame_address(0) - 5000); // bug
#elif WHERE == 7
    use(dead()); // bug
#elif WHERE == 8
    VALGRIND_MAKE_MEM_NOACCESS(local, 32);
    use(local + 8); // bug
#elif WHERE == 9
    VALGRIND_MAKE_MEM_NOACCESS(written, 32);
    use(written + 8); // bug
#elif WHERE == 10
    VALGRIND_MAKE_MEM_NOACCESS(zero, 32);
    use(zero + 8); // bug
#elif WHERE == 11
    VALGRIND_MAKE_MEM_NOACCESS(inner, 32);
    use(inner + 8); // bug
#elif WHERE == 12
    char *map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    VALGRIND_MAKE_MEM_NOACCESS(map, 32);
    use(map + 8); // bug
#elif WHERE == 13
    int file = open("/etc/passwd", O_RDONLY);
    char *map = mmap(NULL, 100, PROT_READ, MAP_PRIVATE, file, 0);
    VALGRIND_MAKE_MEM_NOACCESS(map, 32);
    use(map + 8); // bug
#elif WHERE == 14
    VALGRIND_CREATE_BLOCK(zero, 48, "table of zeroes");
    VALGRIND_MAKE_MEM_NOACCESS(zero, 32);
    use(zero + 8); // bug
#elif WHERE == 15
    char *block = calloc(1, 100);
    VALGRIND_MAKE_MEM_NOACCESS(block + 10, 5);
    use(block + 12); // bug
    free(block);
#elif WHERE == 16
    char *block = malloc(100);
    free(block);
    char *second = malloc(90);
    use(second + 95); // bug
    free(second);
#elif WHERE == 17
    VALGRIND_MAKE_MEM_NOACCESS(local, 32);
    deeper(local + 8); // bug
#elif WHERE == 18
    char *one = malloc(32), *two = malloc(32);
    use(one + 40); // bug
    free(one);
    free(two);
#elif WHERE == 19
    char *map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(map, 8192);
    use(map + 8); // bug
#elif WHERE == 20
    char *map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(map, 8192, PROT_NONE);
    use(map + 8); // bug
#elif WHERE == 21
    char *end = sbrk(4096);
    VALGRIND_MAKE_MEM_NOACCESS(end, 64);
    use(end + 8); // bug
#elif WHERE == 22
    memset(own, 1, sizeof(own));
    VALGRIND_MAKE_MEM_NOACCESS(own, 32);
    use(own + 8); // bug
#elif WHERE == 23
    char *map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    VALGRIND_MAKE_MEM_NOACCESS(map, 32);
    use(map + 8); // bug
#elif WHERE == 24
    use((char *)0x8000000000000000ul); // bug
#endif
    return 0;
}
