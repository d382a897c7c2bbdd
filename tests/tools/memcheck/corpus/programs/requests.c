// Client requests of memcheck: states of memory, checks, blocks, pools, leak searches, printing.
//
// case request_noaccess -DWAY=1
// case request_undefined -DWAY=2
// case request_defined -DWAY=3 clean
// case request_defined_if_addressable -DWAY=4
// case request_check_addressable -DWAY=5
// case request_check_defined -DWAY=6
// case request_check_value -DWAY=7
// case request_create_block -DWAY=8
// case request_discard -DWAY=9
// case request_get_vbits -DWAY=10 clean
// case request_set_vbits -DWAY=11
// case request_count_errors -DWAY=12
// case request_disable_reporting -DWAY=13 clean
// case request_printf -DWAY=14 unmarked
// case request_printf_backtrace -DWAY=15
// case request_malloclike -DWAY=16
// case request_freelike -DWAY=17
// case request_malloclike_leak -DWAY=18
// case request_freelike_wrong -DWAY=19
// case request_resize -DWAY=20
// case request_leak_check -DWAY=21
// case request_leak_check_added -DWAY=22
// case request_leak_check_changed -DWAY=23
// case request_leak_check_summary -DWAY=24
// case request_count_leaks -DWAY=26
// case request_running -DWAY=27 clean
// case request_call -DWAY=28 clean
// case request_calls -DWAY=31 clean
// case request_calls_optimised -DWAY=31 -O2 clean
// case request_ignored_range -DWAY=29 clean
// case request_origins -DWAY=2 --track-origins=yes
// case request_check_origins -DWAY=6 --track-origins=yes
// case request_check_xml -DWAY=6 xml
// case request_option_change -DWAY=30
// case request_option_changes -DWAY=32 unmarked
// case request_option_change_late -DWAY=33
// case request_reporting_left_disabled -DWAY=34 unmarked
// case request_reporting_disabled_in_thread -DWAY=35 unmarked
// case request_leak_check_first -DWAY=21 --exit-on-first-error=yes --error-exitcode=3
// case leak_at_end_first -DWAY=18 --exit-on-first-error=yes --error-exitcode=3
// case leak_at_end_first_no_status -DWAY=18 --exit-on-first-error=yes
// case leak_at_end_first_xml -DWAY=18 --exit-on-first-error=yes --error-exitcode=3 xml
// case leak_at_end_first_hidden -DWAY=18 --exit-on-first-error=yes --show-leak-kinds=none clean
// case pool_after -DWAY=40
// case pool_freed -DWAY=41
// case pool_not_created -DWAY=42
// case pool_leak -DWAY=43 clean
// case pool_free_wrong -DWAY=44
// case pool_trim -DWAY=45
// case pool_destroyed -DWAY=46
// case pool_change -DWAY=47
// case pool_move -DWAY=48 clean
// case pool_undefined -DWAY=49
// case pool_zeroed -DWAY=50 clean
// case pool_exists -DWAY=51 clean
// case pool_red_zone -DWAY=52
// case pool_meta -DWAY=53
// case pool_freed_in_block -DWAY=54
// case pool_freed_used_again -DWAY=55
// case pool_leak_in_block -DWAY=56
// case pool_meta_counted -DWAY=57
// case pool_freed_no_stacks -DWAY=41 --keep-stacktraces=none
// case pool_freed_xml -DWAY=41 xml
// case pool_xml -DWAY=42 xml
// case roundtrip_pool -DWAY=42 roundtrip
// case roundtrip_client_check -DWAY=6 roundtrip
// case ignore_ranges_annotated -DWAY=29 clean --track-origins=yes
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <valgrind/memcheck.h>

volatile int kept;
static char arena[4096];
static void *global;

__attribute__((noinline)) static void *lose(size_t size)
{
    return malloc(size); // leak
}

__attribute__((noinline)) static long add(long number, long value)
{
    return value + 1;
}

static void *stay_quiet(void *unused)
{
    VALGRIND_DISABLE_ERROR_REPORTING;
    return unused;
}

static long thread_of(long number)
{
    return number;
}

static long product(long number, long first, long second)
{
    return first * second;
}

// Spoils the registers that a function may spoil.
static long spoil(long number, long first, long second, long third)
{
    __asm__ volatile("movq $-1, %%r8; movq %%r8, %%r9; movq %%r8, %%r10; movq %%r8, %%r11\n\t"
                     "movq %%r8, %%xmm0; movq %%r8, %%xmm7; movq %%r8, %%xmm15"
                     ::: "r8", "r9", "r10", "r11", "xmm0", "xmm7", "xmm15");
    return first + second + third;
}

__attribute__((noinline)) static char *from_pool(void *pool, char *place, size_t size)
{
    VALGRIND_MEMPOOL_ALLOC(pool, place, size); // leak
    return place;
}

static void show_leaks(const char *when)
{
    unsigned long leaked = 0, dubious = 0, reachable = 0, suppressed = 0;
    VALGRIND_COUNT_LEAKS(leaked, dubious, reachable, suppressed);
    printf("%s %lu %lu %lu %lu\n", when, leaked, dubious, reachable, suppressed);
    VALGRIND_COUNT_LEAK_BLOCKS(leaked, dubious, reachable, suppressed);
    printf("%s %lu %lu %lu %lu\n", when, leaked, dubious, reachable, suppressed);
}

__attribute__((noinline)) static void way(void)
{
    char local[64] = "local";
    unsigned char bits[64];
    char pool;
    (void)local, (void)bits, (void)pool;
#if WAY == 1
    VALGRIND_MAKE_MEM_NOACCESS(arena + 10, 10);
    arena[9] = 1;
    arena[10] = 1; // bug
    kept = arena[19]; // bug
    arena[20] = 1;
#elif WAY == 2
    VALGRIND_MAKE_MEM_UNDEFINED(arena + 10, 10);
    if (arena[9])
        kept = 1;
    if (arena[10]) // bug
        kept = 2;
#elif WAY == 3
    char *block = malloc(10);
    VALGRIND_MAKE_MEM_DEFINED(block, 10);
    if (block[3])
        kept = 1;
    free(block);
#elif WAY == 4
    char *block = malloc(10);
    VALGRIND_MAKE_MEM_DEFINED_IF_ADDRESSABLE(block, 20);
    if (block[3])
        kept = 1;
    if (block[12]) // bug
        kept = 1;
    free(block);
#elif WAY == 5
    char *block = malloc(10);
    long where = VALGRIND_CHECK_MEM_IS_ADDRESSABLE(block, 20); // bug
    printf("%ld\n", where ? where - (long)block : -1);
    where = VALGRIND_CHECK_MEM_IS_ADDRESSABLE(block, 10);
    printf("%ld\n", where);
    free(block);
#elif WAY == 6
    char *block = malloc(10);
    memset(block, 1, 5);
    long where = VALGRIND_CHECK_MEM_IS_DEFINED(block, 10); // bug
    printf("%ld\n", where ? where - (long)block : -1);
    where = VALGRIND_CHECK_MEM_IS_DEFINED(block, 12); // bug
    printf("%ld\n", where ? where - (long)block : -1);
    free(block);
#elif WAY == 7
    int value[2];
    __asm__ volatile("" : : "r"(value) : "memory");
    VALGRIND_CHECK_VALUE_IS_DEFINED(value[1]); // bug
#elif WAY == 8
    VALGRIND_CREATE_BLOCK(arena, 100, "the arena");
    VALGRIND_MAKE_MEM_NOACCESS(arena + 100, 16);
    arena[104] = 1; // bug
    VALGRIND_MAKE_MEM_NOACCESS(arena + 50, 16);
    arena[54] = 1; // bug
#elif WAY == 9
    unsigned id = VALGRIND_CREATE_BLOCK(arena, 100, "the arena");
    VALGRIND_DISCARD(id);
    VALGRIND_MAKE_MEM_NOACCESS(arena + 50, 16);
    arena[54] = 1; // bug
#elif WAY == 10
    char *block = malloc(10);
    block[3] = 1;
    printf("%d\n", VALGRIND_GET_VBITS(block, bits, 10));
    for (int i = 0; i < 10; i++)
        printf("%d ", bits[i]);
    printf("%d\n", VALGRIND_GET_VBITS(block, bits, 11));
    free(block);
#elif WAY == 11
    char *block = calloc(1, 10);
    memset(bits, 0, 10);
    bits[3] = 0x10;
    printf("%d\n", VALGRIND_SET_VBITS(block, bits, 10));
    if (block[3] & 0xf)
        kept = 1;
    if (block[2])
        kept = 1;
    if (block[3] & 0x10) // bug
        kept = 2;
    free(block);
#elif WAY == 12
    char *block = malloc(10);
    printf("%u\n", VALGRIND_COUNT_ERRORS);
    block[10] = 1; // bug
    block[11] = 1; // bug
    printf("%u\n", VALGRIND_COUNT_ERRORS);
    free(block);
#elif WAY == 13
    char *block = malloc(10);
    VALGRIND_DISABLE_ERROR_REPORTING;
    block[10] = 1;
    VALGRIND_ENABLE_ERROR_REPORTING;
    free(block);
#elif WAY == 14
    VALGRIND_PRINTF("number %d and text %s\n", 5, "word");
    VALGRIND_PRINTF("two\nlines\n");
#elif WAY == 15
    VALGRIND_PRINTF_BACKTRACE("here %d\n", 6); // bug
#elif WAY == 16
    VALGRIND_MAKE_MEM_NOACCESS(arena, sizeof(arena));
    VALGRIND_MALLOCLIKE_BLOCK(arena + 64, 50, 16, 0);
    arena[64 + 50] = 1; // bug
    if (arena[64]) // bug
        kept = 1;
    VALGRIND_FREELIKE_BLOCK(arena + 64, 16);
#elif WAY == 17
    VALGRIND_MALLOCLIKE_BLOCK(arena + 64, 50, 16, 1);
    if (arena[64])
        kept = 1;
    VALGRIND_FREELIKE_BLOCK(arena + 64, 16); // bug
    arena[65] = 1; // bug
#elif WAY == 18
    VALGRIND_MALLOCLIKE_BLOCK(arena + 64, 50, 16, 1); // leak
#elif WAY == 19
    VALGRIND_FREELIKE_BLOCK(arena + 64, 16); // bug
#elif WAY == 20
    VALGRIND_MALLOCLIKE_BLOCK(arena + 64, 50, 16, 0);
    VALGRIND_RESIZEINPLACE_BLOCK(arena + 64, 50, 30, 16);
    arena[64 + 40] = 1; // bug
    VALGRIND_RESIZEINPLACE_BLOCK(arena + 64, 30, 60, 16);
    arena[64 + 55] = 1;
    if (arena[64 + 56]) // bug
        kept = 1;
    VALGRIND_FREELIKE_BLOCK(arena + 64, 16);
#elif WAY == 21
    lose(10); // leak
    VALGRIND_DO_LEAK_CHECK; // leak
    lose(20); // leak
    VALGRIND_DO_LEAK_CHECK;
#elif WAY == 22
    for (int i = 0; i < 3; i++) {
        lose(10); // leak
        VALGRIND_DO_ADDED_LEAK_CHECK;
    }
    VALGRIND_DO_ADDED_LEAK_CHECK;
#elif WAY == 23
    for (int i = 0; i < 3; i++) {
        global = lose(10); // leak
        if (i == 1)
            free(global);
        VALGRIND_DO_CHANGED_LEAK_CHECK;
    }
    VALGRIND_DO_CHANGED_LEAK_CHECK;
#elif WAY == 24
    lose(10); // leak
    VALGRIND_DO_QUICK_LEAK_CHECK;
#elif WAY == 26
    show_leaks("before");
    lose(10); // leak
    global = (char *)lose(20) + 5;
    VALGRIND_DO_QUICK_LEAK_CHECK;
    show_leaks("after");
#elif WAY == 27
    printf("%d\n", RUNNING_ON_VALGRIND);
#elif WAY == 28
    printf("%ld\n", (long)VALGRIND_NON_SIMD_CALL1(add, 41));
#elif WAY == 29
    char *block = malloc(10);
    VALGRIND_DISABLE_ADDR_ERROR_REPORTING_IN_RANGE(block + 10, 8);
    block[10] = 1;
    VALGRIND_ENABLE_ADDR_ERROR_REPORTING_IN_RANGE(block + 10, 8);
    free(block);
#elif WAY == 30
    lose(10); // leak
    VALGRIND_CLO_CHANGE("--show-leak-kinds=definite");
    global = lose(20);
#elif WAY == 31
    double half = 0.5;
    long sum = 0;
    for (long i = 0; i < 3; i++) {
        long one = VALGRIND_NON_SIMD_CALL0(thread_of);
        long two = VALGRIND_NON_SIMD_CALL1(add, i);
        long three = VALGRIND_NON_SIMD_CALL2(product, i, 7);
        long four = VALGRIND_NON_SIMD_CALL3(spoil, i, 10, 100);
        sum += 3 * i;
        half *= 3;
        printf("%ld %ld %ld %ld %ld %g\n", one, two, three, four, sum, half);
    }
#elif WAY == 32
    lose(10); // leak
    VALGRIND_CLO_CHANGE("--num-callers=3");
    VALGRIND_CLO_CHANGE("--nonsense=yes");
    VALGRIND_CLO_CHANGE("--leak-check=no");
#elif WAY == 33
    char *block = lose(10); // leak
    block[10] = 1; // bug
    VALGRIND_CLO_CHANGE("--error-markers=begin,end");
    block[11] = 1; // bug
    VALGRIND_CLO_CHANGE("--leak-check-heuristics=none");
    VALGRIND_CLO_CHANGE("--errors-for-leak-kinds=none");
#elif WAY == 34
    VALGRIND_DISABLE_ERROR_REPORTING;
    VALGRIND_DISABLE_ERROR_REPORTING;
    VALGRIND_ENABLE_ERROR_REPORTING;
    lose(10); // leak
#elif WAY == 35
    pthread_t thread;
    pthread_create(&thread, NULL, stay_quiet, NULL);
    pthread_join(thread, NULL);
    lose(10); // leak
#elif WAY >= 40
    VALGRIND_MAKE_MEM_NOACCESS(arena, sizeof(arena));
#if WAY == 42
    VALGRIND_MEMPOOL_ALLOC(&pool, arena, 10); // bug
    VALGRIND_MEMPOOL_FREE(&pool, arena); // bug
    VALGRIND_DESTROY_MEMPOOL(&pool); // bug
#elif WAY == 50
    VALGRIND_CREATE_MEMPOOL(&pool, 8, 1);
    char *chunk = from_pool(&pool, arena + 64, 40);
    if (chunk[3])
        kept = 1;
    VALGRIND_DESTROY_MEMPOOL(&pool);
#elif WAY == 53
    VALGRIND_CREATE_MEMPOOL_EXT(&pool, 0, 0, VALGRIND_MEMPOOL_METAPOOL | VALGRIND_MEMPOOL_AUTO_FREE);
    char *super = from_pool(&pool, arena, 1024);
    VALGRIND_MALLOCLIKE_BLOCK(super + 64, 50, 0, 1); // leak
    super[64 + 60] = 1;
    VALGRIND_MALLOCLIKE_BLOCK(super + 256, 50, 0, 1); // leak
    VALGRIND_MEMPOOL_FREE(&pool, super);
    super[66] = 1; // bug
    VALGRIND_DESTROY_MEMPOOL(&pool);
#elif WAY == 54
    VALGRIND_CREATE_MEMPOOL(&pool, 8, 0);
    char *block = malloc(1000); // bug
    char *chunk = from_pool(&pool, block + 64, 40);
    VALGRIND_MEMPOOL_FREE(&pool, chunk);
    chunk[5] = 1; // bug
    VALGRIND_DESTROY_MEMPOOL(&pool);
    free(block);
#elif WAY == 55
    VALGRIND_CREATE_MEMPOOL(&pool, 8, 0);
    char *chunk = from_pool(&pool, arena + 64, 40);
    VALGRIND_MEMPOOL_FREE(&pool, chunk);
    chunk = from_pool(&pool, arena + 80, 10);
    chunk[-1] = 1; // bug
    VALGRIND_MEMPOOL_FREE(&pool, chunk);
    chunk[9] = 1; // bug
    VALGRIND_DESTROY_MEMPOOL(&pool);
#elif WAY == 56
    VALGRIND_CREATE_MEMPOOL(&pool, 8, 0);
    char *block = malloc(1000);
    from_pool(&pool, block + 64, 40);
    global = from_pool(&pool, block + 200, 30);
    from_pool(&pool, block + 300, 20);
    VALGRIND_MEMPOOL_FREE(&pool, block + 300);
#elif WAY == 57
    VALGRIND_CREATE_MEMPOOL_EXT(&pool, 0, 0, VALGRIND_MEMPOOL_METAPOOL);
    char *super = from_pool(&pool, arena, 1024);
    VALGRIND_MALLOCLIKE_BLOCK(super + 64, 50, 0, 1);
    VALGRIND_FREELIKE_BLOCK(super + 64, 0); // bug
    super[66] = 1; // bug
    VALGRIND_MEMPOOL_FREE(&pool, super);
    VALGRIND_DESTROY_MEMPOOL(&pool);
#else
    VALGRIND_CREATE_MEMPOOL(&pool, 8, 0);
    char *chunk = from_pool(&pool, arena + 64, 40);
    chunk[39] = 1;
#if WAY == 40
    chunk[40] = 1; // bug
#elif WAY == 41
    VALGRIND_MEMPOOL_FREE(&pool, chunk); // bug
    chunk[5] = 1; // bug
#elif WAY == 43
    from_pool(&pool, arena + 200, 30); // leak
    return;
#elif WAY == 44
    VALGRIND_MEMPOOL_FREE(&pool, chunk + 1); // bug
#elif WAY == 45
    char *second = from_pool(&pool, arena + 200, 30);
    VALGRIND_MEMPOOL_TRIM(&pool, arena, 100);
    chunk[10] = 1;
    chunk[36] = 1; // bug
    second[3] = 1; // bug
#elif WAY == 46
    VALGRIND_DESTROY_MEMPOOL(&pool);
    chunk[3] = 1; // bug
    return;
#elif WAY == 47
    VALGRIND_MEMPOOL_CHANGE(&pool, chunk, arena + 300, 50);
    arena[349] = 1;
    chunk[5] = 1; // bug
#elif WAY == 48
    char other;
    VALGRIND_MOVE_MEMPOOL(&pool, &other);
    VALGRIND_MEMPOOL_FREE(&other, chunk);
    VALGRIND_DESTROY_MEMPOOL(&other);
    return;
#elif WAY == 49
    if (chunk[3]) // bug
        kept = 1;
#elif WAY == 51
    printf("%d\n", VALGRIND_MEMPOOL_EXISTS(&pool));
    VALGRIND_DESTROY_MEMPOOL(&pool);
    printf("%d\n", VALGRIND_MEMPOOL_EXISTS(&pool));
    return;
#elif WAY == 52
    chunk[-3] = 1; // bug
    chunk[45] = 1; // bug
#endif
    VALGRIND_DESTROY_MEMPOOL(&pool);
#endif
#endif
}

int main(void)
{
    way(); // leak
    return 0;
}
