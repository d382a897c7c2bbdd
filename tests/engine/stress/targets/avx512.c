// AVX-512 where the CPU has it: masked arithmetic, gathers, compress, memory copies; values
// printed.
#include "stress.h"
#include <immintrin.h>

__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq"))) static uint64_t run(void) {
    static int32_t table[1024], out[1024];
    for (int i = 0; i < 1024; i++)
        table[i] = i * 37 % 1009;
    uint64_t h = 0;
    __m512i sum = _mm512_setzero_si512();
    for (int round = 0; round < 2000; round++) {
        __m512i index =
            _mm512_and_si512(_mm512_add_epi32(_mm512_set1_epi32(round * 7),
                                              _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
                                                                11, 12, 13, 14, 15)),
                             _mm512_set1_epi32(1023));
        __m512i v = _mm512_i32gather_epi32(index, table, 4);
        __mmask16 mask = _mm512_cmpgt_epi32_mask(v, _mm512_set1_epi32(500));
        sum = _mm512_mask_add_epi32(sum, mask, sum, v);
        sum = _mm512_rol_epi32(sum, 3);
        _mm512_mask_compressstoreu_epi32(out + round % 1000, mask, v);
        h = stress_mix(h, (uint64_t)mask);
    }
    for (int i = 0; i < 1024; i++)
        h = stress_mix(h, (uint64_t)(uint32_t)out[i]);
    return h ^ (uint64_t)(uint32_t)_mm512_reduce_add_epi32(sum);
}

__attribute__((target("avx512f"))) static void copy(char *to, const char *from, size_t n) {
    for (size_t i = 0; i < n; i += 64)
        _mm512_storeu_si512(to + i, _mm512_loadu_si512(from + i));
}

int main(void) {
    if (!__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl") ||
        !__builtin_cpu_supports("avx512dq")) {
        puts("no AVX-512");
        return 0;
    }
    static char a[65536], b[65536];
    for (int i = 0; i < 65536; i++)
        a[i] = (char)(i * 7 >> 2);
    for (int i = 0; i < 100; i++)
        copy(b, a, sizeof(a));
    printf("copied %d\n", memcmp(a, b, sizeof(a)));
    printf("%016llx\n", (unsigned long long)run());
    return 0;
}
