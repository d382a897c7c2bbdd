// Templates, lambdas, overloads, destructors and inlining for the symbol tests.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>
#ifdef WITH_VALGRIND
#include <valgrind/valgrind.h>
#else
#define VALGRIND_PRINTF_BACKTRACE(...) ((void)0)
#endif

namespace shapes {
struct Shape {
    virtual ~Shape() { VALGRIND_PRINTF_BACKTRACE("backtrace destructor\n"); }
    virtual double area() const = 0;
};

template <class Number> struct Square final : Shape {
    Number side;
    explicit Square(Number s) : side(s) {}
    double area() const override {
        VALGRIND_PRINTF_BACKTRACE("backtrace area\n");
        return double(side * side);
    }
    bool operator<(const Square &other) const { return side < other.side; }
};

inline namespace v1 {
template <class... Rest> __attribute__((noinline)) double sum(const Shape &first, const Rest &...rest) {
    if constexpr (sizeof...(rest) == 0)
        return first.area();
    else
        return first.area() + sum(rest...);
}
} // namespace v1
} // namespace shapes

__attribute__((noinline)) static int apply(const std::function<int(int)> &function, int value) {
    return function(value) + 1;
}

static void print_mappings() {
    char line[4096];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        printf("%s", line);
    fflush(stdout);
}

int main(int argc, char **) {
    std::vector<int> numbers{5, 3, argc, 9};
    std::sort(numbers.begin(), numbers.end(), [&](int left, int right) {
        VALGRIND_PRINTF_BACKTRACE("backtrace lambda\n");
        return left + argc < right + argc;
    });
    std::map<std::string, std::unique_ptr<shapes::Shape>> byName;
    byName["int"] = std::make_unique<shapes::Square<int>>(argc);
    byName["double"] = std::make_unique<shapes::Square<double>>(argc);
    double total = shapes::sum(*byName["int"], *byName["double"], shapes::Square<long>(3));
    int counter = 0;
    int result = apply([&](int value) {
        VALGRIND_PRINTF_BACKTRACE("backtrace function\n");
        return value + ++counter;
    }, numbers[0]);
    if (argc > 1)
        print_mappings();
    return total + result > 1e9;
}
