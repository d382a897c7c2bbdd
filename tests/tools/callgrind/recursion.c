// Direct and mutual recursion, to several depths and from several callers.
#include <stdio.h>

#define APART __attribute__((noinline))

APART static int fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

static int is_odd(int n);

APART static int is_even(int n) {
    return n == 0 ? 1 : is_odd(n - 1) + 0;
}

APART static int is_odd(int n) {
    return n == 0 ? 0 : is_even(n - 1) * 1;
}

APART static int ackermann(int m, int n) {
    if (m == 0)
        return n + 1;
    return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

APART static int first(int n);
APART static int third(int n) {
    return n <= 0 ? fibonacci(3) : first(n - 1) + 1;
}
APART static int second(int n) {
    return n % 3 ? third(n - 1) + fibonacci(2) : first(n - 2);
}
APART static int first(int n) {
    return n <= 0 ? 1 : second(n) + third(n - 2);
}

int main(void) {
    int sum = fibonacci(14) + is_even(20) + is_odd(11) + ackermann(2, 5);
    for (int i = 0; i < 9; i++)
        sum += first(i);
    return printf("%d\n", sum) < 0;
}
