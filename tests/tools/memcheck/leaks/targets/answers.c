// Every request and what it answers, on stderr; with Valgrind's header, or with Quern's.
#include <stdio.h>

#include "target.h"

#ifdef WITH_QUERN
#include <quern/quern.h>
#define RUNNING                QUERN_RUNNING()
#define COUNT_ERRORS           QUERN_COUNT_ERRORS()
#define ERRORS_OFF             QUERN_ERRORS_OFF()
#define ERRORS_ON              QUERN_ERRORS_ON()
#define PRINT                  QUERN_PRINTF
#define PRINT_STACK            QUERN_PRINTF_STACK
#define NOACCESS               QUERN_MAKE_NOACCESS
#define UNDEFINED              QUERN_MAKE_UNDEFINED
#define DEFINED                QUERN_MAKE_DEFINED
#define DEFINED_IF_ADDRESSABLE QUERN_MAKE_DEFINED_IF_ADDRESSABLE
#define ADDRESSABLE            QUERN_CHECK_ADDRESSABLE
#define IS_DEFINED             QUERN_CHECK_DEFINED
#define GET_BITS               QUERN_GET_BITS
#define SET_BITS               QUERN_SET_BITS
#define NAME                   QUERN_NAME
#define FORGET                 QUERN_FORGET
#define IGNORE                 QUERN_IGNORE_ADDRESSES
#define HEED                   QUERN_HEED_ADDRESSES
#define POOL_CREATE(p, r, z)   QUERN_POOL_CREATE(p, r, z, 0)
#define POOL_ALLOCATE          QUERN_POOL_ALLOCATE
#define POOL_FREE              QUERN_POOL_FREE
#define POOL_DESTROY           QUERN_POOL_DESTROY
#define POOL_EXISTS            QUERN_POOL_EXISTS
#define ALLOCATED              QUERN_BLOCK_ALLOCATED
#define FREED                  QUERN_BLOCK_FREED
#else
#include <valgrind/memcheck.h>
#define RUNNING                RUNNING_ON_VALGRIND
#define COUNT_ERRORS           VALGRIND_COUNT_ERRORS
#define ERRORS_OFF             VALGRIND_DISABLE_ERROR_REPORTING
#define ERRORS_ON              VALGRIND_ENABLE_ERROR_REPORTING
#define PRINT                  VALGRIND_PRINTF
#define PRINT_STACK            VALGRIND_PRINTF_BACKTRACE
#define NOACCESS               VALGRIND_MAKE_MEM_NOACCESS
#define UNDEFINED              VALGRIND_MAKE_MEM_UNDEFINED
#define DEFINED                VALGRIND_MAKE_MEM_DEFINED
#define DEFINED_IF_ADDRESSABLE VALGRIND_MAKE_MEM_DEFINED_IF_ADDRESSABLE
#define ADDRESSABLE            VALGRIND_CHECK_MEM_IS_ADDRESSABLE
#define IS_DEFINED             VALGRIND_CHECK_MEM_IS_DEFINED
#define GET_BITS               VALGRIND_GET_VBITS
#define SET_BITS               VALGRIND_SET_VBITS
#define NAME                   VALGRIND_CREATE_BLOCK
#define FORGET                 VALGRIND_DISCARD
#define IGNORE                 VALGRIND_DISABLE_ADDR_ERROR_REPORTING_IN_RANGE
#define HEED                   VALGRIND_ENABLE_ADDR_ERROR_REPORTING_IN_RANGE
#define POOL_CREATE            VALGRIND_CREATE_MEMPOOL
#define POOL_ALLOCATE          VALGRIND_MEMPOOL_ALLOC
#define POOL_FREE              VALGRIND_MEMPOOL_FREE
#define POOL_DESTROY           VALGRIND_DESTROY_MEMPOOL
#define POOL_EXISTS            VALGRIND_MEMPOOL_EXISTS
#define ALLOCATED              VALGRIND_MALLOCLIKE_BLOCK
#define FREED                  VALGRIND_FREELIKE_BLOCK
#endif

static char area[256];

// The first bad byte, as a distance from the start of the area; -1: none.
static long distance(unsigned long bad) {
    return bad ? (long)(bad - (unsigned long)area) : -1;
}
static void bits(const char *what, char *start, size_t size) {
    unsigned char got[16] = {0};
    unsigned answer = (unsigned)GET_BITS(start, got, size);
    fprintf(stderr, "%s: %u", what, answer);
    for (size_t i = 0; i < size; i++)
        fprintf(stderr, " %02x", got[i]);
    fprintf(stderr, "\n");
}
int main(void) {
    fprintf(stderr, "running %d\n", RUNNING != 0);
    fprintf(stderr, "addressable %ld\n", distance(ADDRESSABLE(area, 256)));
    NOACCESS(area + 100, 10);
    UNDEFINED(area + 50, 5);
    fprintf(stderr, "addressable %ld\n", distance(ADDRESSABLE(area, 256)));
    fprintf(stderr, "defined %ld\n", distance(IS_DEFINED(area, 256)));
    fprintf(stderr, "defined %ld\n", distance(IS_DEFINED(area, 50)));
    DEFINED_IF_ADDRESSABLE(area + 40, 80);
    fprintf(stderr, "defined %ld\n", distance(IS_DEFINED(area, 256)));
    bits("before", area + 96, 4);
    bits("unaddressable", area + 96, 8);
    unsigned char set[4] = {0xff, 0x0f, 0, 0xa5};
    fprintf(stderr, "set %u\n", (unsigned)SET_BITS(area + 8, set, 4));
    bits("after", area + 8, 4);
    DEFINED(area, 256);
    fprintf(stderr, "defined %ld\n", distance(IS_DEFINED(area, 256)));
    fprintf(stderr, "errors %u\n", (unsigned)COUNT_ERRORS);
    NOACCESS(area + 100, 10);
    ERRORS_OFF;
    *(volatile char *)(area + 100) = 1;
    ERRORS_ON;
    fprintf(stderr, "errors %u\n", (unsigned)COUNT_ERRORS);
    IGNORE(area + 100, 4);
    *(volatile char *)(area + 102) = 1;
    HEED(area + 100, 2);
    *(volatile char *)(area + 102) = 1;
    fprintf(stderr, "errors %u\n", (unsigned)COUNT_ERRORS);
    *(volatile char *)(area + 101) = 1;
    fprintf(stderr, "errors %u\n", (unsigned)COUNT_ERRORS);
    unsigned number = (unsigned)NAME(area + 104, 4, "thing of the test");
    fprintf(stderr, "number %u\n", number);
    *(volatile char *)(area + 105) = 1;
    FORGET(number);
    *(volatile char *)(area + 106) = 1;
    fprintf(stderr, "errors %u\n", (unsigned)COUNT_ERRORS);
    POOL_CREATE(area, 4, 0);
    POOL_ALLOCATE(area, area + 200, 20);
    fprintf(stderr, "pool %u %u\n", (unsigned)POOL_EXISTS(area), (unsigned)POOL_EXISTS(area + 1));
    fprintf(stderr, "undefined %ld\n", distance(IS_DEFINED(area + 200, 20)));
    POOL_FREE(area, area + 200);
    fprintf(stderr, "gone %ld\n", distance(ADDRESSABLE(area + 190, 20)));
    POOL_FREE(area, area + 200);
    POOL_FREE(area + 1, area + 200);
    POOL_DESTROY(area);
    POOL_DESTROY(area);
    ALLOCATED(area + 20, 10, 0, 1);
    FREED(area + 20, 0);
    FREED(area + 20, 0);
    fprintf(stderr, "errors %u\n", (unsigned)COUNT_ERRORS);
    fprintf(stderr, "printed %d\n", PRINT("a %s of %d, %5.2f and %c|%-4x|%04lx|%llu %p\n", "text", -3,
                                          3.14159, 'c', 255, 77l, 1ull << 40, (void *)0x1234));
    fprintf(stderr, "printed %d\n", PRINT("half "));
    fprintf(stderr, "printed %d\n", PRINT("a line\nand one %%\n"));
    fprintf(stderr, "printed %d\n", PRINT_STACK("stack %d %d %d %d %d %d %d\n", 1, 2, 3, 4, 5, 6, 7));
    return 0;
}
