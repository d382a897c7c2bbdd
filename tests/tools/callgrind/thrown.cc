// Exceptions: thrown through recursion and mutual recursion, rethrown, caught on the way, thrown by
// destructors' siblings; functions that clean up while one passes.
#include <cstdio>

#define APART __attribute__((noinline))

static long cleaned;

struct Guard {
    long weight;
    APART explicit Guard(long w) : weight(w) {}
    APART ~Guard() { cleaned += weight; }
};

APART static long leaf(long x) {
    if (x % 5 == 0)
        throw x;
    return x * 3;
}

APART static long down(long depth, long x) {
    Guard guard(depth);
    if (depth == 0)
        return leaf(x);
    return down(depth - 1, x + 1) + 1;
}

APART static long pong(long depth, long x);

APART static long ping(long depth, long x) {
    try {
        return depth == 0 ? leaf(x) : pong(depth - 1, x);
    } catch (long caught) {
        if (depth & 1)
            throw;
        throw caught + 1;
    }
}

APART static long pong(long depth, long x) {
    Guard guard(x);
    return ping(depth, x) + 2;
}

APART static long careful(long (*what)(long, long), long depth, long x) {
    try {
        return what(depth, x);
    } catch (long caught) {
        return -caught;
    }
}

int main() {
    long sum = 0;
    for (long i = 0; i < 12; i++)
        sum += careful(down, i % 4, i) + careful(ping, i % 3, i);
    return std::printf("%ld %ld\n", sum, cleaned) < 0;
}
