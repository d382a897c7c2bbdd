// Errors and leaks in functions whose linkage names differ from what is shown: templates, members,
// operators and functions without linkage.
#include <cstdlib>
#include <string>
#include <vector>

volatile int sink;
char *volatile held;

namespace deep::er {
template <class T> struct box {
    T *items;
    __attribute__((noinline)) explicit box(int n) : items(new T[n]) {}
    __attribute__((noinline)) T over(int n) const { return items[n]; }
    __attribute__((noinline)) T operator+(int n) const { return items[n] + 1; }
};
} // namespace deep::er

namespace {
__attribute__((noinline)) void hidden(int n) {
    deep::er::box<long> leaked(n);
    sink = leaked.over(n) > 0;
    sink = leaked + n > 0;
}
} // namespace

int main() {
    hidden(10);
    auto *lost = new std::vector<std::string>(3);
    lost->push_back("a string that does not fit into the string itself");
    lost = nullptr;
    auto call = [](int n) __attribute__((noinline)) {
        held = new char[n];
        free(held);
    };
    call(20);
    return sink & 0 & (lost != nullptr);
}
