/* Requests from a program to the tool that it runs under.
 *
 * Outside Quern each costs six instructions and gives its default; with NQUERN defined before the
 * header is included, none is left in the program at all. Codes and instructions are those that
 * Valgrind defined, so that either tool understands a program that was annotated for the other.
 *
 * Plain C99 and C++98 for gcc and clang. Elsewhere than on x86-64 Linux the requests do nothing.
 * Addresses are pointers, sizes are in bytes, answers are unsigned long. docs/requests.md tells
 * more.
 */
#ifndef QUERN_QUERN_H
#define QUERN_QUERN_H

#include <stdarg.h>
#include <stddef.h>

#if !defined(NQUERN) && defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) &&          \
    !defined(__ILP32__)
#define QUERN_IS_ACTIVE 1
#else
#define QUERN_IS_ACTIVE 0
#endif

/* ---- codes ---- */

enum quern_request_code {
    QUERN_CODE_RUNNING = 0x1001,
    QUERN_CODE_DISCARD_CODE = 0x1002,
    QUERN_CODE_COUNT_ERRORS = 0x1201,
    QUERN_CODE_COMMAND = 0x1202,
    QUERN_CODE_BLOCK_ALLOCATED = 0x1301,
    QUERN_CODE_BLOCK_FREED = 0x1302,
    QUERN_CODE_POOL_CREATE = 0x1303,
    QUERN_CODE_POOL_DESTROY = 0x1304,
    QUERN_CODE_POOL_ALLOCATE = 0x1305,
    QUERN_CODE_POOL_FREE = 0x1306,
    QUERN_CODE_POOL_TRIM = 0x1307,
    QUERN_CODE_POOL_MOVE = 0x1308,
    QUERN_CODE_POOL_CHANGE = 0x1309,
    QUERN_CODE_POOL_EXISTS = 0x130a,
    QUERN_CODE_BLOCK_RESIZED = 0x130b,
    QUERN_CODE_PRINT = 0x1403,
    QUERN_CODE_PRINT_STACK = 0x1404,
    QUERN_CODE_STACK_REGISTER = 0x1501,
    QUERN_CODE_STACK_DEREGISTER = 0x1502,
    QUERN_CODE_STACK_CHANGE = 0x1503,
    QUERN_CODE_ERRORS = 0x1801,
    QUERN_CODE_MAKE_NOACCESS = 0x4d430000,
    QUERN_CODE_MAKE_UNDEFINED = 0x4d430001,
    QUERN_CODE_MAKE_DEFINED = 0x4d430002,
    QUERN_CODE_FORGET = 0x4d430003,
    QUERN_CODE_CHECK_ADDRESSABLE = 0x4d430004,
    QUERN_CODE_CHECK_DEFINED = 0x4d430005,
    QUERN_CODE_LEAK_CHECK = 0x4d430006,
    QUERN_CODE_COUNT_LEAKS = 0x4d430007,
    QUERN_CODE_GET_BITS = 0x4d430008,
    QUERN_CODE_SET_BITS = 0x4d430009,
    QUERN_CODE_NAME = 0x4d43000a,
    QUERN_CODE_MAKE_DEFINED_IF_ADDRESSABLE = 0x4d43000b,
    QUERN_CODE_COUNT_LEAK_BLOCKS = 0x4d43000c,
    QUERN_CODE_HEED_ADDRESSES = 0x4d43000d,
    QUERN_CODE_IGNORE_ADDRESSES = 0x4d43000e
};

/* ---- making a request ---- */

#if QUERN_IS_ACTIVE
/* Four rotations that add up to none and an exchange that changes nothing: no compiler writes that.
 * rax: address of the six words; rdx: the default, and then the answer. */
static __inline__ __attribute__((unused)) unsigned long
quern_request(unsigned long otherwise, unsigned long code, unsigned long a, unsigned long b,
              unsigned long c, unsigned long d, unsigned long e) {
    volatile unsigned long words[6];
    unsigned long answer;
    words[0] = code;
    words[1] = a;
    words[2] = b;
    words[3] = c;
    words[4] = d;
    words[5] = e;
    __asm__ volatile("rolq $3, %%rdi\n\t"
                     "rolq $13, %%rdi\n\t"
                     "rolq $61, %%rdi\n\t"
                     "rolq $51, %%rdi\n\t"
                     "xchgq %%rbx, %%rbx"
                     : "=d"(answer)
                     : "a"(&words[0]), "0"(otherwise)
                     : "cc", "memory");
    return answer;
}
#else
static __inline__ unsigned long quern_request(unsigned long otherwise, unsigned long code,
                                              unsigned long a, unsigned long b, unsigned long c,
                                              unsigned long d, unsigned long e) {
    (void)code, (void)a, (void)b, (void)c, (void)d, (void)e;
    return otherwise;
}
#endif

#define QUERN_REQUEST(otherwise, code, a, b, c, d, e)                                              \
    quern_request((unsigned long)(otherwise), (unsigned long)(code), (unsigned long)(a),           \
                  (unsigned long)(b), (unsigned long)(c), (unsigned long)(d), (unsigned long)(e))

/* ---- the run ---- */

/* Not 0 under Quern or Valgrind. */
#define QUERN_RUNNING() QUERN_REQUEST(0, QUERN_CODE_RUNNING, 0, 0, 0, 0, 0)
/* How many errors have been found so far. */
#define QUERN_COUNT_ERRORS() QUERN_REQUEST(0, QUERN_CODE_COUNT_ERRORS, 0, 0, 0, 0, 0)
/* Errors of this thread are passed over, until as many calls of the other. */
#define QUERN_ERRORS_OFF() ((void)QUERN_REQUEST(0, QUERN_CODE_ERRORS, 1, 0, 0, 0, 0))
#define QUERN_ERRORS_ON()  ((void)QUERN_REQUEST(0, QUERN_CODE_ERRORS, -1L, 0, 0, 0, 0))
/* A command as a debugger would give it, such as "leak_check summary". 0: it is known. */
#define QUERN_COMMAND(text) QUERN_REQUEST(0, QUERN_CODE_COMMAND, text, 0, 0, 0, 0)
/* The code in a range has been changed. Never needed: changes are noticed. */
#define QUERN_DISCARD_CODE(start, size)                                                            \
    ((void)QUERN_REQUEST(0, QUERN_CODE_DISCARD_CODE, start, size, 0, 0, 0))

#if defined(__GNUC__)
#define QUERN_PRINTS __attribute__((format(printf, 1, 2), unused))
#else
#define QUERN_PRINTS
#endif

/* printf into the log, after **PID**; the second shows the call stack as well. The number of
 * characters. */
QUERN_PRINTS static int QUERN_PRINTF(const char *format, ...) {
    int count;
    va_list arguments;
    va_start(arguments, format);
    count = (int)QUERN_REQUEST(0, QUERN_CODE_PRINT, format, &arguments, 0, 0, 0);
    va_end(arguments);
    return count;
}
QUERN_PRINTS static int QUERN_PRINTF_STACK(const char *format, ...) {
    int count;
    va_list arguments;
    va_start(arguments, format);
    count = (int)QUERN_REQUEST(0, QUERN_CODE_PRINT_STACK, format, &arguments, 0, 0, 0);
    va_end(arguments);
    return count;
}

/* ---- memory ---- */

/* What the tool shall take a range for. */
#define QUERN_MAKE_NOACCESS(start, size)                                                           \
    ((void)QUERN_REQUEST(0, QUERN_CODE_MAKE_NOACCESS, start, size, 0, 0, 0))
#define QUERN_MAKE_UNDEFINED(start, size)                                                          \
    ((void)QUERN_REQUEST(0, QUERN_CODE_MAKE_UNDEFINED, start, size, 0, 0, 0))
#define QUERN_MAKE_DEFINED(start, size)                                                            \
    ((void)QUERN_REQUEST(0, QUERN_CODE_MAKE_DEFINED, start, size, 0, 0, 0))
#define QUERN_MAKE_DEFINED_IF_ADDRESSABLE(start, size)                                             \
    ((void)QUERN_REQUEST(0, QUERN_CODE_MAKE_DEFINED_IF_ADDRESSABLE, start, size, 0, 0, 0))
/* The address of the first byte that is not as it should be, after a report; 0: all are. */
#define QUERN_CHECK_ADDRESSABLE(start, size)                                                       \
    QUERN_REQUEST(0, QUERN_CODE_CHECK_ADDRESSABLE, start, size, 0, 0, 0)
#define QUERN_CHECK_DEFINED(start, size)                                                           \
    QUERN_REQUEST(0, QUERN_CODE_CHECK_DEFINED, start, size, 0, 0, 0)
#define QUERN_CHECK_VALUE(variable) QUERN_CHECK_DEFINED(&(variable), sizeof(variable))
/* Copies which bits are undefined (1) to or from `bits`. 1: done; 3: something is not addressable;
 * 0: not under memcheck. */
#define QUERN_GET_BITS(start, bits, size)                                                          \
    QUERN_REQUEST(0, QUERN_CODE_GET_BITS, start, bits, size, 0, 0)
#define QUERN_SET_BITS(start, bits, size)                                                          \
    QUERN_REQUEST(0, QUERN_CODE_SET_BITS, start, bits, size, 0, 0)
/* Bad accesses to a range are not reported, or are again. */
#define QUERN_IGNORE_ADDRESSES(start, size)                                                        \
    ((void)QUERN_REQUEST(0, QUERN_CODE_IGNORE_ADDRESSES, start, size, 0, 0, 0))
#define QUERN_HEED_ADDRESSES(start, size)                                                          \
    ((void)QUERN_REQUEST(0, QUERN_CODE_HEED_ADDRESSES, start, size, 0, 0, 0))
/* Gives a range a name for reports; its number, by which it is forgotten again. */
#define QUERN_NAME(start, size, name) QUERN_REQUEST(0, QUERN_CODE_NAME, start, size, name, 0, 0)
#define QUERN_FORGET(number)          ((void)QUERN_REQUEST(0, QUERN_CODE_FORGET, 0, number, 0, 0, 0))

/* ---- leaks ---- */

enum quern_leaks { QUERN_LEAKS_ALL, QUERN_LEAKS_MORE, QUERN_LEAKS_CHANGED, QUERN_LEAKS_NEW };

/* Looks for leaks now; `which`: enum quern_leaks, compared with the search before. */
#define QUERN_LEAK_CHECK(which) ((void)QUERN_REQUEST(0, QUERN_CODE_LEAK_CHECK, 0, which, 0, 0, 0))
#define QUERN_LEAK_SUMMARY()    ((void)QUERN_REQUEST(0, QUERN_CODE_LEAK_CHECK, 1, 0, 0, 0, 0))
/* Bytes, or blocks, that the latest search found: lost, possibly lost, reachable, suppressed.
 * Addresses of four variables of type unsigned long. */
#define QUERN_COUNT_LEAKS(lost, possible, reachable, suppressed)                                   \
    ((void)QUERN_REQUEST(0, QUERN_CODE_COUNT_LEAKS, lost, possible, reachable, suppressed, 0))
#define QUERN_COUNT_LEAK_BLOCKS(lost, possible, reachable, suppressed)                             \
    ((void)QUERN_REQUEST(0, QUERN_CODE_COUNT_LEAK_BLOCKS, lost, possible, reachable, suppressed, 0))

/* ---- allocators of the program's own ---- */

/* A block is given out, taken back, or made larger or smaller where it is. The red zone is what
 * lies unused on each side of it. */
#define QUERN_BLOCK_ALLOCATED(start, size, red_zone, is_zeroed)                                    \
    ((void)QUERN_REQUEST(0, QUERN_CODE_BLOCK_ALLOCATED, start, size, red_zone, is_zeroed, 0))
#define QUERN_BLOCK_FREED(start, red_zone)                                                         \
    ((void)QUERN_REQUEST(0, QUERN_CODE_BLOCK_FREED, start, red_zone, 0, 0, 0))
#define QUERN_BLOCK_RESIZED(start, old_size, new_size, red_zone)                                   \
    ((void)QUERN_REQUEST(0, QUERN_CODE_BLOCK_RESIZED, start, old_size, new_size, red_zone, 0))

/* Pools: any address may stand for one. */
enum quern_pool_flags { QUERN_POOL_AUTO_FREE = 1, QUERN_POOL_META = 2 };
#define QUERN_POOL_CREATE(pool, red_zone, is_zeroed, flags)                                        \
    ((void)QUERN_REQUEST(0, QUERN_CODE_POOL_CREATE, pool, red_zone, is_zeroed, flags, 0))
#define QUERN_POOL_DESTROY(pool) ((void)QUERN_REQUEST(0, QUERN_CODE_POOL_DESTROY, pool, 0, 0, 0, 0))
#define QUERN_POOL_ALLOCATE(pool, start, size)                                                     \
    ((void)QUERN_REQUEST(0, QUERN_CODE_POOL_ALLOCATE, pool, start, size, 0, 0))
#define QUERN_POOL_FREE(pool, start)                                                               \
    ((void)QUERN_REQUEST(0, QUERN_CODE_POOL_FREE, pool, start, 0, 0, 0))
#define QUERN_POOL_TRIM(pool, start, size)                                                         \
    ((void)QUERN_REQUEST(0, QUERN_CODE_POOL_TRIM, pool, start, size, 0, 0))
#define QUERN_POOL_MOVE(pool, to) ((void)QUERN_REQUEST(0, QUERN_CODE_POOL_MOVE, pool, to, 0, 0, 0))
#define QUERN_POOL_CHANGE(pool, old_start, start, size)                                            \
    ((void)QUERN_REQUEST(0, QUERN_CODE_POOL_CHANGE, pool, old_start, start, size, 0))
#define QUERN_POOL_EXISTS(pool) QUERN_REQUEST(0, QUERN_CODE_POOL_EXISTS, pool, 0, 0, 0, 0)

/* ---- stacks of the program's own ---- */

#define QUERN_STACK_REGISTER(start, end)                                                           \
    QUERN_REQUEST(0, QUERN_CODE_STACK_REGISTER, start, end, 0, 0, 0)
#define QUERN_STACK_DEREGISTER(number)                                                             \
    ((void)QUERN_REQUEST(0, QUERN_CODE_STACK_DEREGISTER, number, 0, 0, 0, 0))
#define QUERN_STACK_CHANGE(number, start, end)                                                     \
    ((void)QUERN_REQUEST(0, QUERN_CODE_STACK_CHANGE, number, start, end, 0, 0))

#endif
