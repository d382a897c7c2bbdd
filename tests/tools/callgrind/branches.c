// Calls through pointers, tail calls, switches, unlikely code that the compiler sets apart.
#include <stdio.h>
#include <stdlib.h>

#define APART __attribute__((noinline))

struct node {
    struct node *next;
    int value;
};

APART static int leaf(int x) {
    __asm__ volatile("");
    return x + 1;
}

APART static int middle(int x) {
    __asm__ volatile("");
    return leaf(x * 2);
}

APART static int top(int x) {
    return x & 1 ? middle(x) : leaf(x);
}

static int (*const table[])(int) = {leaf, middle, top};

APART static int through_pointer(int x) {
    return table[x % 3](x);
}

APART static int through_pointer_and_back(int x) {
    return table[x % 3](x) + table[(x + 1) % 3](x);
}

APART static int into_library(int x) {
    return abs(x) + atoi("12");
}

APART static long library_last(const char *text) {
    return atol(text);
}

APART __attribute__((cold)) static void complain(int x) {
    if (x == 3)
        printf("complaint %d\n", x);
}

APART static int seldom(int x) {
    if (__builtin_expect(x % 5 == 0, 0)) {
        complain(x);
        x += 2;
        complain(x);
    }
    return x * 3;
}

APART static int choose(int x) {
    switch (x % 8) {
    case 0:
        return leaf(3);
    case 1:
        return x * 7;
    case 2:
        return middle(x);
    case 3:
        return x ^ 5;
    case 4:
        return top(x);
    case 5:
        return 1;
    case 6:
        return leaf(x) + 2;
    }
    return 9;
}

APART static int last_value(const struct node *at) {
    if (!at)
        return 0;
    return at->next ? last_value(at->next) : at->value;
}

static int by_value(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

int main(void) {
    struct node nodes[5];
    int numbers[100];
    long sum = 0;
    for (int i = 0; i < 5; i++)
        nodes[i] = (struct node){i < 4 ? &nodes[i + 1] : NULL, i};
    for (int i = 0; i < 100; i++)
        numbers[i] = i * 37 % 101;
    qsort(numbers, 100, sizeof *numbers, by_value);
    for (int i = 0; i < 50; i++)
        sum += top(i) + through_pointer(i) + through_pointer_and_back(i) + into_library(i) +
               library_last("7") + seldom(i) + choose(i) + last_value(nodes);
    return printf("%ld %d\n", sum, numbers[7]) < 0;
}
