// Functions that call themselves and each other, so that direct recursion meets every level.
#include <stdio.h>

#define APART __attribute__((noinline, noclone))

static volatile int sink;

APART static int other(int n);

APART static int mixed(int n) {
    sink += n;
    if (n <= 0)
        return 0;
    return n % 3 ? mixed(n - 1) + 1 : other(n - 1) + mixed(n - 2);
}

APART static int other(int n) {
    sink -= n;
    if (n <= 0)
        return 1;
    return n % 2 ? other(n - 1) + mixed(n / 2) : mixed(n - 1) + 1;
}

int main(void) {
    int sum = 0;
    for (int i = 0; i < 15; i++)
        sum += i % 2 ? mixed(i) : other(i);
    return printf("%d\n", sum) < 0;
}
