// Moves values with random undefined bits from memory to memory, through every kind of register and
// of place. Their bits, their values and the flags must arrive as they were. Argument: rounds.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <valgrind/memcheck.h>

enum { MOST = 32, PLACE = 256 };

static int has_avx;

// The flags as lahf and seto see them, before the moves and after them.
static uint64_t flags_before, flags_after;
#define WITH_FLAGS(code)                                                                           \
    "mov %[seed], %%eax; add $127, %%al; sahf; lahf; seto %%al; mov %%rax, %[before]; add $127, "  \
    "%%al; sahf;" code "; lahf; seto %%al; mov %%rax, %[after];"
#define MOVE(name, code, ...)                                                                      \
    static void name(void *to, const void *from, unsigned seed)                                    \
    {                                                                                              \
        __asm__ volatile(WITH_FLAGS(code)                                                          \
                         : [before] "=m"(flags_before), [after] "=m"(flags_after)                  \
                         : [seed] "m"(seed), "S"(from), "D"(to)                                    \
                         : "rax", "rcx", "rdx", "r9", "memory", "cc", __VA_ARGS__);                \
    }
MOVE(byte, "movzbl (%%rsi), %%ecx; mov %%cl, (%%rdi)", "xmm0")
MOVE(word, "movzwl (%%rsi), %%ecx; mov %%cx, (%%rdi)", "xmm0")
MOVE(dword, "mov (%%rsi), %%ecx; mov %%ecx, (%%rdi)", "xmm0")
MOVE(qword, "mov (%%rsi), %%r9; mov %%r9, (%%rdi)", "xmm0")
MOVE(own_base, "mov %%rdi, %%rdx; mov (%%rsi), %%rdi; mov %%rdi, (%%rdx); mov %%rdx, %%rdi", "xmm0")
MOVE(indexed, "mov $4, %%ecx; mov -8(%%rsi,%%rcx,2), %%rdx; mov %%rdx, -4(%%rdi,%%rcx)", "xmm0")
MOVE(pushed, "lea -128(%%rsp), %%rsp; pushq (%%rsi); pop %%rcx; push %%rcx; pop %%rdx;"
             "mov %%rdx, (%%rdi); lea 128(%%rsp), %%rsp", "xmm0")
MOVE(red_zone, "mov (%%rsi), %%rcx; mov %%rcx, -120(%%rsp); mov -120(%%rsp), %%rdx;"
               "mov %%rdx, (%%rdi)", "xmm0")
MOVE(copied, "movsq; lea -8(%%rsi), %%rsi; lea -8(%%rdi), %%rdi", "xmm0")
MOVE(copied_bytes, "movsb; movsb; lea -2(%%rsi), %%rsi; lea -2(%%rdi), %%rdi", "xmm0")
MOVE(copied_down, "std; movsl; cld; lea 4(%%rsi), %%rsi; lea 4(%%rdi), %%rdi", "xmm0")
MOVE(registers, "mov (%%rsi), %%rcx; mov %%rcx, %%rdx; mov %%rdx, %%r9; mov %%r9, (%%rdi)", "xmm0")
MOVE(scalar, "movd (%%rsi), %%xmm1; movd %%xmm1, (%%rdi)", "xmm1")
MOVE(single, "movss (%%rsi), %%xmm0; movss %%xmm0, (%%rdi)", "xmm0")
MOVE(quad, "movq (%%rsi), %%xmm15; movq %%xmm15, (%%rdi)", "xmm15")
MOVE(twice, "movsd (%%rsi), %%xmm0; movsd %%xmm0, (%%rdi)", "xmm0")
MOVE(whole, "movdqu (%%rsi), %%xmm0; movups %%xmm0, (%%rdi)", "xmm0")
MOVE(cleared, "movdqu (%%rsi), %%xmm3; movq (%%rsi), %%xmm3; movdqu %%xmm3, (%%rdi)", "xmm3")
MOVE(wide, "vmovdqu (%%rsi), %%ymm7; vmovups %%ymm7, (%%rdi); vzeroupper", "xmm7")
MOVE(wide_cleared, "vmovdqu (%%rsi), %%ymm8; vmovdqu (%%rsi), %%xmm8; vmovdqu %%ymm8, (%%rdi);"
                   "vzeroupper", "xmm8")

// A move of `size` bytes whose first `kept` bytes arrive; the rest becomes a defined 0.
static const struct {
    const char *name;
    void (*move)(void *, const void *, unsigned);
    unsigned size, kept;
    int needs_avx;
} moves[] = {{"byte", byte, 1, 1},         {"word", word, 2, 2},
             {"dword", dword, 4, 4},       {"qword", qword, 8, 8},
             {"own base", own_base, 8, 8}, {"indexed", indexed, 8, 8},
             {"pushed", pushed, 8, 8},     {"red zone", red_zone, 8, 8},
             {"copied", copied, 8, 8},     {"copied bytes", copied_bytes, 2, 2},
             {"copied down", copied_down, 4, 4},
             {"registers", registers, 8, 8}, {"scalar", scalar, 4, 4},
             {"single", single, 4, 4},     {"quad", quad, 8, 8},
             {"twice", twice, 8, 8},       {"whole", whole, 16, 16},
             {"cleared", cleared, 16, 8},  {"wide", wide, 32, 32, 1},
             {"wide cleared", wide_cleared, 32, 16, 1}};

static unsigned draw(unsigned below)
{
    static uint64_t state = 88172645463325252;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

// Bits that are all defined, all undefined, anything, or the code for memory without access.
static uint8_t draw_bits(void)
{
    static const uint8_t usual[] = {0, 0, 0xff, 0xff, 0xa5, 0x5a};
    return draw(4) ? usual[draw(sizeof usual)] : draw(256);
}

static void try_move(unsigned which, uint8_t *to, uint8_t *from)
{
    unsigned size = moves[which].size, kept = moves[which].kept;
    uint8_t bits[MOST], old[MOST], arrived[MOST], value[MOST] = {0};
    for (unsigned i = 0; i < size; i++) {
        bits[i] = draw_bits();
        old[i] = draw_bits();
        from[i] = value[i] = draw(256);
    }
    VALGRIND_SET_VBITS(from, bits, size);
    VALGRIND_SET_VBITS(to, old, size);
    moves[which].move(to, from, draw(256) << 8 | draw(2));
    memset(bits + kept, 0, MOST - kept);
    memset(value + kept, 0, MOST - kept);
    VALGRIND_GET_VBITS(to, arrived, size);
    VALGRIND_MAKE_MEM_DEFINED(to, size);
    VALGRIND_MAKE_MEM_DEFINED(from, size);
    if (memcmp(arrived, bits, size) || memcmp(to, value, size) || flags_before != flags_after) {
        printf("%s: wrong %s\n", moves[which].name,
               memcmp(to, value, size)          ? "value"
               : flags_before != flags_after ? "flags"
                                             : "bits");
        exit(1);
    }
}

int main(int argc, char **argv)
{
    static uint8_t global[PLACE];
    uint8_t local[PLACE], *heap = malloc(PLACE), *huge = malloc(4 << 20);
    uint8_t *mapped = mmap(NULL, PLACE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t *places[] = {global, local, heap, huge, mapped};
    enum { PLACES = sizeof places / sizeof places[0], MOVES = sizeof moves / sizeof moves[0] };
    unsigned done = 0;
    has_avx = __builtin_cpu_supports("avx");
    for (long round = atol(argv[1]); round > 0; round--) {
        for (unsigned which = 0; which < MOVES; which++) {
            if (moves[which].needs_avx && !has_avx)
                continue;
            unsigned from = draw(PLACES), to = draw(PLACES);
            try_move(which, places[to] + draw(PLACE / 2 - MOST),
                     places[from] + PLACE / 2 + draw(PLACE / 2 - MOST));
            done++;
        }
    }
    printf("%s\n", done ? "fine" : "nothing done");
    return 0;
}
