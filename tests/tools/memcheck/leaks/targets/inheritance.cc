// Objects with several bases, held by a pointer to the second.
#include "target.h"

struct First {
    long a;
    First() : a(1) {}
    virtual ~First() {}
    virtual void one() { a++; }
};
struct Second {
    long b;
    Second() : b(1) {}
    virtual ~Second() {}
    virtual void two() { b++; }
};
struct Both : First, Second {
    long c;
    Both() : c(1) {}
    void one() { c++; }
    void two() { c--; }
};
struct Flat {
    long a, b, c;
};
static Second *volatile kept[4];
static long *volatile inside;

static void __attribute__((noinline)) make() {
    kept[0] = new Both;
    kept[1] = static_cast<Second *>(new Both);
    new Both;
    inside = &(new Flat())->b;
}
int main() {
    make();
    wipe();
    return 0;
}
