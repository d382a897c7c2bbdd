// Indirect calls of many targets: virtual functions, std::function, member pointers, switches.
#include "stress.h"
#include <functional>
#include <memory>
#include <vector>

struct Shape {
    virtual ~Shape() = default;
    virtual uint64_t step(uint64_t h) const = 0;
};
template <int N> struct Form : Shape {
    uint64_t step(uint64_t h) const override { return stress_mix(h, N) + N; }
};

template <int N> static void add(std::vector<std::unique_ptr<Shape>> &shapes) {
    if constexpr (N > 0)
        add<N - 1>(shapes);
    shapes.push_back(std::make_unique<Form<N>>());
}

static NOINLINE uint64_t choose(unsigned n, uint64_t h) {
    switch (n % 16) {
    case 0:
        return h + 1;
    case 1:
        return h * 3;
    case 2:
        return h ^ 0x55;
    case 3:
        return h - 7;
    case 4:
        return h >> 1;
    case 5:
        return h << 1;
    case 6:
        return ~h;
    case 7:
        return h * h;
    case 8:
        return h + (h >> 5);
    case 9:
        return h ^ (h >> 9);
    case 10:
        return h | 1;
    case 11:
        return h & ~2ull;
    case 12:
        return h * 5 + 1;
    case 13:
        return h - (h >> 3);
    case 14:
        return h + 99;
    default:
        return h ^ (h << 3);
    }
}

static NOINLINE int fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

int main() {
    std::vector<std::unique_ptr<Shape>> shapes;
    add<63>(shapes);
    uint64_t h = 1;
    for (int i = 0; i < 1000000; i++)
        h = shapes[h >> 58]->step(h);
    printf("virtual %016llx\n", (unsigned long long)h);
    std::vector<std::function<uint64_t(uint64_t)>> functions;
    for (unsigned i = 0; i < 32; i++)
        functions.emplace_back([i](uint64_t x) { return stress_mix(x, i); });
    for (int i = 0; i < 500000; i++)
        h = functions[h >> 59](h);
    printf("functions %016llx\n", (unsigned long long)h);
    for (unsigned i = 0; i < 1000000; i++)
        h = choose(static_cast<unsigned>(h >> 40), h);
    printf("switch %016llx\n", (unsigned long long)h);
    printf("fibonacci %d\n", fibonacci(27));
    return 0;
}
