// Virtual calls, templates, exceptions through several frames.
#include <cstdio>
#include <stdexcept>

#define APART __attribute__((noinline))

struct Shape {
    virtual int area(int x) { return x + 1; }
    virtual ~Shape() {}
};
struct Square : Shape {
    APART int area(int x) override {
        if (x % 4 == 0)
            throw std::runtime_error("flat");
        return x * x;
    }
};

template <class T> APART T sum(T a, T b) {
    return a + b;
}

APART static int pass_on(Shape *shape, int x) {
    return sum(shape->area(x), 1);
}

APART static int careful(Shape *shape, int x) {
    try {
        return pass_on(shape, x);
    } catch (const std::exception &) {
        return sum(-1, x);
    }
}

int main() {
    Shape plain;
    Square square;
    Shape *shapes[] = {&plain, &square};
    double total = 0;
    for (int i = 0; i < 40; i++)
        total = sum(total, (double)careful(shapes[i & 1], i));
    return std::printf("%.0f\n", total) < 0;
}
