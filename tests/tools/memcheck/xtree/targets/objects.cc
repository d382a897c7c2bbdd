// Objects, arrays of them, aligned ones, and what the library makes.
#include <memory>
#include <new>
#include <string>
#include <vector>

struct Part {
    explicit Part(int size) : bytes(new char[size]) {}
    ~Part() { delete[] bytes; }
    char *bytes;
};

struct alignas(64) Wide {
    char bytes[192];
};

static std::vector<std::string> *names(int count) {
    auto *all = new std::vector<std::string>;
    for (int i = 0; i < count; i++)
        all->push_back(std::string(20 + i, 'x'));
    return all;
}

int main() {
    Part *left = new Part(100);
    delete new Part(50);
    Wide *wide = new Wide;
    Wide *array = new Wide[3];
    delete wide;
    auto *all = names(9);
    delete names(5);
    all->clear();
    std::unique_ptr<int> number(new (std::nothrow) int(3));
    return left && array && all ? 0 : 1;
}
