// cpuid, xgetbv, rdtsc, rdrand and the rest of the CPU are told truthfully and work.
#include "stress.h"
#include <cpuid.h>

int main(void) {
    uint64_t h = 0;
    static const unsigned leaves[] = {0, 7, 0x80000000, 0x80000002, 0x80000003, 0x80000004};
    for (size_t i = 0; i < LENGTH(leaves); i++) {
        unsigned a, b, c, d;
        __cpuid_count(leaves[i], 0, a, b, c, d);
        h = stress_mix(h, a);
        h = stress_mix(h, b);
        h = stress_mix(h, c);
        h = stress_mix(h, d);
    }
    unsigned a, b, c, d;
    __cpuid(1, a, b, c, d);
    h = stress_mix(h, a);
    h = stress_mix(h, c);
    h = stress_mix(h, d);
    printf("cpuid %016llx\n", (unsigned long long)h);
    if (c & bit_OSXSAVE) {
        unsigned low, high;
        __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
        printf("xcr0 %x\n", low);
    }
    unsigned long before = __builtin_ia32_rdtsc(), after = __builtin_ia32_rdtsc();
    CHECK(after > before);
    if (c & bit_RDRND) {
        unsigned long value;
        unsigned char ok;
        do
            __asm__ volatile("rdrand %0; setc %1" : "=r"(value), "=q"(ok)::"cc");
        while (!ok);
        puts("rdrand");
    }
    static _Alignas(64) unsigned char area[8192];
    if (c & bit_OSXSAVE) {
        __asm__ volatile("xsave %0" : "+m"(area) : "a"(7), "d"(0));
        __asm__ volatile("xrstor %0" ::"m"(area), "a"(7), "d"(0));
        puts("xsave");
    }
    __asm__ volatile("fxsave %0; fxrstor %0" : "+m"(area));
    return 0;
}
