// Values in registers and memory that gdb reads and changes.
#include <immintrin.h>
#include <stdio.h>

volatile long number = 41;
const char text[] = "read only";
double factors[2] = {1.25, -2.5};

__attribute__((noinline, target("avx"))) static long compute(long a, double b) {
    __m256d wide = _mm256_set1_pd(b);
    __asm__ volatile("" : "+x"(wide));
    return a + (long)wide[3];
}

long twice(long value) {
    return 2 * value;
}

int main(void) {
    long result = compute(number, factors[0]);
    printf("%ld %s %ld\n", result, text, number);
    return (int)number;
}
