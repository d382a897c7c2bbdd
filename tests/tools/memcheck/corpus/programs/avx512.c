// AVX-512, which Valgrind cannot run: what is expected stands at the lines.
//
// case avx512_copy -DWAY=1 -mavx512f -mavx512bw -mavx512vl alone needs:avx512f needs:avx512bw needs:avx512vl
// case avx512_copy_clean -DWAY=2 -mavx512f alone needs:avx512f
// case avx512_read_after -DWAY=3 -mavx512f alone needs:avx512f
// case avx512_write_after -DWAY=4 -mavx512f alone needs:avx512f
// case avx512_write_freed -DWAY=5 -mavx512f alone needs:avx512f
// case avx512_add -DWAY=6 -mavx512f alone needs:avx512f
// case avx512_masked_load -DWAY=7 -mavx512f alone needs:avx512f
// case avx512_masked_load_over -DWAY=8 -mavx512f alone needs:avx512f
// case avx512_masked_store -DWAY=9 -mavx512f alone needs:avx512f
// case avx512_masked_store_over -DWAY=10 -mavx512f alone needs:avx512f
// case avx512_compare_mask -DWAY=11 -mavx512f -mavx512bw alone needs:avx512f needs:avx512bw
// case avx512_mask_arithmetic -DWAY=12 -mavx512f alone needs:avx512f
// case avx512_blend -DWAY=13 -mavx512f alone needs:avx512f
// case avx512_permute -DWAY=14 -mavx512f alone needs:avx512f
// case avx512_gather -DWAY=15 -mavx512f alone needs:avx512f
// case avx512_scatter_over -DWAY=16 -mavx512f alone needs:avx512f
// case avx512_high_registers -DWAY=17 -mavx512f alone needs:avx512f
// case avx512_broadcast -DWAY=18 -mavx512f alone needs:avx512f
// case avx512_compress -DWAY=19 -mavx512f alone needs:avx512f
// case avx512_ternary -DWAY=20 -mavx512f alone needs:avx512f
// case avx512_loop -DWAY=21 -O3 -march=skylake-avx512 -mprefer-vector-width=512 alone needs:avx512f needs:avx512bw needs:avx512vl needs:avx512dq
// case avx512_loop_clean -DWAY=22 -O3 -march=skylake-avx512 -mprefer-vector-width=512 alone needs:avx512f needs:avx512bw needs:avx512vl needs:avx512dq
// case avx512_loop_clang clang -DWAY=21 -O3 -march=skylake-avx512 -mprefer-vector-width=512 alone needs:avx512f needs:avx512bw needs:avx512vl needs:avx512dq
// case avx512_double -DWAY=23 -mavx512f alone needs:avx512f
// case avx512_vl_128 -DWAY=24 -mavx512f -mavx512vl alone needs:avx512f needs:avx512vl
// case avx512_mask_moved -DWAY=25 -mavx512f -mavx512bw alone needs:avx512f needs:avx512bw
#include <immintrin.h>
#include <stdlib.h>
#include <string.h>

volatile int kept;
int data[64] __attribute__((aligned(64)));
int result[64] __attribute__((aligned(64)));

#define DECIDE(x) do { if (x) kept = 1; } while (0)

__attribute__((noinline)) static int *make(void)
{
    int *block = malloc(64);
    for (int i = 0; i < 14; i++)
        block[i] = i;
    return block;
}

int main(void)
{
    int *block = make(); // 64 bytes, the last 8 never set
    char *place = (char *)block;
#if WAY == 1
    _mm512_storeu_si512(result, _mm512_loadu_si512(block));
    DECIDE(result[13]);
    DECIDE(result[14]); // bug(avx512_copy): Conditional jump or move depends on uninitialised value(s)
#elif WAY == 2
    block[14] = block[15] = 3;
    _mm512_storeu_si512(result, _mm512_loadu_si512(block));
    DECIDE(result[15]);
#elif WAY == 3
    __m512i value = _mm512_loadu_si512(place + 64); // bug(avx512_read_after): Invalid read of size 64
    __asm__ volatile("" : : "v"(value));
#elif WAY == 4
    _mm512_storeu_si512(place + 64, _mm512_setzero_si512()); // bug(avx512_write_after): Invalid write of size 8
#elif WAY == 5
    free(block);
    _mm512_storeu_si512(block, _mm512_setzero_si512()); // bug(avx512_write_freed): Invalid write of size 8
    return 0;
#elif WAY == 6
    __m512i sum = _mm512_add_epi32(_mm512_loadu_si512(block), _mm512_set1_epi32(1));
    _mm512_storeu_si512(result, sum);
    DECIDE(result[13]);
    DECIDE(result[15]); // bug(avx512_add): Conditional jump or move depends on uninitialised value(s)
#elif WAY == 7
    _mm512_storeu_si512(result, _mm512_maskz_loadu_epi32(0x4fff, block));
    DECIDE(result[13]);
    DECIDE(result[15]);
    DECIDE(result[14]); // bug(avx512_masked_load): Conditional jump or move depends on uninitialised value(s)
#elif WAY == 8
    _mm512_storeu_si512(result, _mm512_maskz_loadu_epi32(0x000f, block + 12));
    DECIDE(result[4]);
    _mm512_storeu_si512(result, _mm512_maskz_loadu_epi32(0x001f, block + 12)); // bug(avx512_masked_load_over): Invalid read of size 4
#elif WAY == 9
    _mm512_storeu_si512(data, _mm512_setzero_si512());
    _mm512_mask_storeu_epi32(data, 0xc000, _mm512_loadu_si512(block));
    DECIDE(data[13]);
    DECIDE(data[14]); // bug(avx512_masked_store): Conditional jump or move depends on uninitialised value(s)
#elif WAY == 10
    _mm512_mask_storeu_epi32(block + 8, 0x00ff, _mm512_setzero_si512());
    _mm512_mask_storeu_epi32(block + 8, 0x01ff, _mm512_setzero_si512()); // bug(avx512_masked_store_over): Invalid write of size 4
#elif WAY == 11
    __mmask64 equal = _mm512_cmpeq_epi8_mask(_mm512_loadu_si512(block), _mm512_setzero_si512());
    unsigned long mask = equal;
    DECIDE(mask & 0xffffff);
    DECIDE(mask >> 60); // bug(avx512_compare_mask): Conditional jump or move depends on uninitialised value(s)
#elif WAY == 12
    __mmask16 equal = _mm512_cmpeq_epi32_mask(_mm512_loadu_si512(block), _mm512_setzero_si512());
    __mmask16 inverse = _mm512_kand(_mm512_knot(equal), 0x3fff);
    DECIDE(inverse == 0x1234);
    inverse = _mm512_kor(_mm512_knot(equal), 1);
    DECIDE(inverse == 0xffff); // bug(avx512_mask_arithmetic): Conditional jump or move depends on uninitialised value(s)
#elif WAY == 13
    _mm512_storeu_si512(result, _mm512_mask_blend_epi32(0x8000, _mm512_setzero_si512(), _mm512_loadu_si512(block)));
    DECIDE(result[14]);
    DECIDE(result[15]); // bug(avx512_blend): Conditional jump or move depends on uninitialised value(s)
#elif WAY == 14
    __m512i order = _mm512_set_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    _mm512_storeu_si512(result, _mm512_permutexvar_epi32(order, _mm512_loadu_si512(block)));
    DECIDE(result[2]);
    DECIDE(result[1]); // bug(avx512_permute): Conditional jump or move depends on uninitialised value(s)
#elif WAY == 15
    __m512i order = _mm512_set_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 0, 15);
    _mm512_storeu_si512(result, _mm512_i32gather_epi32(order, block, 4));
    DECIDE(result[2]);
    DECIDE(result[0]); // bug(avx512_gather): Conditional jump or move depends on uninitialised value(s)
#elif WAY == 16
    __m512i order = _mm512_set_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16);
    _mm512_i32scatter_epi32(block, order, _mm512_setzero_si512(), 4); // bug(avx512_scatter_over): Invalid write of size 4
#elif WAY == 17
    __asm__ volatile("vmovdqu64 %1, %%zmm29; vpaddd %%zmm29, %%zmm29, %%zmm17; vmovdqu64 %%zmm17, %0"
                     : "=m"(*(char (*)[64])result) : "m"(*(char (*)[64])block));
    DECIDE(result[13]);
    DECIDE(result[14]); // bug(avx512_high_registers): Conditional jump or move depends on uninitialised value(s)
#elif WAY == 18
    _mm512_storeu_si512(result, _mm512_set1_epi32(block[14]));
    DECIDE(result[7]); // bug(avx512_broadcast): Conditional jump or move depends on uninitialised value(s)
#elif WAY == 19
    _mm512_storeu_si512(result, _mm512_maskz_compress_epi32(0x9000, _mm512_loadu_si512(block)));
    DECIDE(result[0]);
    DECIDE(result[2]);
    DECIDE(result[1]); // bug(avx512_compress): Conditional jump or move depends on uninitialised value(s)
#elif WAY == 20
    __m512i value = _mm512_loadu_si512(block);
    _mm512_storeu_si512(result, _mm512_ternarylogic_epi32(value, value, value, 0));
    DECIDE(result[15]);
    _mm512_storeu_si512(result, _mm512_ternarylogic_epi32(value, _mm512_setzero_si512(), value, 0x5a));
    DECIDE(result[13]);
    _mm512_storeu_si512(result, _mm512_ternarylogic_epi32(value, _mm512_setzero_si512(), _mm512_set1_epi32(1), 0x5a));
    DECIDE(result[15]); // bug(avx512_ternary): Conditional jump or move depends on uninitialised value(s)
#elif WAY == 21 || WAY == 22
    static int from[1024];
    int *to = malloc(1000 * sizeof(int));
    memset(from, 1, sizeof(from));
    __asm__ volatile("" : : "r"(to), "r"(from) : "memory");
    for (int i = 0; i < 1000 - (WAY == 21); i++)
        to[i] = from[i] * 3;
    __asm__ volatile("" : : "r"(to), "r"(from) : "memory");
    int sum = 0;
    for (int i = 0; i < 1000; i++)
        sum += to[i];
    if (sum == 12345) // bug(avx512_loop,avx512_loop_clang): Conditional jump or move depends on uninitialised value(s)
        kept = 1;
    free(to);
#elif WAY == 23
    __m512d value = _mm512_mul_pd(_mm512_loadu_pd(block), _mm512_set1_pd(2));
    _mm512_storeu_pd(result, value);
    if (((double *)result)[6] > 1)
        kept = 1;
    if (((double *)result)[7] > 1) // bug(avx512_double): Conditional jump or move depends on uninitialised value(s)
        kept = 2;
#elif WAY == 24
    _mm_storeu_si128((__m128i *)result, _mm_maskz_mov_epi32(0x7, _mm_loadu_si128((__m128i *)(block + 12))));
    DECIDE(result[1]);
    DECIDE(result[3]);
    DECIDE(result[2]); // bug(avx512_vl_128): Conditional jump or move depends on uninitialised value(s)
#elif WAY == 25
    unsigned undefined = block[15];
    __mmask32 mask = undefined;
    _mm512_storeu_si512(result, _mm512_maskz_mov_epi16(mask, _mm512_set1_epi16(5)));
    DECIDE(result[3]); // bug(avx512_mask_moved): Conditional jump or move depends on uninitialised value(s)
#endif
    free(block);
    return 0;
}
