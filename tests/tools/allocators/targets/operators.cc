// Errors with operator new and delete.
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

struct alignas(128) wide {
    char bytes[256];
};

static void *volatile kept;

__attribute__((noinline)) static void lose() {
    kept = new int[33];
    kept = new (std::nothrow) char[70];
    kept = new wide;
    if ((unsigned long)kept % 128)
        abort();
    kept = nullptr;
}

__attribute__((noinline)) static void use_after_delete() {
    int *volatile numbers = new int[4]{1, 2, 3, 4};
    delete[] numbers;
    if (numbers[1] == 77)
        puts("?");
}

__attribute__((noinline)) static void mix() {
    int *volatile number = new int(5);
    free(number);
    char *volatile text = new char[20];
    delete text;
}

int main() {
    std::vector<std::string> words;
    for (int i = 0; i < 1000; i++)
        words.push_back(std::string((size_t)i, 'x'));
    lose();
    use_after_delete();
    mix();
    try {
        kept = ::operator new(~0ul >> 2);
        puts("not thrown");
    } catch (const std::bad_alloc &) {
        puts("thrown");
    }
    return 0;
}
