// The same in C++.
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

static volatile long sink;

struct point {
    long x, y;
    virtual ~point() {}
};

struct alignas(64) padded {
    char bytes[64];
};

static void objects() {
    for (int i = 0; i < 20; i++) {
        point *p = new point;
        p->x = i;
        sink += p->x;
        delete p;
    }
}

static void arrays() {
    for (int i = 1; i < 10; i++) {
        point *points = new point[i];
        points[i - 1].y = i;
        delete[] points;
        delete[] new int[i];
    }
}

static void over_aligned() {
    padded *one = new padded, *more = new padded[3];
    one->bytes[3] = more[2].bytes[63] = 1;
    delete one;
    delete[] more;
}

static void without_throwing() {
    int *number = new (std::nothrow) int(3);
    sink += *number;
    delete number;
    char *volatile large = new (std::nothrow) char[1ul << 62];
    sink += large == nullptr;
}

static void vectors() {
    std::vector<int> numbers;
    for (int i = 0; i < 1000; i++)
        numbers.push_back(i);
    for (int number : numbers)
        sink += number;
}

static void strings() {
    std::string text;
    for (int i = 0; i < 200; i++)
        text += "word ";
    sink += text.find("words");
    std::string copy = text.substr(5, 300);
    sink += copy == text;
}

static void maps() {
    std::map<int, std::string> words;
    for (int i = 0; i < 50; i++)
        words[i * 7 % 50] = std::string(i, 'x');
    for (int i = 0; i < 50; i += 2)
        words.erase(i);
}

static void hashes() {
    std::unordered_map<int, long> numbers;
    for (int i = 0; i < 100; i++)
        numbers[i] = i;
    sink += numbers[50];
}

static void shared() {
    auto first = std::make_shared<point>();
    std::vector<std::shared_ptr<point>> all(10, first);
    std::unique_ptr<point> only(new point);
    std::function<long()> sum = [first, &only] { return first->x + only->y; };
    first->x = only->y = 1;
    sink += sum();
}

static void thrown() {
    for (int i = 0; i < 3; i++) {
        try {
            throw std::runtime_error("a message that is long enough to be on the heap");
        } catch (const std::exception &e) {
            sink += std::strlen(e.what());
        }
    }
}

static const struct {
    const char *name;
    void (*run)();
} cases[] = {
#define CASE(name) {#name, name}
    CASE(objects), CASE(arrays), CASE(over_aligned), CASE(without_throwing), CASE(vectors),
    CASE(strings), CASE(maps),   CASE(hashes),       CASE(shared),           CASE(thrown),
};

int main(int count, char **words) {
    for (const auto &it : cases) {
        if (count == 1)
            std::puts(it.name);
        else if (std::strcmp(it.name, words[1]) == 0)
            it.run();
    }
}
