// Small programs without a C library: what they run depends on nothing but themselves. PROGRAM is
// the one to build. With an argument, a program is killed when it has done its work.
#define MAIN(name) __attribute__((noinline, used)) static long name(void)
#define NOINLINE   __attribute__((noinline))

static unsigned long seed = 1;
static long table[4096];

static long call(long number, long a, long b, long c, long d) {
    register long r10 __asm__("r10") = d;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
                     : "rcx", "r11", "memory");
    return result;
}

NOINLINE static unsigned next(void) {
    seed = seed * 6364136223846793005ul + 1442695040888963407ul;
    return seed >> 33;
}

MAIN(sort) {
    for (int i = 0; i < 400; i++)
        table[i] = next();
    for (int i = 1; i < 400; i++)
        for (int k = i; k > 0 && table[k - 1] > table[k]; k--) {
            long kept = table[k];
            table[k] = table[k - 1];
            table[k - 1] = kept;
        }
    return table[200];
}

NOINLINE static long fibonacci(long n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
MAIN(recursion) {
    return fibonacci(18);
}

MAIN(sieve) {
    long count = 0;
    for (int i = 2; i < 4096; i++) {
        if (table[i])
            continue;
        count++;
        for (int k = 2 * i; k < 4096; k += i)
            table[k] = 1;
    }
    return count;
}

MAIN(matrix) {
    static double a[20][20], b[20][20], c[20][20];
    for (int i = 0; i < 400; i++)
        a[i / 20][i % 20] = b[i % 20][i / 20] = next() % 100 / 7.0;
    for (int i = 0; i < 20; i++)
        for (int k = 0; k < 20; k++)
            for (int j = 0; j < 20; j++)
                c[i][k] += a[i][j] * b[j][k];
    return (long)c[3][4];
}

MAIN(machine) { // a jump table
    long a = 0, b = 1;
    for (int i = 0; i < 5000; i++)
        switch (next() % 9) {
        case 0: a += b; break;
        case 1: b ^= a; break;
        case 2: a *= 3; break;
        case 3: b -= 7; break;
        case 4: a = b << 2; break;
        case 5: b = a >> 1; break;
        case 6: a ^= 0x55; break;
        case 7: b = -b; break;
        default: table[i % 4096] = a;
        }
    return a + b;
}

NOINLINE static long twice(long x) {
    return 2 * x;
}
NOINLINE static long square(long x) {
    return x * x;
}
NOINLINE static long less(long x) {
    return x - 1;
}
MAIN(pointers) {
    static long (*const volatile functions[])(long) = {twice, square, less};
    long x = 1;
    for (int i = 0; i < 3000; i++)
        x = functions[next() % 3](x);
    return x;
}

MAIN(strings) {
    static char text[3000], copy[3000];
    long sum = 0;
    for (int round = 0; round < 20; round++) {
        void *to = text, *from;
        long size = next() % 3000;
        __asm__ volatile("rep stosb" : "+D"(to), "+c"(size) : "a"('a' + round) : "memory");
        to = copy, from = text, size = next() % 300;
        __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
        to = copy, from = text, size = 3000;
        __asm__ volatile("repe cmpsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory", "cc");
        sum += size;
        to = text, size = 3000;
        __asm__ volatile("repne scasb" : "+D"(to), "+c"(size) : "a"(0) : "memory", "cc");
        sum += size;
    }
    return sum;
}

// More instructions in a line than a block of either translator has.
#define TEN(x) x x x x x x x x x x
MAIN(straight) {
    long x = 1;
    for (int i = 0; i < 50; i++) {
        __asm__ volatile(TEN(TEN("add $3, %0\n\t lea 1(%0), %0\n\t")) : "+r"(x) : : "cc");
        if (x & 4)
            __asm__ volatile(TEN("xor $5, %0\n\t") : "+r"(x) : : "cc");
        __asm__ volatile(TEN(TEN("nop\n\t")) TEN("nop\n\t"));
    }
    return x;
}

// Jumps into the middle of blocks.
MAIN(middle) {
    long x = 0, count = 200;
    __asm__ volatile("1: test $3, %1\n\t jz 3f\n\t"
                     "2:" TEN("inc %0\n\t") "3:" TEN(TEN("nop\n\t")) "dec %1\n\t jz 4f\n\t"
                     "test $5, %1\n\t jnz 1b\n\t test $8, %1\n\t jz 2b\n\t jmp 3b\n\t 4:"
                     : "+r"(x), "+r"(count)
                     :
                     : "cc");
    return x;
}

MAIN(loops) {
    long x = 0;
    for (long i = 1; i < 60; i++) {
        long count = i;
        __asm__ volatile("1: add $2, %0\n\t loop 1b\n\t jrcxz 2f\n\t inc %0\n\t 2:"
                         : "+r"(x), "+c"(count)
                         :
                         : "cc");
    }
    return x;
}

__attribute__((used)) static void start(long count) {
    volatile long result = PROGRAM();
    (void)result;
    if (count > 1)
        call(62, call(39, 0, 0, 0, 0), 9, 0, 0);
    call(231, 0, 0, 0, 0);
}
__asm__(".globl _start\n_start: mov (%rsp), %rdi\n\t and $-16, %rsp\n\t call start");
