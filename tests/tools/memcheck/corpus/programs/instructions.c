// Instructions that compilers use seldom, or that move definedness in their own way.
//
// case asm_rep_movsb -DWAY=1
// case asm_rep_stosb_over -DWAY=2
// case asm_repe_cmpsb -DWAY=3
// case asm_repne_scasb -DWAY=4
// case asm_push_pop -DWAY=5
// case asm_setcc -DWAY=6
// case asm_cmov -DWAY=7
// case asm_adc -DWAY=8
// case asm_sbb_same -DWAY=9
// case asm_bsf -DWAY=10
// case asm_bt -DWAY=11
// case asm_shld -DWAY=12
// case asm_xadd -DWAY=13
// case asm_cmpxchg16b -DWAY=14 -mcx16
// case asm_mul_wide -DWAY=15
// case asm_lahf -DWAY=16
// case asm_pushf -DWAY=17
// case asm_fld_fst -DWAY=18
// case asm_fcomi -DWAY=19
// case asm_fxsave -DWAY=20
// case asm_movdqu_halves -DWAY=21
// case asm_pshufd -DWAY=22
// case asm_pcmpeq_movmsk -DWAY=23
// case asm_pxor_same -DWAY=24 clean
// case asm_punpck -DWAY=25
// case asm_ptest -DWAY=26 -msse4.1
// case asm_vperm -DWAY=27 -mavx2
// case asm_gather -DWAY=28 -mavx2
// case asm_maskmov -DWAY=29 -mavx2
// case asm_maskmov_over -DWAY=30 -mavx2 clean
// case asm_pcmpistri -DWAY=31 -msse4.2
// case asm_crc32 -DWAY=32 -msse4.2
// case asm_movzx_parts -DWAY=33
// case asm_leave_enter -DWAY=35
// case asm_loop -DWAY=36
// case asm_jrcxz -DWAY=37
// case asm_imul_flags -DWAY=38
// case asm_pext -DWAY=39 -mbmi2
// case asm_movnti_over -DWAY=40
// case asm_prefetch_anywhere -DWAY=41 clean
// case asm_cpuid -DWAY=42 clean
// case asm_or_all_ones -DWAY=43 clean
// case asm_and_zero -DWAY=44 clean
// case asm_mov_high_byte -DWAY=45
// case asm_cvtps -DWAY=46
// case asm_sqrt_min -DWAY=47
// case asm_blendv -DWAY=48 -msse4.1
// case asm_palignr -DWAY=49 -mssse3
// case asm_ret_undefined -DWAY=50
// case asm_lock_add -DWAY=51
// case asm_inc_keeps_carry -DWAY=52 clean
// case asm_rcl -DWAY=53
// case asm_neg_not -DWAY=54
// case asm_lea_scaled -DWAY=55
// case asm_cmp_top_bit -DWAY=56
// case asm_shift_by_undefined -DWAY=57
// case asm_xchg -DWAY=58
// case asm_movbe -DWAY=59 -mmovbe
// case asm_vzeroupper -DWAY=60 -mavx clean
// case asm_f16c -DWAY=61 -mf16c
// case asm_fma -DWAY=62 -mfma
// case asm_mmx -DWAY=63
// case asm_aes -DWAY=64 -maes
// case asm_cpuid_without_subleaf -DWAY=65 clean
// case asm_origins_movsb -DWAY=1 --track-origins=yes
// case asm_origins_simd -DWAY=22 --track-origins=yes
#include <immintrin.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

volatile long kept;
char data[256] __attribute__((aligned(64)));

__attribute__((noinline)) static long undefined(void)
{
    long *heap = malloc(8), value = *heap;
    free(heap);
    return value;
}

__attribute__((noinline)) static void decide(long value)
{
    if (value) // bug
        kept = 1;
}

int main(void)
{
    long u = undefined(), r = 0, d = kept;
    char *fresh = malloc(64), *block = malloc(16);
    memset(block, 1, 16);
    long fresh_sized = 0;
    (void)r, (void)d, (void)fresh_sized;
#if WAY == 1
    char *from = fresh, *to = data;
    fresh[1] = 5;
    long n = 8;
    __asm__ volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(n) : : "memory");
    decide(data[1]);
    decide(data[2]); // bug
#elif WAY == 2
    char *to = block;
    long n = 20;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(0) : "memory"); // bug
#elif WAY == 3
    char *from = fresh, *to = data;
    long n = 8;
    __asm__ volatile("repe cmpsb" : "+S"(from), "+D"(to), "+c"(n) : : "memory", "cc"); // bug
#elif WAY == 4
    char *to = fresh;
    long n = 8;
    __asm__ volatile("repne scasb" : "+D"(to), "+c"(n) : "a"(3) : "memory", "cc"); // bug
#elif WAY == 5
    __asm__ volatile("push %1; pop %0" : "=r"(r) : "r"(u));
    decide(r); // bug
#elif WAY == 6
    __asm__ volatile("cmp $5, %1; setg %b0" : "+q"(r) : "r"(u) : "cc");
    decide(r); // bug
#elif WAY == 7
    __asm__ volatile("cmp $5, %1; cmovg %2, %0" : "+r"(r) : "r"(u), "r"(d) : "cc"); // bug
    decide(r); // bug
#elif WAY == 8
    __asm__ volatile("add %1, %1; adc $0, %0" : "+r"(r), "+r"(u) : : "cc");
    decide(r); // bug
#elif WAY == 9
    __asm__ volatile("cmp $5, %1; sbb %0, %0" : "=r"(r) : "r"(u) : "cc");
    decide(r); // bug
#elif WAY == 10
    __asm__ volatile("bsf %1, %0" : "=r"(r) : "r"(u | 0x100) : "cc");
    decide(r & 8 ? 0 : 0); // bug
    decide(r); // bug
#elif WAY == 11
    __asm__ volatile("bt $3, %1; setc %b0" : "+q"(r) : "r"((u & 8) | 1) : "cc");
    decide(r); // bug
    r = 0;
    __asm__ volatile("bt $2, %1; setc %b0" : "+q"(r) : "r"((u & 8) | 1) : "cc");
    decide(r);
#elif WAY == 12
    __asm__ volatile("shld $8, %1, %0" : "+r"(r) : "r"(u) : "cc");
    decide(r & 0xff00);
    decide(r & 0xff); // bug
#elif WAY == 13
    __asm__ volatile("lock xadd %0, %1" : "+r"(u), "+m"(*(long *)data) : : "cc", "memory");
    decide(u);
    decide(*(long *)data); // bug
#elif WAY == 14
    __int128 old = 0, wanted = u;
    if (__sync_bool_compare_and_swap((__int128 *)data, old, wanted))
        decide(*(long *)data); // bug
#elif WAY == 15
    __asm__ volatile("mul %2" : "=d"(r), "+a"(d) : "r"(u) : "cc");
    decide(r); // bug
#elif WAY == 16
    __asm__ volatile("add $1, %b1; lahf; movzbl %%ah, %k0" : "=&a"(r) : "q"(u) : "cc");
    decide(r & 1); // bug
#elif WAY == 17
    __asm__ volatile("add $1, %1; pushf; pop %0" : "=r"(r), "+r"(u) : : "cc", "memory");
    decide(r & 1); // bug
#elif WAY == 18
    double copy;
    __asm__ volatile("fldl %1; fstpl %0" : "=m"(copy) : "m"(*(double *)fresh));
    decide(*(long *)&copy); // bug
#elif WAY == 19
    *(double *)fresh = 1.5;
    __asm__ volatile("fldl %1; fldl %2; fcomip; setnp %b0; fstp %%st(0)"
                     : "+q"(r) : "m"(*(double *)fresh), "m"(*(double *)(fresh + 8)) : "cc");
    decide(r); // bug
#elif WAY == 20
    static char area[512] __attribute__((aligned(16)));
    __asm__ volatile("movq %1, %%xmm3; fxsave %0" : "=m"(area) : "r"(u) : "xmm3");
    decide(*(long *)(area + 160 + 3 * 16)); // bug
#elif WAY == 21
    *(long *)fresh = 7;
    __m128i both = _mm_loadu_si128((__m128i *)fresh);
    _mm_storeu_si128((__m128i *)data, both);
    decide(*(long *)data);
    decide(*(long *)(data + 8)); // bug
#elif WAY == 22
    *(int *)(fresh + 4) = 7;
    __m128i turned = _mm_shuffle_epi32(_mm_loadu_si128((__m128i *)fresh), 0x39);
    _mm_storeu_si128((__m128i *)data, turned);
    decide(*(int *)data);
    decide(*(int *)(data + 4)); // bug
#elif WAY == 23
    memset(fresh, 0, 15);
    __m128i equal = _mm_cmpeq_epi8(_mm_loadu_si128((__m128i *)fresh), _mm_setzero_si128());
    int mask = _mm_movemask_epi8(equal);
    decide(mask & 0x7fff);
    decide(mask & 0x8000); // bug
    decide(__builtin_ctz(mask));
#elif WAY == 24
    __m128i zero;
    __asm__ volatile("pxor %0, %0" : "=x"(zero));
    decide(_mm_cvtsi128_si64(zero));
    __asm__ volatile("pcmpeqd %0, %0" : "=x"(zero));
    decide(_mm_cvtsi128_si64(zero));
#elif WAY == 25
    *(int *)fresh = 7;
    __m128i low = _mm_unpacklo_epi32(_mm_loadu_si128((__m128i *)fresh), _mm_setzero_si128());
    _mm_storeu_si128((__m128i *)data, low);
    decide(*(int *)data);
    decide(*(int *)(data + 4));
    decide(*(int *)(data + 8)); // bug
#elif WAY == 26
    __m128i value = _mm_loadu_si128((__m128i *)fresh);
    decide(_mm_testz_si128(value, value)); // bug
#elif WAY == 27
    memset(fresh, 1, 28);
    __m256i turned = _mm256_permutevar8x32_epi32(_mm256_loadu_si256((__m256i *)fresh),
                                                 _mm256_set_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    _mm256_storeu_si256((__m256i *)data, turned);
    decide(*(int *)(data + 4));
    decide(*(int *)data); // bug
#elif WAY == 28
    memset(fresh, 0, 32);
    __m256i found = _mm256_i32gather_epi32((int *)fresh, _mm256_set_epi32(9, 1, 2, 3, 4, 5, 6, 7), 4);
    _mm256_storeu_si256((__m256i *)data, found);
    decide(*(int *)data);
    decide(*(int *)(data + 28)); // bug
#elif WAY == 29
    memset(fresh, 0, 32);
    __m256i mask = _mm256_set_epi32(0, 0, 0, -1, -1, -1, -1, -1);
    __m256i value = _mm256_maskload_epi32((int *)(fresh + 16), mask);
    _mm256_storeu_si256((__m256i *)data, value);
    decide(*(int *)data);
    decide(*(int *)(data + 28));
    decide(*(int *)(data + 16)); // bug
#elif WAY == 30
    __m128i mask = _mm_set_epi32(0, 0, -1, -1);
    __m128i value = _mm_maskload_epi32((int *)(block + 8), mask);
    _mm_storeu_si128((__m128i *)data, value);
    decide(*(int *)(data + 12));
#elif WAY == 31
    int at = _mm_cmpistri(_mm_loadu_si128((__m128i *)fresh), _mm_setzero_si128(), 0);
    decide(at); // bug
#elif WAY == 32
    decide(_mm_crc32_u64(0, u)); // bug
#elif WAY == 33
    r = (u & ~0xffl) | 5;
    __asm__ volatile("" : "+r"(r));
    decide((unsigned char)r);
    decide((unsigned short)r >> 8); // bug
#elif WAY == 35
    __asm__ volatile("push %1; mov %%rsp, %%rcx; mov (%%rcx), %0; pop %%rcx"
                     : "=r"(r) : "r"(u) : "rcx", "memory");
    decide(r); // bug
#elif WAY == 36
    long n = u & 3;
    __asm__ volatile("inc %0; 1: loop 1b" : "+c"(n) : : "cc"); // bug
#elif WAY == 37
    __asm__ volatile("jrcxz 1f; 1:" : : "c"(u)); // bug
#elif WAY == 38
    __asm__ volatile("imul $3, %1, %1; seto %b0" : "+q"(r), "+r"(u) : : "cc");
    decide(r); // bug
#elif WAY == 39
    r = __builtin_ia32_pext_di(u, 0xf);
    decide(r); // bug
#elif WAY == 40
    _mm_stream_si64((long long *)(block + 16), 5); // bug
#elif WAY == 41
    __builtin_prefetch(block + 100);
    __builtin_prefetch(0);
#elif WAY == 42
    unsigned a = 0, b, c = 0, e;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(e));
    decide(b | c | e);
#elif WAY == 65
    unsigned a = 0, b, c = u, e; // leaf 0 has no subleaves: what is in ecx does not matter
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(e));
    decide(a | b | c | e);
#elif WAY == 43
    __asm__ volatile("or $-1, %0" : "=r"(r) : : "cc");
    decide(r + 1);
#elif WAY == 44
    __asm__ volatile("and $0, %0" : "=r"(r) : : "cc");
    decide(r);
#elif WAY == 45
    __asm__ volatile("mov %b1, %h0" : "+Q"(r) : "Q"(u));
    decide(r & 0xff);
    decide(r & 0xff00); // bug
#elif WAY == 46
    *(float *)fresh = 1;
    __m128d wide = _mm_cvtps_pd(_mm_loadu_ps((float *)fresh));
    _mm_storeu_pd((double *)data, wide);
    decide(*(long *)(data + 8)); // bug
#elif WAY == 47
    __m128 low = _mm_min_ps(_mm_sqrt_ps(_mm_loadu_ps((float *)fresh)), _mm_setzero_ps());
    _mm_storeu_ps((float *)data, low);
    decide(*(int *)data); // bug
#elif WAY == 48
    memset(fresh, 0, 16);
    __m128i mix = _mm_blendv_epi8(_mm_loadu_si128((__m128i *)fresh),
                                  _mm_loadu_si128((__m128i *)(fresh + 16)), _mm_set_epi64x(-1, 0));
    _mm_storeu_si128((__m128i *)data, mix);
    decide(*(int *)(data + 8)); // bug
#elif WAY == 49
    memset(fresh, 0, 16);
    __m128i turned = _mm_alignr_epi8(_mm_loadu_si128((__m128i *)(fresh + 16)),
                                     _mm_loadu_si128((__m128i *)fresh), 4);
    _mm_storeu_si128((__m128i *)data, turned);
    decide(*(int *)data);
    decide(*(int *)(data + 12)); // bug
#elif WAY == 50
    __asm__ volatile("lea 1f(%%rip), %%rcx; add %0, %%rcx; push %%rcx; ret; 1:" // bug
                     : : "r"(u * kept) : "rcx", "memory", "cc"); // bug
#elif WAY == 51
    __asm__ volatile("lock addl %k1, %0; setz %b2" : "+m"(*(int *)fresh), "+r"(d), "+q"(r) : : "cc");
    decide(r); // bug
#elif WAY == 52
    __asm__ volatile("add %1, %1; mov $0, %0; inc %0; setc %b0" : "+&q"(r), "+r"(u) : : "cc");
    decide(r & 1); // bug
#elif WAY == 53
    __asm__ volatile("clc; rcl $1, %0" : "+r"(u) : : "cc");
    decide(u & 1);
    decide(u & 2); // bug
#elif WAY == 54
    u &= 0xf0;
    __asm__ volatile("neg %0; not %0" : "+r"(u) : : "cc");
    decide(u & 0x10); // bug
#elif WAY == 55
    __asm__ volatile("lea 8(%1, %2, 4), %0" : "=r"(r) : "r"(d), "r"(u & 1));
    decide(r & 3);
    decide(r & 4); // bug
#elif WAY == 56
    r = (u & 0xff) | 0x100;
    __asm__ volatile("" : "+r"(r));
    decide(r > 0x1000);
    decide(r > 0x150); // bug
#elif WAY == 57
    __asm__ volatile("shl %%cl, %0" : "+r"(d) : "c"((char)u) : "cc");
    decide(d); // bug
#elif WAY == 58
    __asm__ volatile("xchg %0, %1" : "+r"(u), "+r"(d));
    decide(u);
    decide(d); // bug
#elif WAY == 59
    fresh[0] = 1;
    __asm__ volatile("movbel %1, %k0" : "=r"(r) : "m"(*(int *)fresh));
    decide(r & 0xff000000);
    decide(r & 0xff); // bug
#elif WAY == 60
    __m256i value = _mm256_loadu_si256((__m256i *)fresh);
    __asm__ volatile("" : "+x"(value));
    _mm256_zeroall();
    __asm__ volatile("vmovdqu %%ymm0, %0" : "=m"(*(char (*)[32])data));
    decide(*(int *)(data + 20));
#elif WAY == 61
    *(short *)fresh = 0x3c00;
    __m128 wide = _mm_cvtph_ps(_mm_loadl_epi64((__m128i *)fresh));
    _mm_storeu_ps((float *)data, wide);
    decide(*(int *)(data + 4)); // bug
#elif WAY == 62
    *(double *)fresh = 2;
    __m128d value = _mm_fmadd_pd(_mm_loadu_pd((double *)fresh), _mm_set1_pd(1), _mm_set1_pd(1));
    _mm_storeu_pd((double *)data, value);
    decide(*(long *)(data + 8)); // bug
#elif WAY == 63
    __asm__ volatile("movq %1, %%mm0; paddb %%mm0, %%mm0; movq %%mm0, %0; emms"
                     : "=m"(*(long *)data) : "m"(*(long *)fresh));
    decide(data[3]); // bug
#elif WAY == 64
    memset(fresh, 0, 12);
    __m128i value = _mm_aesenc_si128(_mm_loadu_si128((__m128i *)fresh), _mm_setzero_si128());
    _mm_storeu_si128((__m128i *)data, value);
    decide(data[0]); // bug
#endif
    free(fresh);
    free(block);
    return 0;
}
