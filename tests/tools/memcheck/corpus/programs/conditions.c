// Decisions that depend on values never set, of every type and by every way to decide.
//
// case if_int -DWAY=1
// case if_char -DWAY=2
// case if_short -DWAY=3
// case if_long -DWAY=4
// case if_pointer -DWAY=5
// case if_bool -DWAY=6
// case if_float -DWAY=7
// case if_double -DWAY=8
// case if_long_double -DWAY=9
// case while_loop -DWAY=10
// case switch_dense -DWAY=11
// case switch_dense_O2 -DWAY=11 -O2
// case switch_sparse -DWAY=12
// case ternary -DWAY=13
// case ternary_O2 -DWAY=13 -O2
// case logical_and -DWAY=14
// case logical_or_decided -DWAY=15 clean
// case field -DWAY=16
// case bit_field -DWAY=17
// case bit_field_O2 -DWAY=17 -O2
// case bit_field_neighbour -DWAY=18 clean
// case bit_field_neighbour_O2 -DWAY=18 -O2 clean
// case union_part -DWAY=19 clean
// case returned -DWAY=20
// case returned_O2 -DWAY=20 -O2
// case argument -DWAY=21
// case argument_on_stack -DWAY=22
// case through_global -DWAY=23
// case array_partly -DWAY=24
// case array_index -DWAY=25
// case store_index -DWAY=26
// case call_pointer -DWAY=27
// case copied_struct -DWAY=28
// case copied_struct_O2 -DWAY=28 -O2
// case copied_struct_clang_O2 clang -DWAY=28 -O2
// case copied_only -DWAY=29 clean
// case copied_only_O2 -DWAY=29 -O2 clean
// case compare_equal_mask -DWAY=30 clean
// case compare_undefined_mask -DWAY=31
// case shifted_out -DWAY=32 clean
// case sum_partly -DWAY=33
// case int_to_double -DWAY=34
// case double_to_int -DWAY=35
// case divided -DWAY=36
// case multiplied_by_zero -DWAY=37
// case xor_itself -DWAY=38 clean
// case heap_int -DWAY=39
// case heap_later_set -DWAY=40 clean
// case heap_struct_padding -DWAY=41
// case padding_copied -DWAY=42 clean
// case for_bound -DWAY=43
// case min_of -DWAY=44 -O2
// case abs_of -DWAY=45 -O2
// case strong_compare -DWAY=46
// case vector_compare -DWAY=47 -O2
// case vector_compare_avx2 -DWAY=47 -O2 -mavx2
// case memcmp_padding -DWAY=48
// case complex_number -DWAY=49
// case printed_hex -DWAY=50
// case sign_extended -DWAY=51
// case short_circuit -DWAY=52 clean
// case alloca_undefined -DWAY=53
// case variable_array -DWAY=54
// case recursion -DWAY=55
// case polluted_stack -DWAY=56
// case polluted_stack_O2 -DWAY=56 -O2
// case float_sum -DWAY=57
// case float_sum_O2 -DWAY=57 -O2
// case twice_same_place -DWAY=58
// case twice_two_places -DWAY=59
// case int128 -DWAY=60
// case double_compare_defined_part -DWAY=61
// case saved_in_register -DWAY=62 -O2
// case atomic_exchange -DWAY=63
// case compare_exchange -DWAY=64
// case popcount_of -DWAY=65 -mpopcnt
// case trailing_zeros -DWAY=66
// case byte_swapped -DWAY=67
// case rotated -DWAY=68
// case if_int_clang clang -DWAY=1
// case if_double_clang clang -DWAY=8
// case if_int_clang_O2 clang -DWAY=1 -O2
// case if_double_O2 -DWAY=8 -O2
// case if_char_O2 -DWAY=2 -O2
// case bit_field_clang clang -DWAY=17
// case array_partly_O3 -DWAY=24 -O3 -march=haswell
// case array_partly_clang_O3 clang -DWAY=24 -O3 -march=haswell
// case struct_avx_copy -DWAY=28 -O3 -march=haswell
// case origins_stack -DWAY=1 --track-origins=yes
// case origins_heap -DWAY=39 --track-origins=yes
// case origins_returned -DWAY=20 --track-origins=yes
// case origins_copied_struct -DWAY=28 --track-origins=yes
// case origins_padding -DWAY=41 --track-origins=yes
// case origins_index -DWAY=25 --track-origins=yes
// case origins_double -DWAY=8 --track-origins=yes
// case origins_alloca -DWAY=53 --track-origins=yes
// case origins_through_global -DWAY=23 --track-origins=yes
// case origins_polluted -DWAY=56 --track-origins=yes
// case origins_two_places -DWAY=59 --track-origins=yes
// case origins_sum -DWAY=33 --track-origins=yes
// case origins_O2 -DWAY=28 -O2 --track-origins=yes
// case origins_realloc -DWAY=69 --track-origins=yes
// case origins_memcpy -DWAY=70 --track-origins=yes
// case origins_stack_reused -DWAY=71 --track-origins=yes
// case origins_far_frame -DWAY=72 --track-origins=yes
// case origins_far_frame_clang -DWAY=72 clang --track-origins=yes
// case and_turned_around -DWAY=73
// case and_turned_around_O2 -DWAY=73 -O2
// case xml_if_int -DWAY=1 xml
// case xml_origins -DWAY=39 --track-origins=yes xml
// case xml_index -DWAY=25 xml
// case roundtrip_condition -DWAY=1 roundtrip
// case roundtrip_value -DWAY=25 roundtrip
// case undef_errors_off -DWAY=1 --undef-value-errors=no clean
// case expensive_no -DWAY=30 --expensive-definedness-checks=no clean
// case expensive_yes -DWAY=33 --expensive-definedness-checks=yes
#include <alloca.h>
#include <complex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <valgrind/memcheck.h>

struct bits {
    unsigned low : 3, middle : 7, high : 22;
};
struct padded {
    char small;
    int large;
};
struct big {
    long values[9];
    char tail[5];
};
union both {
    long whole;
    char parts[8];
};

volatile int kept;
int global;
int table[16];

// Keeps the compiler from seeing that something was never set.
#define HIDE(x) __asm__ volatile("" : : "r"(&(x)) : "memory")

__attribute__((noinline)) static void pollute(void)
{
    volatile char filling[2000];
    for (int i = 0; i < 2000; i++)
        filling[i] = i;
}

__attribute__((noinline)) static int never_set(void)
{
    int value;
    HIDE(value);
    return value;
}

__attribute__((noinline)) static int never_set_either(void)
{
    int value;
    HIDE(value);
    return value;
}

__attribute__((noinline)) static void keep_here(int value)
{
    HIDE(value);
}

__attribute__((noinline)) static void decide_deep(int depth, int *value)
{
    if (depth)
        decide_deep(depth - 1, value);
    else if (*value) // bug
        kept = 1;
}

__attribute__((noinline)) static void decide(int value)
{
    if (value) // bug
        kept = 1;
}

__attribute__((noinline)) static void decide_seventh(int a, int b, int c, int d, int e, int f, int g)
{
    if (g) // bug
        kept = 1;
}

__attribute__((noinline)) static struct big copy(struct big from)
{
    return from;
}

__attribute__((noinline)) static int deep(int depth)
{
    int value;
    HIDE(value);
    if (depth == 0)
        return value > 5 ? 1 : 2; // bug
    return deep(depth - 1) + 1;
}

__attribute__((noinline)) static void target(void)
{
    kept++;
}

#define DECIDE_AS(TYPE)                                                                                \
    {                                                                                              \
        TYPE value;                                                                                \
        HIDE(value);                                                                               \
        if (value) /* bug */                                                                       \
            kept = 1;                                                                              \
    }

// `first` jumps to 1 by the undefined value, `second` to 1 or to 3; else it goes on at `next`.
#define BOTH(first, value, second, other, next)                                                    \
    __asm__ volatile("cmpl $5, %0\n\t" first "\n\t" second "\n\t" next "\n"                       \
                     "1:\tnop\n3:\tnop" : : "r"(value), "r"(other) : "cc")

__attribute__((noinline)) static void way(void)
{
#if WAY == 1
    DECIDE_AS(int) // bug
#elif WAY == 2
    DECIDE_AS(char) // bug
#elif WAY == 3
    DECIDE_AS(short) // bug
#elif WAY == 4
    DECIDE_AS(long) // bug
#elif WAY == 5
    DECIDE_AS(char *) // bug
#elif WAY == 6
    DECIDE_AS(bool) // bug
#elif WAY == 7
    DECIDE_AS(float) // bug
#elif WAY == 8
    DECIDE_AS(double) // bug
#elif WAY == 9
    // Unlike what a stack happens to hold, a number that can be compared.
    long double value = 2;
    (void)VALGRIND_MAKE_MEM_UNDEFINED(&value, sizeof value);
    if (value) // bug
        kept = 1;
#elif WAY == 10
    int count;
    HIDE(count);
    count &= 3;
    while (count-- > 0) // bug
        kept++;
#elif WAY == 11
    int value;
    HIDE(value);
    switch (value & 7) { // bug
    case 0: kept = 3; break;
    case 1: kept = 1; break;
    case 2: kept = 4; break;
    case 3: kept = 1; break;
    case 4: kept = 5; break;
    case 5: puts("five"); break;
    case 6: kept = 9; break;
    default: kept = 2;
    }
#elif WAY == 12
    int value;
    HIDE(value);
    switch (value) { // bug
    case 10: kept = 3; break; // bug
    case 1000: kept = 1; break; // bug
    case 100000: kept = 4; break; // bug
    }
#elif WAY == 13
    int value;
    HIDE(value);
    int chosen = value > 3 ? 5 : 6; // bug
    kept = chosen;
    if (chosen == 7) // bug
        kept = 1;
#elif WAY == 14
    int value, set = 1;
    HIDE(value);
    HIDE(set);
    if (set && value) // bug
        kept = 1;
#elif WAY == 15
    int value, set = 1;
    HIDE(value);
    HIDE(set);
    if (set | value) // bug
        kept = 1;
    if ((set | value) & 1)
        kept = 2;
#elif WAY == 16
    struct padded pair;
    pair.small = 1;
    HIDE(pair);
    if (pair.small)
        kept = 1;
    if (pair.large) // bug
        kept = 2;
#elif WAY == 17
    struct bits bits;
    HIDE(bits);
    bits.middle = 5;
    HIDE(bits);
    if (bits.low) // bug
        kept = 1;
#elif WAY == 18
    struct bits bits;
    HIDE(bits);
    bits.middle = 5;
    HIDE(bits);
    if (bits.middle)
        kept = 1;
#elif WAY == 19
    union both both;
    HIDE(both);
    both.parts[3] = 1;
    HIDE(both);
    if (both.parts[3])
        kept = 1;
    if (both.whole) // bug
        kept = 2;
#elif WAY == 20
    if (never_set()) // bug
        kept = 1;
#elif WAY == 21
    int value;
    HIDE(value);
    decide(value); // bug
#elif WAY == 22
    int value;
    HIDE(value);
    decide_seventh(1, 2, 3, 4, 5, 6, value); // bug
#elif WAY == 23
    global = never_set();
    if (global) // bug
        kept = 1;
    global = 0;
#elif WAY == 24
    int numbers[64], sum = 0;
    HIDE(numbers);
    for (int i = 0; i < 60; i++)
        numbers[i] = i;
    HIDE(numbers);
    for (int i = 0; i < 64; i++)
        sum += numbers[i];
    if (sum == 5) // bug
        kept = 1;
#elif WAY == 25
    int value = never_set() & 15;
    kept = table[value]; // bug
#elif WAY == 26
    int value = never_set() & 15;
    table[value] = 3; // bug
#elif WAY == 27
    long zero = never_set();
    HIDE(zero);
    zero *= kept;
    void (*call)(void) = (void (*)(void))((long)target + zero);
    call(); // bug
#elif WAY == 28
    struct big from, to;
    HIDE(from);
    memset(&from.values[1], 0, 40);
    to = copy(from);
    HIDE(to);
    if (to.values[3])
        kept = 1;
    if (to.values[7]) // bug
        kept = 2;
    if (to.tail[4]) // bug
        kept = 3;
#elif WAY == 29
    struct big from, to;
    HIDE(from);
    to = copy(from);
    HIDE(to);
#elif WAY == 30
    int value = never_set() & 0xff00;
    HIDE(value);
    if (value & 0xff)
        kept = 1;
#elif WAY == 31
    int value = never_set() & 0xff00;
    HIDE(value);
    if (value & 0x1ff) // bug
        kept = 1;
#elif WAY == 32
    unsigned value = never_set();
    HIDE(value);
    if (value << 31 << 1)
        kept = 1;
#elif WAY == 33
    int value = never_set() & 0xf0;
    HIDE(value);
    value += 3;
    HIDE(value);
    if (value & 0xf)
        kept = 1;
    if (value & 0x10) // bug
        kept = 2;
#elif WAY == 34
    double value = never_set();
    HIDE(value);
    if (value > 2.5) // bug
        kept = 1;
#elif WAY == 35
    double value;
    HIDE(value);
    int number = (int)value;
    HIDE(number);
    if (number > 2) // bug
        kept = 1;
#elif WAY == 36
    int value = never_set() | 1;
    HIDE(value);
    int number = 1000 / value;
    HIDE(number);
    if (number > 2) // bug
        kept = 1;
#elif WAY == 37
    int value = never_set(), zero = 0;
    HIDE(value);
    HIDE(zero);
    value *= zero;
    if (value) // bug
        kept = 1;
#elif WAY == 38
    long value;
    __asm__ volatile("xorq %0, %0" : "=r"(value));
    if (value)
        kept = 1;
#elif WAY == 39
    int *heap = malloc(40);
    if (heap[3] > 7) // bug
        kept = 1;
    free(heap);
#elif WAY == 40
    int *heap = malloc(40);
    memset(heap, 0, 40);
    if (heap[3] > 7)
        kept = 1;
    free(heap);
#elif WAY == 41
    struct padded *heap = malloc(sizeof(*heap));
    heap->small = 1;
    heap->large = 2;
    if (((char *)heap)[2]) // bug
        kept = 1;
    free(heap);
#elif WAY == 42
    struct padded *heap = malloc(10 * sizeof(*heap)), *other = malloc(10 * sizeof(*heap));
    for (int i = 0; i < 10; i++) {
        heap[i].small = i;
        heap[i].large = i;
    }
    memcpy(other, heap, 10 * sizeof(*heap));
    for (int i = 0; i < 10; i++)
        if (other[i].small + other[i].large == 7)
            kept = 1;
    free(heap);
    free(other);
#elif WAY == 43
    int bound = never_set() & 7;
    for (int i = 0; i < bound; i++) // bug
        kept++;
#elif WAY == 44
    int value = never_set(), other = kept;
    int least = value < other ? value : other;
    if (least == 77) // bug
        kept = 1;
#elif WAY == 45
    int value = never_set();
    if (abs(value) == 3) // bug
        kept = 1;
#elif WAY == 46
    int value = never_set(), other = never_set();
    if (value == other) // bug
        kept = 1;
#elif WAY == 47
    char one[64], two[64];
    HIDE(one);
    HIDE(two);
    memset(one, 1, 60);
    memset(two, 1, 60);
    HIDE(one);
    HIDE(two);
    int equal = 1;
    for (int i = 0; i < 64; i++)
        equal &= one[i] == two[i];
    if (equal) // bug
        kept = 1;
#elif WAY == 48
    struct padded one, two;
    HIDE(one);
    HIDE(two);
    one.small = two.small = 1;
    one.large = two.large = 2;
    if (memcmp(&one, &two, sizeof(one)) == 0) // bug
        kept = 1;
#elif WAY == 49
    double complex value;
    HIDE(value);
    __real__ value = 1;
    HIDE(value);
    if (creal(value) > 2)
        kept = 1;
    if (cimag(value) > 2) // bug
        kept = 1;
#elif WAY == 50
    char text[40];
    snprintf(text, sizeof(text), "%x", never_set() & 0xf); // bug
#elif WAY == 51
    signed char value;
    HIDE(value);
    long wide = value;
    HIDE(wide);
    if (wide < 0) // bug
        kept = 1;
#elif WAY == 52
    int value, set = 0;
    HIDE(value);
    HIDE(set);
    if (set && value)
        kept = 1;
#elif WAY == 53
    char *room = alloca(kept + 100);
    HIDE(*room);
    if (room[50]) // bug
        kept = 1;
#elif WAY == 54
    int size = kept + 30;
    int numbers[size];
    HIDE(numbers);
    numbers[0] = 1;
    if (numbers[0] + numbers[12] == 4) // bug
        kept = 1;
#elif WAY == 55
    kept = deep(5); // bug
#elif WAY == 56
    pollute();
    if (never_set()) // bug
        kept = 1;
#elif WAY == 57
    float values[8], sum = 0;
    HIDE(values);
    for (int i = 0; i < 7; i++)
        values[i] = i;
    HIDE(values);
    for (int i = 0; i < 8; i++)
        sum += values[i];
    if (sum > 21) // bug
        kept = 1;
#elif WAY == 58
    for (int i = 0; i < 5; i++)
        if (never_set() == i) // bug
            kept = 1;
#elif WAY == 59
    int value = never_set();
    int *heap = malloc(4);
    if (value) // bug
        kept = 1;
    if (*heap) // bug
        kept = 2;
    free(heap);
#elif WAY == 60
    __int128 value;
    HIDE(value);
    value += 5;
    HIDE(value);
    if (value >> 100) // bug
        kept = 1;
#elif WAY == 61
    double value[2] = {1.5, 2.5};
    HIDE(value);
    ((char *)value)[8] = never_set();
    if (value[0] > 1)
        kept = 1;
    if (value[1] > 1) // bug
        kept = 2;
#elif WAY == 62
    int value = never_set();
    for (int i = 0; i < 10; i++)
        target();
    if (value) // bug
        kept = 1;
#elif WAY == 63
    int value = never_set();
    int old = __atomic_exchange_n(&global, value, __ATOMIC_SEQ_CST);
    if (old)
        kept = 1;
    if (global) // bug
        kept = 2;
    global = 0;
#elif WAY == 64
    int expected = never_set();
    if (__atomic_compare_exchange_n(&global, &expected, 5, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) // bug
        kept = 1;
#elif WAY == 65
    if (__builtin_popcount(never_set()) > 3) // bug
        kept = 1;
#elif WAY == 66
    if (__builtin_ctz(never_set() | 0x100) > 3) // bug
        kept = 1;
#elif WAY == 67
    unsigned value = never_set() & 0xff;
    HIDE(value);
    value = __builtin_bswap32(value);
    HIDE(value);
    if (value & 0xffff)
        kept = 1;
    if (value >> 24) // bug
        kept = 2;
#elif WAY == 68
    unsigned value = never_set() & 0xff;
    HIDE(value);
    value = value << 13 | value >> 19;
    HIDE(value);
    if (value & 0xfff)
        kept = 1;
    if (value & 0x2000) // bug
        kept = 2;
#elif WAY == 69
    int *heap = malloc(8);
    heap = realloc(heap, 800);
    if (heap[100]) // bug
        kept = 1;
    free(heap);
#elif WAY == 70
    int *heap = malloc(80), local[20];
    memcpy(local, heap, 80);
    free(heap);
    if (local[5]) // bug
        kept = 1;
#elif WAY == 71
    keep_here(never_set());
    if (never_set_either()) // bug
        kept = 1;
#elif WAY == 72
    int value;
    decide_deep(3, &value); // bug
    decide_deep(20, &value); // bug
#elif WAY == 73
    int value = never_set(), yes = 1, no = 0, small = -7;
    BOTH("je 1f", value, "testl %1, %1; je 1f", no, "nop");
    BOTH("je 1f", value, "testl %1, %1; je 1f", yes, "nop"); // bug
    BOTH("jb 1f", value, "cmpl $3, %1; jge 3f", small, "");
    BOTH("jae 1f", value, "cmpl $3, %1; jge 3f", yes, "");
    BOTH("ja 1f", value, "cmpl $3, %1; jl 3f", small, ""); // bug
    BOTH("jg 1f", value, "cmpl $-8, %1; jbe 1f", small, "nop"); // bug
    BOTH("jg 1f", value, "cmpl $-6, %1; jbe 1f", small, "nop");
    BOTH("js 1f", value, "cmpl %0, %1; jbe 1f", yes, "nop"); // bug
#endif
}

int main(void)
{
    way(); // bug
    return 0;
}
