// Vector, mask and x87 registers live across timer signals whose handler overwrites them all.
#include "stress.h"
#include <immintrin.h>
#include <sys/time.h>

static volatile int ticks, stop;
static int have_avx, have_avx512;

__attribute__((target("avx512f"))) static void clobber512(void) {
    __asm__ volatile("vpternlogd $255, %%zmm0, %%zmm0, %%zmm0; vmovdqa64 %%zmm0, %%zmm5\n"
                     "vmovdqa64 %%zmm0, %%zmm15; vmovdqa64 %%zmm0, %%zmm16\n"
                     "vmovdqa64 %%zmm0, %%zmm31; kxnorw %%k1, %%k1, %%k1; kmovw %%k1, %%k7" ::
                         : "memory");
}

__attribute__((target("avx"))) static void clobber256(void) {
    __asm__ volatile("vzeroall" :::);
}

static void on_tick(int s, siginfo_t *info, void *context) {
    __asm__ volatile("fninit; fldz; fldz; fldz; fldz; fldz; fldz; fldz; fldz; fninit" ::: "memory");
    __asm__ volatile("pcmpeqd %%xmm0, %%xmm0; movdqa %%xmm0, %%xmm7; movdqa %%xmm0, %%xmm15" ::
                         : "memory");
    if (have_avx512)
        clobber512();
    if (have_avx)
        clobber256();
    unsigned other_rounding = 0x5f80;
    __asm__ volatile("ldmxcsr %0" ::"m"(other_rounding));
    ticks++;
    if (ticks % 150 == 0)
        stop = 1;
}

static int loop_sse(const uint64_t *pattern) {
    uint64_t out[4];
    unsigned mxcsr = 0x3f80, got = 0;
    __asm__ volatile("ldmxcsr %0" ::"m"(mxcsr));
    while (!stop) {
        __asm__ volatile("movdqu (%0), %%xmm7; movdqu 16(%0), %%xmm15; mov $2000, %%ecx\n"
                         "1: pxor %%xmm7, %%xmm15; pxor %%xmm7, %%xmm15; dec %%ecx; jnz 1b\n"
                         "movdqu %%xmm7, (%1); movdqu %%xmm15, 16(%1)" ::"r"(pattern),
                         "r"(out)
                         : "xmm7", "xmm15", "rcx", "memory", "cc");
        if (memcmp(out, pattern, 32))
            return 1;
        __asm__ volatile("stmxcsr %0" : "=m"(got));
        if (got != mxcsr)
            return 2;
    }
    return 0;
}

__attribute__((target("avx2"))) static int loop_avx(const uint64_t *pattern) {
    uint64_t out[8];
    while (!stop) {
        __asm__ volatile("vmovdqu (%0), %%ymm5; vmovdqu 32(%0), %%ymm15; mov $2000, %%ecx\n"
                         "1: vpxor %%ymm5, %%ymm15, %%ymm15; vpxor %%ymm5, %%ymm15, %%ymm15\n"
                         "dec %%ecx; jnz 1b\n"
                         "vmovdqu %%ymm5, (%1); vmovdqu %%ymm15, 32(%1)" ::"r"(pattern),
                         "r"(out)
                         : "xmm5", "xmm15", "rcx", "memory", "cc");
        if (memcmp(out, pattern, 64))
            return 3;
    }
    return 0;
}

__attribute__((target("avx512f"))) static int loop_avx512(const uint64_t *pattern) {
    uint64_t out[16];
    unsigned k = 0;
    while (!stop) {
        __asm__ volatile("vmovdqu64 (%1), %%zmm5; vmovdqu64 64(%1), %%zmm31; mov $2000, %%ecx\n"
                         "mov $0xa5a5, %%eax; kmovw %%eax, %%k7\n"
                         "1: vpxorq %%zmm5, %%zmm31, %%zmm31; vpxorq %%zmm5, %%zmm31, %%zmm31\n"
                         "dec %%ecx; jnz 1b\n"
                         "vmovdqu64 %%zmm5, (%2); vmovdqu64 %%zmm31, 64(%2); kmovw %%k7, %0"
                         : "=r"(k)
                         : "r"(pattern), "r"(out)
                         : "xmm5", "xmm31", "rax", "rcx", "k7", "memory", "cc");
        if (memcmp(out, pattern, 128))
            return 4;
        if (k != 0xa5a5)
            return 5;
    }
    return 0;
}

static int loop_x87(void) {
    unsigned short control = 0x0a7f, got = 0;
    while (!stop) {
        long double a, b;
        __asm__ volatile("fninit; fldcw %3; fldpi; fldl2e; mov $2000, %%ecx\n"
                         "1: fxch %%st(1); fxch %%st(1); dec %%ecx; jnz 1b\n"
                         "fnstcw %2; fstpt %0; fstpt %1; fninit"
                         : "=m"(a), "=m"(b), "=m"(got)
                         : "m"(control)
                         : "rcx", "cc", "memory");
        long double pi, l2e;
        __asm__ volatile("fldcw %2; fldpi; fldl2e; fstpt %0; fstpt %1; fninit"
                         : "=m"(l2e), "=m"(pi)
                         : "m"(control));
        if (memcmp(&a, &l2e, 10) || memcmp(&b, &pi, 10))
            return 6;
        if (got != control)
            return 7;
    }
    return 0;
}

int main(void) {
    uint64_t pattern[16];
    for (int i = 0; i < 16; i++)
        pattern[i] = stress_mix((uint64_t)i, 99);
    have_avx = __builtin_cpu_supports("avx2");
    have_avx512 = __builtin_cpu_supports("avx512f");
    stress_handle(SIGALRM, on_tick, SA_RESTART);
    struct itimerval every = {{0, 150}, {0, 150}};
    CHECK(setitimer(ITIMER_REAL, &every, NULL) == 0);
    SAME(loop_sse(pattern), 0);
    stop = 0;
    SAME(loop_x87(), 0);
    stop = 0;
    if (have_avx)
        SAME(loop_avx(pattern), 0);
    stop = 0;
    if (have_avx512)
        SAME(loop_avx512(pattern), 0);
    printf("avx %d avx512 %d kept\n", have_avx, have_avx512);
    return 0;
}
