// Functions that call each other: straight recursion, a circle of three, a circle within a circle, and
// a function that several of them call.
#include <stdio.h>

static volatile int sink;

static void leaf(int n) {
    for (int i = 0; i < n; i++)
        sink += i;
}

static int second(int n);
static int third(int n);

static int first(int n) {
    leaf(3 * n);
    return n <= 0 ? 1 : second(n - 1) + 1;
}

static int second(int n) {
    leaf(n);
    if (n <= 0)
        return 2;
    return n % 3 ? third(n - 1) + first(n / 2) : first(n - 1) + 1;
}

static int third(int n) {
    leaf(7 * n);
    return n <= 0 ? 3 : first(n - 1) + second(n - 2);
}

static int alone(int n) {
    leaf(n);
    return n <= 0 ? 0 : alone(n - 1) + (n % 5 == 0 ? first(2) : 0);
}

int main(void) {
    int sum = 0;
    for (int i = 0; i < 24; i++)
        sum += first(i) + third(i / 2) + alone(i);
    printf("%d\n", sum);
    return 0;
}
