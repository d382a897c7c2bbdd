// C++ containers, and all forms of operator new and delete.
#include <map>
#include <new>
#include <string>
#include <vector>

struct alignas(64) Wide {
    char bytes[192];
    ~Wide() { bytes[0] = 1; }
};

int main() {
    std::map<std::string, std::vector<int>> map;
    for (int i = 0; i < 2000; i++)
        map["a key that is longer than fits " + std::to_string(i)].assign(32, i);
    Wide *one = new Wide;
    Wide *many = new Wide[4];
    Wide *quiet = new (std::nothrow) Wide;
    Wide *quiet_many = new (std::nothrow) Wide[3];
    int *plain = new int(3);
    int *numbers = new int[100];
    int *silent = new (std::nothrow) int;
    std::string *strings = new std::string[10];
    delete one;
    delete[] many;
    delete quiet;
    delete[] quiet_many;
    delete plain;
    delete[] numbers;
    operator delete(silent, std::nothrow);
    delete[] strings;
    try {
        volatile size_t size = 1ul << 62;
        char *volatile none = new char[size];
        return none ? 1 : 2;
    } catch (std::bad_alloc &) {
        return 0;
    }
}
