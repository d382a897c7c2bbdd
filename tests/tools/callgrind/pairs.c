// Conditional branches that follow each other, in all the ways that matter to whether cachegrind
// takes two of them for one (tools/callgrind/target/joined.h). Each function is called with numbers that
// are as good as random.
#define APART __attribute__((noinline))
#define PLAIN __asm__ volatile("") // keeps a compiler from joining conditions itself

static volatile int sink;
static int table[64];

APART static int both(int a, int b) {
    if (a > 30) {
        PLAIN;
        if (b > 40)
            return 1;
    }
    return 2;
}

APART static int either(int a, int b) {
    if (a > 30)
        goto yes;
    PLAIN;
    if (b > 40)
        goto yes;
    return 2;
yes:
    sink++;
    return table[a & 63];
}

APART static int three(int a, int b, int c) {
    int result = 0;
    if (a > 20) {
        PLAIN;
        if (b > 20) {
            PLAIN;
            if (c > 20)
                result = table[c & 63];
        }
    }
    sink = result;
    return result + a;
}

APART static int reads_between(int a, int b) {
    int result = 0;
    if (a > 30 && table[b & 63] > 30)
        result = 1;
    sink = result;
    sink += a;
    return result;
}

APART static int divides_between(int a, int b) {
    int result = 0;
    if (a > 30 && 1000 / b > 20)
        result = 1;
    sink = result;
    sink += a;
    return result;
}

APART static int works_between(int a, int b) {
    int result = 0;
    if (a > 30) {
        b = (b * 5 + 3) ^ (b >> 2);
        PLAIN;
        if (b > 200)
            result = 1;
    }
    sink = result;
    sink += a;
    return result;
}

APART static int compares_floats(double a, double b) {
    int result = 0;
    if (a == b)
        result = 1;
    else if (a != a || b > 50)
        result = 3;
    sink = result;
    sink += 2;
    return result;
}

APART static int loops(int a, int b) {
    int steps = 0;
    while (a > 3 && b > 3) {
        PLAIN;
        a -= b & 7;
        b -= a & 3;
        if (++steps > 20)
            break;
    }
    sink = steps;
    return steps;
}

// Behind a jump, which is an extension itself, and behind two calls.
APART static int behind_calls(int a, int b) {
    return both(a, b) + either(b, a) + both(b, a);
}

// In the last instructions of a piece, wherever it ends.
#define ONE  "lea 1(%%rax), %%eax\n\t"
#define FOUR ONE ONE ONE ONE
#define LONG(name, filler)                                                                         \
    APART static int name(int a, int b) {                                                          \
        int x = a;                                                                                 \
        __asm__ volatile(filler "cmp $30, %2\n\tjle 1f\n\tcmp $40, %3\n\tjle 1f\n\tlea 7(%%rax), " \
                                "%%eax\n1:\tlea 3(%%rax), %%eax\n\tlea 3(%%rax), %%eax"            \
                         : "=a"(x)                                                                 \
                         : "0"(x), "r"(a), "r"(b)                                                  \
                         : "cc");                                                                  \
        return x;                                                                                  \
    }
#define EIGHT FOUR FOUR
#define FORTY EIGHT EIGHT EIGHT EIGHT EIGHT
LONG(long40, FORTY)
LONG(long44, FORTY FOUR)
LONG(long48, FORTY EIGHT)
LONG(long49, FORTY EIGHT ONE)
LONG(long50, FORTY EIGHT ONE ONE)
LONG(long51, FORTY EIGHT ONE ONE ONE)
LONG(long52, FORTY EIGHT FOUR)
LONG(long53, FORTY EIGHT FOUR ONE)
LONG(long54, FORTY EIGHT FOUR ONE ONE)
LONG(long56, FORTY EIGHT EIGHT)
LONG(long60, FORTY EIGHT EIGHT FOUR)

// Bits of registers by number, which Valgrind has in memory. The first branch begins a piece.
APART static int bits_between(long a, long b) {
    __asm__ volatile("test %0, %0\n\tjs 2f\n\tcmp $50, %0\n\tja 1f\n\tmov $0x206020, %%esi\n\t"
                     "bt %1, %%rsi\n\tjb 2f\n1:\tadd $1, %0\n\tmov %0, %1\n\tadd $1, %0\n2:"
                     : "+r"(a), "+r"(b)
                     :
                     : "rsi", "cc");
    return (int)a;
}

// Jumps to where a register says that was set in the same piece, or not quite.
#define GOES(name, way)                                                                            \
    APART static int name(long a, long b) {                                                        \
        __asm__ volatile("lea 2f(%%rip), %%rdx\n\tlea 1f(%%rip), %%rax\n\tcmp $30, %0\n\t" way     \
                         "add $1, %0\n1:\tadd $1, %0\n2:\tadd $1, %0"                              \
                         : "+r"(a), "+r"(b)                                                        \
                         :                                                                         \
                         : "rax", "rdx", "r9", "cc", "memory");                                    \
        return (int)a;                                                                             \
    }
GOES(goes_known, "mov %1, %0\n\tmovl $5, table(%%rip)\n\tnopl (%%rax)\n\tjmp *%%rax\n\t")
GOES(goes_copied, "mov %%rax, %%r9\n\txor %%eax, %%eax\n\tjmp *%%r9\n\t")
#ifdef __PIE__
#define NUMBER "lea 1f(%%rip), %%r9\n\t"
#else
#define NUMBER "mov $1f, %%r9d\n\t"
#endif
GOES(goes_number, NUMBER "mov %%r9, %%rdx\n\tjmp *%%rdx\n\t")
GOES(goes_on, "jmp 3f\n\tnop\n3:\tadd $1, %0\n\tjmp *%%rax\n\t")
GOES(goes_on_twice, "jmp 3f\n\tnop\n3:\tadd $1, %0\n\tjmp 4f\n\tnop\n4:\tjmp *%%rax\n\t")
GOES(goes_either, "cmovg %%rdx, %%rax\n\tjmp *%%rax\n\t")
GOES(goes_later, "jg 3f\n\tadd $2, %0\n3:\tadd $2, %0\n\tjmp *%%rax\n\t")
GOES(goes_by_memory, "push %%rax\n\tpop %%rdx\n\tjmp *%%rdx\n\t")
#define ADD  "add $1, %0\n\t"
#define ADD8 ADD ADD ADD ADD ADD ADD ADD ADD
GOES(goes_far, ADD8 ADD8 "jmp *%%rax\n\t")
GOES(goes_too_far, ADD8 ADD8 ADD8 ADD8 ADD8 ADD8 ADD8 ADD8 "jmp *%%rax\n\t")

int main(void) {
    unsigned state = 1;
    int sum = 0;
    for (int i = 0; i < 20000; i++) {
        state = state * 1103515245u + 12345;
        int a = state >> 16 & 63, b = state >> 24 & 63, c = state >> 10 & 63;
        table[i & 63] = c;
        sum += both(a, b) + either(a, b) + three(a, b, c) + reads_between(a, b);
        sum += divides_between(a, b + 1) + works_between(a, b) + loops(a, b) + behind_calls(b, c);
        sum += compares_floats(a, b) + compares_floats(a & 3, b & 3);
        sum += long40(a, b) + long44(a, b) + long48(a, b) + long49(a, b) + long50(a, b);
        sum += long51(a, b) + long52(a, b) + long53(a, b) + long54(a, b) + long56(a, b);
        sum += long60(a, b) + bits_between(a, b);
        sum += goes_known(a, b) + goes_copied(a, b) + goes_number(a, b) + goes_either(a, b);
        sum += goes_later(a, b) + goes_by_memory(a, b) + goes_far(a, b) + goes_too_far(a, b);
        sum += goes_on(a, b) + goes_on_twice(a, b);
    }
    sink = sum;
    return 0;
}
