// Accesses by instructions that are not plain loads and stores.
#include "cases.h"

#include <cpuid.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <xmmintrin.h>

static void repeated(void) {
    char *a = malloc(200), *b = malloc(200);
    void *to = a, *from = b;
    size_t count = 150;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(7) : "memory");
    to = b, from = a, count = 18;
    __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
    b[33] = 8;
    to = b, from = a, count = 100;
    __asm__ volatile("repe cmpsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
    to = b, count = 100;
    __asm__ volatile("repne scasb" : "+D"(to), "+c"(count) : "a"(8) : "memory");
    to = b, from = a;
    __asm__ volatile("movsl; lodsw; stosb" : "+D"(to), "+S"(from) : : "rax", "memory");
    to = b + 99, from = a + 99, count = 50;
    __asm__ volatile("std; rep movsb; cld" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
    count = 0;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(7) : "memory");
    free(a);
    free(b);
}

// Counts far above a page, up and down.
static void repeated_far(void) {
    enum { SIZE = 100000 };
    char *a = malloc(SIZE), *b = malloc(SIZE);
    void *to = a, *from;
    size_t count = SIZE;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(7) : "memory");
    to = b, from = a, count = SIZE / 8;
    __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
    b[SIZE - 100] = 8;
    to = b, from = a, count = SIZE;
    __asm__ volatile("repe cmpsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
    to = b, count = SIZE;
    __asm__ volatile("repne scasb" : "+D"(to), "+c"(count) : "a"(8) : "memory");
    to = b + SIZE - 2, from = a + SIZE - 2, count = SIZE / 2 - 7;
    __asm__ volatile("std; rep movsw; cld" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
    free(a);
    free(b);
}

static void processor_state(void) {
    char *state = aligned_alloc(16, 512), *more = aligned_alloc(16, 4096);
    __asm__ volatile("fxsave %0" : "=m"(*(char(*)[512])state));
    __asm__ volatile("fxrstor %0" : : "m"(*(char(*)[512])state));
    __asm__ volatile("fxsave64 %0" : "=m"(*(char(*)[512])(more + 1024)));
    free(state);
    free(more);
}

// More than code that is inserted counts by itself.
static void whole_processor_state(void) {
    unsigned eax, ebx, ecx, edx;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & bit_OSXSAVE))
        return;
    char *state = aligned_alloc(64, 832), *large = aligned_alloc(64, 8192);
    memset(state, 0, 832);
    memset(large, 0, 8192);
    __asm__ volatile("xsave %0" : "+m"(*(char(*)[832])state) : "a"(7), "d"(0));
    __asm__ volatile("xrstor %0" : : "m"(*(char(*)[832])state), "a"(7), "d"(0));
    __asm__ volatile("xsave %0" : "+m"(*(char(*)[832])(large + 128)) : "a"(7), "d"(0));
    free(state);
    free(large);
}

static void atomics(void) {
    _Atomic long *a = calloc(4, sizeof *a);
    long expected = 0;
    atomic_fetch_add(&a[0], 3);
    atomic_exchange(&a[1], 4);
    atomic_compare_exchange_strong(&a[2], &expected, 5);
    atomic_compare_exchange_strong(&a[2], &expected, 6);
    atomic_fetch_or((_Atomic char *)&a[3], 1);
    __asm__ volatile("lock incl %0" : "+m"(a[0]));
    __asm__ volatile("xaddq %1, %0" : "+m"(a[1]), "+r"(expected));
    __asm__ volatile("lock xaddq %1, %0" : "+m"(a[1]), "+r"(expected));
    __asm__ volatile("cmpxchgq %1, %0" : "+m"(a[1]), "+r"(expected) : : "rax");
    free(a);
}

static void bits(void) {
    unsigned long *a = calloc(8, sizeof *a);
    long bit = 300;
    int negative = -9;
    __asm__ volatile("btsq %1, %0" : "+m"(*a) : "r"(bit) : "memory");
    __asm__ volatile("btq %2, %1; adcq $0, %0" : "+r"(bit) : "m"(*a), "r"(bit) : "memory");
    __asm__ volatile("btcl %1, %0" : "+m"(a[2]) : "r"(negative) : "memory");
    __asm__ volatile("lock btrq %1, %0" : "+m"(*a) : "r"(bit) : "memory");
    __asm__ volatile("btsq $5, %0" : "+m"(a[1]) : : "memory");
    __asm__ volatile("notl %0; negb %0; shlw $2, %0; incq %0" : "+m"(a[3]) : : "memory");
    free(a);
}

static void floats(void) {
    long double *a = malloc(3 * sizeof *a);
    double *b = malloc(4 * sizeof *b);
    float *c = malloc(5 * sizeof *c);
    a[0] = 1.5L;
    a[1] = a[0] * 2;
    b[0] = a[1];
    b[1] = b[0] / 3 + 1;
    c[3] = b[1];
    sink += (long)(c[3] * 7);
    free(a);
    free(b);
    free(c);
}

static void vectors(void) {
    float *a = malloc(64 * sizeof *a), *b = malloc(64 * sizeof *b);
    for (int i = 0; i < 64; i += 4)
        _mm_storeu_ps(a + i, _mm_set1_ps(i));
    for (int i = 0; i < 60; i += 3)
        _mm_storeu_ps(b + i, _mm_add_ps(_mm_loadu_ps(a + i), _mm_loadu_ps(a + 1)));
    _mm_storel_pi((__m64 *)b, _mm_loadh_pi(_mm_setzero_ps(), (__m64 *)a));
    _mm_store_ss(b + 9, _mm_load_ss(a + 3));
    free(a);
    free(b);
}

static void wide_vectors(void) {
    char *a = malloc(256);
    memset(a, 2, 256);
    if (__builtin_cpu_supports("avx2"))
        __asm__ volatile(
            "vmovdqu (%0), %%ymm1; vpaddb 33(%0), %%ymm1, %%ymm1; vmovdqu %%ymm1, 70(%0);"
            "vmovq %%xmm1, 200(%0); vmovd 204(%0), %%xmm2; vzeroupper"
            :
            : "r"(a)
            : "xmm1", "xmm2", "memory");
    free(a);
}

const struct test_case instructions_cases[] = {
    CASE(repeated),        CASE(repeated_far),
    CASE(processor_state), CASE(whole_processor_state),
    CASE(atomics),         CASE(bits),
    CASE(floats),          CASE(vectors),
    CASE(wide_vectors),    {0},
};
