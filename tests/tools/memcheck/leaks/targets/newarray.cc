// Arrays of objects that have destructors; of those that have none; of none at all.
#include "target.h"

struct Named {
    long a, b, c;
    Named() : a(0), b(0), c(0) {}
    ~Named() { a = 1; }
};
struct Plain {
    long a;
};
static void *volatile kept[8];

static void __attribute__((noinline)) make() {
    kept[0] = new Named[5];
    new Named[7];
    kept[1] = new Plain[5];
    kept[2] = new Named[0];
    kept[3] = new Named[3] + 1;
    kept[4] = new long;
    kept[5] = new char[100];
    new char[101];
}
int main() {
    make();
    wipe();
    return 0;
}
