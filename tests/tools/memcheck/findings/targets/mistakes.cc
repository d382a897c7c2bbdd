#include <cstdlib>
#include <string>
#include <vector>

namespace shop {
template <class T> struct Box {
    T *items = new T[10];
    int peek(int i) { return items[i] ? 1 : 2; }
};
} // namespace shop

static int *lose(int count) {
    return new int[count];
}

int main() {
    shop::Box<int> box;
    int result = box.peek(3);
    box.items[10] = result;
    lose(5);
    std::string *text = new std::string("a text that is too long to be kept in the object itself");
    free(text);
    std::vector<int> numbers;
    numbers.reserve(4);
    return numbers.data()[2] == 5;
}
