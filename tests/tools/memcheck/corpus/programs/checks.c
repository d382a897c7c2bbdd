// Client requests about memory that is not there, partly there, or somebody else's.
//
// case check_unmapped -DWAY=1
// case check_low_address -DWAY=2
// case check_beyond_break -DWAY=3
// case check_hole -DWAY=4
// case check_unmapped_defined -DWAY=5
// case check_starts_unaddressable -DWAY=6
// case check_ends_unaddressable -DWAY=7
// case check_undefined_around_hole -DWAY=8
// case check_get_vbits_unmapped -DWAY=9 clean
// case check_set_vbits_unmapped -DWAY=10 clean
// case check_no_access_mapping -DWAY=11
// case check_made_defined_unmapped -DWAY=12
// case check_mapped_again -DWAY=13 clean
// case check_get_vbits_hole -DWAY=14 clean
// case pool_in_accessible_block -DWAY=20
// case pool_in_accessible_static -DWAY=21
// case pool_red_zones_between -DWAY=22
// case pool_zero_red_zone -DWAY=23 clean
// case malloclike_on_stack_origin -DWAY=30 --track-origins=yes
// case malloclike_on_stack_origin_loop -DWAY=31 --track-origins=yes
// case malloclike_in_block_origin -DWAY=32 --track-origins=yes
// case malloclike_in_static_origin -DWAY=33 --track-origins=yes
// case freelike_of_malloc -DWAY=40
// case freelike_of_memalign -DWAY=41
// case freelike_of_malloc_quiet -DWAY=40 --show-mismatched-frees=no
#define _GNU_SOURCE
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <valgrind/memcheck.h>

volatile int kept;

static void *pages(unsigned count)
{
    return mmap(NULL, count * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void say(const char *what, const char *start, unsigned long bad)
{
    if (bad)
        printf("%s: byte %ld\n", what, (long)(bad - (unsigned long)start));
    else
        printf("%s: fine\n", what);
}

static int pool;

static char *from_pool(char *at, size_t size)
{
    VALGRIND_MEMPOOL_ALLOC(&pool, at, size);
    return at;
}

static void way(void)
{
    char bits[16384];
    memset(bits, 0, sizeof bits);
#if WAY == 1
    char *gone = pages(2);
    munmap(gone, 8192);
    say("gone", gone, VALGRIND_CHECK_MEM_IS_ADDRESSABLE(gone, 8192)); // bug
    say("inside", gone + 100, VALGRIND_CHECK_MEM_IS_ADDRESSABLE(gone + 100, 10)); // bug
#elif WAY == 2
    say("low", (char *)0x1000, VALGRIND_CHECK_MEM_IS_ADDRESSABLE((char *)0x1000, 16)); // bug
    say("lower", (char *)0x1000, VALGRIND_CHECK_MEM_IS_DEFINED((char *)0x1000, 16)); // bug
#elif WAY == 3
    char *end = sbrk(8192);
    end = sbrk(0);
    say("before", end - 16, VALGRIND_CHECK_MEM_IS_ADDRESSABLE(end - 16, 16));
    say("beyond", end - 16, VALGRIND_CHECK_MEM_IS_ADDRESSABLE(end - 16, 32)); // bug
    say("behind", end, VALGRIND_CHECK_MEM_IS_ADDRESSABLE(end, 1)); // bug
#elif WAY == 4
    char *all = pages(3);
    munmap(all + 4096, 4096);
    say("hole", all, VALGRIND_CHECK_MEM_IS_ADDRESSABLE(all, 12288)); // bug
    say("first", all, VALGRIND_CHECK_MEM_IS_ADDRESSABLE(all, 4096));
    say("last", all, VALGRIND_CHECK_MEM_IS_ADDRESSABLE(all + 8192, 4096));
#elif WAY == 5
    char *all = pages(3);
    munmap(all + 4096, 4096);
    say("hole", all, VALGRIND_CHECK_MEM_IS_DEFINED(all, 12288)); // bug
    VALGRIND_MAKE_MEM_UNDEFINED(all + 100, 10);
    say("both", all, VALGRIND_CHECK_MEM_IS_DEFINED(all, 12288)); // bug
#elif WAY == 6
    char *block = malloc(16);
    say("before", block, VALGRIND_CHECK_MEM_IS_DEFINED(block - 4, 12)); // bug
    say("all", block, VALGRIND_CHECK_MEM_IS_DEFINED(block - 4, 24)); // bug
    free(block);
#elif WAY == 7
    char *block = malloc(16);
    say("behind", block, VALGRIND_CHECK_MEM_IS_DEFINED(block + 8, 12)); // bug
    memset(block, 0, 16);
    say("defined", block, VALGRIND_CHECK_MEM_IS_DEFINED(block + 8, 12)); // bug
    free(block);
#elif WAY == 8
    char *block = calloc(1, 64);
    VALGRIND_MAKE_MEM_NOACCESS(block + 20, 8);
    VALGRIND_MAKE_MEM_UNDEFINED(block + 40, 8);
    say("hole first", block, VALGRIND_CHECK_MEM_IS_DEFINED(block, 64)); // bug
    VALGRIND_MAKE_MEM_UNDEFINED(block + 10, 2);
    say("undefined first", block, VALGRIND_CHECK_MEM_IS_DEFINED(block, 64)); // bug
    free(block);
#elif WAY == 9
    char *gone = pages(1);
    munmap(gone, 4096);
    printf("%d\n", (int)VALGRIND_GET_VBITS(gone, bits, 8));
    printf("%d\n", (int)VALGRIND_GET_VBITS((char *)0x1000, bits, 8));
    printf("%d\n", (int)VALGRIND_GET_VBITS(bits, gone, 8));
    printf("%d\n", (int)VALGRIND_GET_VBITS(bits, bits + 64, 8));
#elif WAY == 10
    char *gone = pages(1);
    munmap(gone, 4096);
    printf("%d\n", (int)VALGRIND_SET_VBITS(gone, bits, 8));
    printf("%d\n", (int)VALGRIND_SET_VBITS(bits, gone, 8));
    printf("%d\n", (int)VALGRIND_SET_VBITS(bits, bits + 64, 8));
#elif WAY == 11
    char *none = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    say("none", none, VALGRIND_CHECK_MEM_IS_ADDRESSABLE(none, 8)); // bug
#elif WAY == 12
    char *gone = pages(1);
    munmap(gone, 4096);
    VALGRIND_MAKE_MEM_DEFINED_IF_ADDRESSABLE(gone, 4096);
    say("gone", gone, VALGRIND_CHECK_MEM_IS_ADDRESSABLE(gone, 8)); // bug
#elif WAY == 13
    char *gone = pages(1);
    munmap(gone, 4096);
    char *again = mmap(gone, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    say("again", again, VALGRIND_CHECK_MEM_IS_DEFINED(again, 4096));
#elif WAY == 14
    char *all = pages(3);
    munmap(all + 4096, 4096);
    printf("%d\n", (int)VALGRIND_GET_VBITS(all, bits, 12288));
#elif WAY == 20
    char *super = malloc(256);
    VALGRIND_CREATE_MEMPOOL(&pool, 8, 0);
    char *chunk = from_pool(super + 64, 40);
    memset(chunk, 1, 40);
    chunk[-1] = 1; // bug
    chunk[-8] = 1; // bug
    chunk[-9] = 1;
    chunk[40] = 1; // bug
    chunk[47] = 1; // bug
    chunk[48] = 1;
    VALGRIND_DESTROY_MEMPOOL(&pool);
    free(super);
#elif WAY == 21
    static char super[256];
    VALGRIND_CREATE_MEMPOOL(&pool, 16, 0);
    char *chunk = from_pool(super + 64, 40);
    chunk[-1] = 1; // bug
    chunk[40] = 1; // bug
    chunk[-17] = 1;
    chunk[57] = 1;
    VALGRIND_DESTROY_MEMPOOL(&pool);
#elif WAY == 22
    static char super[256];
    VALGRIND_CREATE_MEMPOOL(&pool, 8, 1);
    char *first = from_pool(super + 16, 32), *second = from_pool(super + 56, 32);
    first[32] = 1; // bug
    second[-2] = 1; // bug
    first[0] = second[0];
    VALGRIND_MEMPOOL_FREE(&pool, first);
    second[-2] = 1; // bug
    first[3] = 1; // bug
    VALGRIND_DESTROY_MEMPOOL(&pool);
#elif WAY == 23
    static char super[256];
    VALGRIND_CREATE_MEMPOOL(&pool, 0, 0);
    char *chunk = from_pool(super + 64, 40);
    chunk[-1] = 1;
    chunk[40] = 1;
    VALGRIND_DESTROY_MEMPOOL(&pool);
#elif WAY == 30
    char room[64];
    VALGRIND_MALLOCLIKE_BLOCK(room, 32, 0, 0); // bug
    if (room[3]) // bug
        kept = 1;
    VALGRIND_FREELIKE_BLOCK(room, 0);
#elif WAY == 31
    char room[64];
    for (int i = 0; i < 2; i++) {
        VALGRIND_MALLOCLIKE_BLOCK(room + 32 * i, 32, 0, 0); // bug
        kept = room[32 * i] + 1;
        if (kept == 12) // bug
            puts("unlikely");
        VALGRIND_FREELIKE_BLOCK(room + 32 * i, 0);
    }
#elif WAY == 32
    char *super = calloc(1, 128);
    VALGRIND_MALLOCLIKE_BLOCK(super + 32, 32, 0, 0); // bug
    if (super[40]) // bug
        kept = 1;
    VALGRIND_FREELIKE_BLOCK(super + 32, 0);
    free(super);
#elif WAY == 33
    static char super[128];
    VALGRIND_MALLOCLIKE_BLOCK(super + 32, 32, 0, 0); // bug
    if (super[40]) // bug
        kept = 1;
    VALGRIND_FREELIKE_BLOCK(super + 32, 0);
#elif WAY == 40
    char *block = malloc(24);
    VALGRIND_FREELIKE_BLOCK(block, 0); // bug
    block[3] = 1; // bug
#elif WAY == 41
    char *block = memalign(64, 24);
    VALGRIND_FREELIKE_BLOCK(block, 0); // bug
    VALGRIND_FREELIKE_BLOCK(block, 0); // bug
    free(block); // bug
#endif
}

int main(void)
{
    way(); // leak
    return 0;
}
