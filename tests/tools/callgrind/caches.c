// What caches and branch prediction make of a program whose data lies at fixed addresses.
#include <string.h>

enum { SIDE = 96, BYTES = 1 << 18, NUMBERS = 1 << 14 };

static double matrices[3][SIDE][SIDE];
static unsigned char bytes[BYTES + 64];
static int numbers[NUMBERS];

__attribute__((noinline)) static void multiply(void) {
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) {
            double sum = 0;
            for (int k = 0; k < SIDE; k++)
                sum += matrices[0][i][k] * matrices[1][k][j];
            matrices[2][i][j] = sum;
        }
}

__attribute__((noinline)) static void scatter(void) {
    unsigned at = 1;
    for (int i = 0; i < 100000; i++) {
        at = at * 1103515245u + 12345;
        bytes[at >> 8 & (BYTES - 1)]++;
        if (at >> 16 & 1)
            numbers[at >> 18] ^= i;
    }
}

__attribute__((noinline)) static void straddle(void) {
    for (int i = 0; i + 8 < BYTES; i += 5) {
        long value;
        memcpy(&value, bytes + i, 8);
        value += i;
        memcpy(bytes + i, &value, 8);
    }
}

// Valgrind does not count branches whose conditions it can work out, as the first one of a loop
// that starts from a constant.
static volatile int changes = 2000, repeats = 200;

__attribute__((noinline)) static void change(void) {
    for (int i = changes; i > 0; i--)
        __asm__ volatile("lock xaddl %%eax, (%0)\n\txchgl %%eax, 4(%0)\n\tcmpxchgl %%ecx, 8(%0)\n\t"
                         "fldt (%0)\n\tfstpt 32(%0)\n\tadcl $1, (%0)\n\tnotl 60(%0)\n\t"
                         "movups 13(%0), %%xmm0\n\tmovups %%xmm0, 57(%0)\n\tprefetcht0 (%0)"
                         :
                         : "r"(bytes + i * 64)
                         : "eax", "ecx", "memory", "cc", "xmm0");
}

// Bits of registers, which the model keeps in memory below the stack pointer: here it points into
// the data, to lie at the same place for everybody.
__attribute__((noinline)) static void ask_bits(void) {
    for (long i = 512; i > 0; i--)
        __asm__ volatile("mov %%rsp, %%r11\n\tmov %0, %%rsp\n\tbt %%eax, %%ecx\n\t"
                         "adc $0, %%edx\n\tbts %%rax, %%rcx\n\tbtr %%ax, %%cx\n\t"
                         "mov %%r11, %%rsp\n\tbtc %%r9, %%r10\n\tbt $3, %%eax"
                         :
                         : "r"(bytes + BYTES / 4 + i * 64)
                         : "eax", "ecx", "edx", "r9", "r10", "r11", "memory", "cc");
}

typedef int operation(int);
__attribute__((noinline)) static int twice(int x) {
    return 2 * x;
}
__attribute__((noinline)) static int half(int x) {
    return x / 2;
}
static operation *const operations[] = {twice, half, half};

__attribute__((noinline)) static int choose(void) {
    int x = 1;
    for (int i = 0; i < 3000; i++)
        x += operations[i * 7 % 3](x) & 15;
    return x;
}

__attribute__((noinline)) static void repeat(void) {
    for (int i = repeats; i > 0; i--) {
        void *to = bytes + 100 * i, *from = bytes + BYTES / 2 + 37 * i;
        long count = 13 * (i % 17);
        __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
    }
}

__attribute__((noinline)) static int everything(void) {
    multiply();
    scatter();
    straddle();
    change();
    ask_bits();
    repeat();
    return choose() == 0;
}

// Frames lie at the same place of a page in every run, however large the environment above them is:
// the caches go by addresses.
int main(void) {
    _Alignas(65536) volatile char place[64];
    place[0] = 0;
    return everything() + place[0];
}
