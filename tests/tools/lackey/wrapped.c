// Functions of the program and of the C library that the program itself replaces or wraps when it
// runs under Valgrind or Quern.
#include <stdio.h>
#include <stdlib.h>
#include <valgrind/valgrind.h>

__attribute__((noipa)) static int twice(int x) {
    return 2 * x;
}

__attribute__((noipa)) static int greet(const char *who) {
    return printf("hello %s\n", who);
}

__attribute__((noipa)) static long sum(long a, long b, long c) {
    return a + b + c;
}

// Its first instruction reads memory that may be undefined.
__attribute__((noipa)) static int fetch(const int *from) {
    return *from;
}

int I_REPLACE_SONAME_FNNAME_ZU(NONE, twice)(int x) {
    return 200 * x;
}

int I_WRAP_SONAME_FNNAME_ZU(NONE, greet)(const char *who) {
    OrigFn fn;
    int result;
    VALGRIND_GET_ORIG_FN(fn);
    printf("before\n");
    CALL_FN_W_W(result, fn, who);
    printf("after\n");
    return result + 100;
}

int I_WRAP_SONAME_FNNAME_ZU(NONE, fetch)(const int *from) {
    OrigFn fn;
    int result;
    VALGRIND_GET_ORIG_FN(fn);
    CALL_FN_W_W(result, fn, from);
    return result & 0;
}

long I_WRAP_SONAME_FNNAME_ZZ(NONE, suZa)(long a, long b, long c) {
    OrigFn fn;
    long result;
    VALGRIND_GET_ORIG_FN(fn);
    CALL_FN_W_WWW(result, fn, a + 1000, b, c);
    return result;
}

int I_WRAP_SONAME_FNNAME_ZZ(libcZdsoZd6, atoi)(const char *text) {
    OrigFn fn;
    int result;
    VALGRIND_GET_ORIG_FN(fn);
    CALL_FN_W_W(result, fn, text);
    return result + 7;
}

int main(void) {
    int (*volatile f)(const char *) = atoi;
    printf("%d\n", twice(3));
    printf("%d\n", greet("world"));
    printf("%ld\n", sum(1, 2, 3));
    printf("%d\n", f("35"));
    for (int i = 0; i < 3; i++)
        printf("%d %d\n", twice(i), f("1"));
    int *undefined = malloc(sizeof *undefined);
    printf("%d\n", fetch(undefined));
    free(undefined);
    return 0;
}
