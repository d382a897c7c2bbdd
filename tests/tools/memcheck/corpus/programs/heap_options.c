// Options of the heap.
//
// case blocks_aligned_default -DWAY=1 -DLEAST=16 clean
// case blocks_aligned_64 -DWAY=1 -DLEAST=64 clean --alignment=64
// case blocks_aligned_1024 -DWAY=1 -DLEAST=1024 clean --alignment=1024
// case blocks_aligned_64_over -DWAY=2 --alignment=64
// case red_zone_after -DWAY=3 --redzone-size=64
// case red_zone_before -DWAY=4 --redzone-size=64
// case red_zone_none -DWAY=2 --redzone-size=0
// case red_zone_large -DWAY=5 --redzone-size=4096
// case freed_volume_off -DWAY=6 --freelist-vol=0
// case freed_volume_small -DWAY=6 --freelist-vol=500000
// case freed_big_blocks_off -DWAY=6 --freelist-vol=500000 --freelist-big-blocks=600000
// case freed_big_blocks -DWAY=6 --freelist-vol=1000000 --freelist-big-blocks=50000
// case freed_larger_than_volume -DWAY=9
// case freed_larger_than_volume_first -DWAY=10
// case freed_large_one_by_one -DWAY=11
// case freed_larger_than_small_volume -DWAY=9 --freelist-vol=3000000
// case freed_nearly_the_volume_ago -DWAY=12
// case own_allocator -DWAY=7 -DOWN
// case own_allocator_named -DWAY=7 -DOWN --soname-synonyms=somalloc=NONE
// case own_allocator_other -DWAY=7 -DOWN clean --soname-synonyms=somalloc=libnothing.so*
// case own_allocator_left_alone -DWAY=7 -DOWN clean --soname-synonyms=somalloc=nouseintercepts
// case realloc_zero_frees -DWAY=8 alone
// case realloc_zero_kept -DWAY=8 alone --realloc-zero-bytes-frees=no
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

volatile int kept;

#ifdef OWN
#line 1 "malloc.c"
static char arena[1 << 16];
static size_t used;

__attribute__((noinline)) void *malloc(size_t size)
{
    size_t start = used;
    used += (size + 31) & ~15ul;
    *(size_t *)(arena + start) = size;
    return arena + start + 16;
}

__attribute__((noinline)) void free(void *block)
{
}

__attribute__((noinline)) void *calloc(size_t count, size_t size)
{
    return malloc(count * size);
}

__attribute__((noinline)) void *realloc(void *block, size_t size)
{
    void *other = malloc(size);
    if (block)
        memcpy(other, block, ((size_t *)block)[-2] < size ? ((size_t *)block)[-2] : size);
    return other;
}
#line 63 "heap_options.c"
#endif

int main(void)
{
#if WAY == 1
    for (size_t size = 1; size < 100000; size = size * 3 + 1) {
        void *blocks[] = {malloc(size), calloc(size, 2), realloc(malloc(3), size)};
        for (int i = 0; i < 3; i++) {
            printf("%d%d ", i, (uintptr_t)blocks[i] % LEAST == 0);
            free(blocks[i]);
        }
    }
    puts("");
#elif WAY == 2
    char *block = malloc(20);
    block[20] = 1; // bug
    free(block);
#elif WAY == 3
    char *block = malloc(64);
    block[64 + 50] = 1; // bug
    free(block);
#elif WAY == 4
    char *block = malloc(64);
    block[-60] = 1; // bug
    free(block);
#elif WAY == 5
    char *block = malloc(100);
    block[100 + 4000] = 1; // bug
    block[-4000] = 1; // bug
    free(block);
#elif WAY == 6
    char *small = malloc(10), *large = malloc(100000), *others[10];
    free(small);
    free(large);
    for (int i = 0; i < 10; i++)
        free(others[i] = malloc(60000));
    others[9][5] = 1; // bug
#elif WAY == 7
    char *block = malloc(20), *lost = malloc(30);
    block[20] = 1; // bug
    free(block);
    lost = realloc(lost, 40); // leak
    lost = NULL;
#elif WAY == 8
    char *block = realloc(malloc(10), 0); // bug(realloc_zero_frees): realloc() with size 0; bug(realloc_zero_kept): realloc() with size 0; bug(realloc_zero_kept): 0 bytes in 1 blocks are definitely lost
    kept = block == NULL;
    block = NULL;
#elif WAY == 9
    // The second one alone is more than the volume. The first one stays.
    char *first = malloc(2000000), *second = malloc(30000000);
    free(first);
    free(second);
    free(malloc(10));
    first[5] = 1; // bug
#elif WAY == 10
    char *first = malloc(30000000), *second = malloc(2000000);
    free(first);
    free(second);
    free(malloc(10));
    second[5] = 1; // bug
#elif WAY == 11
    char *blocks[8];
    for (int i = 0; i < 8; i++)
        blocks[i] = malloc(5000000 + i);
    for (int i = 0; i < 8; i++)
        free(blocks[i]);
    free(malloc(10));
    for (int i = 4; i < 8; i++)
        blocks[i][5] = 1; // bug
#elif WAY == 12
    // Blocks of all sizes come and go, while a few others live. 20 MB of freed blocks are kept.
    char *first = malloc(100), *held[16] = {0};
    size_t volume = 0, turn = 0;
    free(first);
    while (volume < 19900000) {
        size_t size = 16 + turn * 7919 % 2000;
        free(held[turn % 16]);
        held[turn++ % 16] = malloc(size);
        volume += size;
    }
    first[5] = 1; // bug
    for (int i = 0; i < 16; i++)
        free(held[i]);
#endif
    return 0;
}
