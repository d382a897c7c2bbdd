// What the programs that generate.py writes are made of. Each case is a function of its own, so
// that the stack of a report names it.
#ifndef QUERN_TESTS_SYSCALLS_PROBE_H
#define QUERN_TESTS_SYSCALLS_PROBE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <valgrind/memcheck.h>

// A system call, made in the function that says so.
#define CALL(number, a, b, c, d, e, f)                                                             \
    ({                                                                                             \
        long call_words[] = {(long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f)};    \
        long call_result = (long)(number);                                                         \
        register long call_a asm("rdi") = call_words[0];                                           \
        register long call_b asm("rsi") = call_words[1];                                           \
        register long call_c asm("rdx") = call_words[2];                                           \
        register long call_d asm("r10") = call_words[3];                                           \
        register long call_e asm("r8") = call_words[4];                                            \
        register long call_f asm("r9") = call_words[5];                                            \
        asm volatile("syscall"                                                                     \
                     : "+a"(call_result)                                                           \
                     : "r"(call_a), "r"(call_b), "r"(call_c), "r"(call_d), "r"(call_e),            \
                       "r"(call_f)                                                                 \
                     : "rcx", "r11", "memory");                                                    \
        call_result;                                                                               \
    })
#define CALL1(n, a)                CALL(n, a, 0, 0, 0, 0, 0)
#define CALL2(n, a, b)             CALL(n, a, b, 0, 0, 0, 0)
#define CALL3(n, a, b, c)          CALL(n, a, b, c, 0, 0, 0)
#define CALL4(n, a, b, c, d)       CALL(n, a, b, c, d, 0, 0)
#define CALL5(n, a, b, c, d, e)    CALL(n, a, b, c, d, e, 0)
#define CALL6(n, a, b, c, d, e, f) CALL(n, a, b, c, d, e, f)

#define CASE __attribute__((noinline, unused)) static

// The same value, but some bytes of it undefined.
static inline long with_undefined(long value, unsigned first, unsigned count) {
    volatile long copy = value;
    (void)VALGRIND_MAKE_MEM_UNDEFINED((char *)&copy + first, count);
    return copy;
}

// A block of its own with this content.
static inline void *block(const void *content, size_t size) {
    void *made = malloc(size ? size : 1);
    if (content)
        memcpy(made, content, size);
    else
        memset(made, 0, size);
    return made;
}
static inline void *undefined_block(const void *content, size_t size) {
    void *made = block(content, size);
    (void)VALGRIND_MAKE_MEM_UNDEFINED(made, size);
    return made;
}
static inline void *gone_block(const void *content, size_t size) {
    void *made = block(content, size);
    (void)VALGRIND_MAKE_MEM_NOACCESS(made, size);
    return made;
}
// All but the last byte.
static inline void *short_block(const void *content, size_t size) {
    char *made = block(content, size);
    (void)VALGRIND_MAKE_MEM_NOACCESS(made + size - 1, 1);
    return made;
}

// Says how much of a block is defined.
static inline void say_defined(const char *name, const char *argument, const void *address,
                               size_t size) {
    const char *start = address;
    size_t count = 0;
    unsigned char bits;
    while (count < size && VALGRIND_GET_VBITS(start + count, &bits, 1) == 1 && !bits)
        count++;
    printf("%s: %zu bytes of %s are defined\n", name, count, argument);
}

#endif
