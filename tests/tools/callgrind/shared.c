// Functions that run the same code, which has no symbol once the program is stripped: pieces that two
// jump to, hidden functions that are called here and jumped to there, directly, through pointers and
// through tables, also in a library; and functions that go on in the next one. With -DLIBRARY, the
// library.
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#define APART __attribute__((noinline, noclone))
#define SHOWN APART __attribute__((visibility("default")))
typedef long function(long, long);
function *library_function(int which);

#ifdef LIBRARY

static APART long beyond(long a, long n) {
    for (long i = 0; i < n; i++)
        a = a * 5 + i;
    return a;
}

static APART long far_beyond(long a, long n) {
    return a > 3 ? beyond(a + 1, n) : beyond(a, 2) + 1;
}

SHOWN function *library_function(int which) {
    return which ? beyond : far_beyond;
}

#else

SHOWN long helper(long a) {
    return a * 3 + 1;
}

// Two that go on in a common piece, which calls, has a loop and a piece of its own behind a branch;
// two into the midst of it; and pieces that lead back.
__asm__(".text\n"
        "\t.globl first\n\t.type first, @function\nfirst:\tadd $1, %rdi\n\tjmp 1f\n"
        "\t.size first, . - first\n\tnop\n"
        "\t.globl second\n\t.type second, @function\nsecond:\tadd $2, %rdi\n\tjmp 1f\n"
        "\t.size second, . - second\n\tnop\n"
        "\t.globl third\n\t.type third, @function\nthird:\tlea 5(%rdi), %rax\n\tcmp $6, %rax\n"
        "\tja 3f\n\tret\n\t.size third, . - third\n\tnop\n"
        "\t.globl fourth\n\t.type fourth, @function\nfourth:\tmov %rdi, %rax\n\tmov $2, %ecx\n"
        "\tjrcxz 3f\n\tjmp 2f\n4:\tadd $9, %rax\n\tret\n\t.size fourth, . - fourth\n\tnop\n"
        "1:\tpush %rbx\n\tmov %rdi, %rbx\n\tcall helper@plt\n\tadd %rbx, %rax\n\tmov $5, %ecx\n"
        "\tpop %rbx\n2:\tdec %ecx\n\tjnz 2b\n\tcmp $100, %rax\n\tja 3f\n\tcmp $20, %rax\n"
        "\tja 4b\n\tret\n\tnop\n"
        "3:\tsub $7, %rax\n\tret\n");
long first(long), second(long), third(long), fourth(long);

// Functions that go on in the next one: in the midst of a row, and behind a branch.
__asm__(".text\n"
        "\t.globl falls\n\t.type falls, @function\nfalls:\tadd $1, %rdi\n"
        "\t.size falls, . - falls\n"
        "\t.globl fallen\n\t.type fallen, @function\nfallen:\tmov $3, %ecx\n1:\tdec %ecx\n\tjnz 1b\n"
        "\tpush %rdi\n\tcall helper@plt\n\tpop %rcx\n\tadd %rcx, %rax\n\tret\n"
        "\t.size fallen, . - fallen\n"
        "\t.globl branches\n\t.type branches, @function\nbranches:\tcmp $5, %rdi\n\tja 2f\n"
        "\t.size branches, . - branches\n"
        "\t.globl branched\n\t.type branched, @function\nbranched:\tmov $4, %ecx\n1:\tdec %ecx\n"
        "\tjnz 1b\n2:\tmov %rdi, %rax\n\tret\n\t.size branched, . - branched\n");
long falls(long), fallen(long), branches(long), branched(long);

static APART long inner(long a, long n) {
    for (long i = 0; i < n; i++)
        a = a * 31 + helper(i);
    return a;
}

static APART long deeper(long a, long n) {
    return n < 2 ? a + n : deeper(a + 1, n - 1) + inner(a, n);
}

static APART long choose(long a, long n) {
    switch (n % 7) {
    case 0:
        return inner(a, 1);
    case 1:
        return a + helper(n);
    case 2:
        return deeper(a, 3);
    case 3:
        return a * n;
    case 4:
        return inner(a, n) + 1;
    case 5:
        return a ^ n;
    default:
        return deeper(n, a % 4);
    }
}

static jmp_buf place;

static APART long leaves(long a, long n) {
    if (helper(a) % 5 == n % 5)
        longjmp(place, 1);
    return a;
}

static function *const table[] = {inner, deeper, choose, leaves};
static function *volatile through = inner;

SHOWN long inner_first(long a) {
    return inner(a + 1, 5);
}
SHOWN long inner_second(long a) {
    return inner(a + 2, 7);
}
SHOWN long calls_inner(long a) {
    return inner(a, 3) + 1;
}
SHOWN long deeper_on(long a) {
    return deeper(a, 4);
}
SHOWN long calls_deeper(long a) {
    return deeper(a, 3) + 1;
}
SHOWN long chooses(long a) {
    return choose(a, a);
}
SHOWN long calls_choose(long a) {
    return choose(a, a + 1) + 1;
}
SHOWN long by_pointer(long a) {
    return through(a, 4);
}
SHOWN long by_table(long a) {
    return table[a & 3](a, a);
}
static APART long hidden_by_table(long a, long n) {
    return table[a & 3](a, n);
}
SHOWN long calls_hidden(long a) {
    return hidden_by_table(a, 2) + hidden_by_table(a + 1, 3);
}

static APART long all(long a) {
    long sum = first(a * 10) + second(a * 20) + third(a) + fourth(a) + falls(a) + fallen(a) +
               branches(a) + branched(a);
    sum += inner_first(a) + calls_inner(a) + inner_second(a) + deeper_on(a) + calls_deeper(a);
    sum += calls_choose(a) + chooses(a) + by_table(a) + calls_hidden(a);
    function *const others[] = {inner, library_function(0), deeper, library_function(1), choose};
    for (unsigned i = 0; i < 5; i++) {
        through = others[(i + (unsigned long)a) % 5];
        sum += by_pointer(a);
    }
    return sum;
}

int main(void) {
    static volatile long turns, sum;
    setjmp(place);
    while (turns < 12) {
        turns = turns + 1;
        sum = sum + all(turns);
    }
    printf("%ld\n", sum);
    return 0;
}

#endif
