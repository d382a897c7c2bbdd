// Stacks as C++ makes them: landing pads, cleanups while an exception is on its way, catch blocks,
// virtual calls, lambdas inside the standard library, and split functions.

#include <algorithm>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "unit.h"
#include "unwind_compare.h"

namespace {

struct Cleanup {
    std::string text = "a string that is too long to be stored in place";
    ~Cleanup() { compare_here(); }
};

__attribute__((noinline)) void fail(int depth) {
    Cleanup cleanup;
    if (depth == 0)
        throw std::runtime_error(cleanup.text);
    fail(depth - 1);
    compare_here();
}

struct Base {
    virtual int visit(std::vector<int> &values) = 0;
    virtual ~Base() = default;
};

struct Sorter : Base {
    int visit(std::vector<int> &values) override {
        std::sort(values.begin(), values.end(), [](int a, int b) {
            compare_here();
            return a < b;
        });
        return values[0];
    }
};

long differences(long at_least) {
    struct compare_result result = compare_result();
    return result.walks >= at_least ? result.differences : -1;
}

} // namespace

TEST(cleanups_and_catch_blocks) {
    compare_setup();
    compare_result();
    try {
        fail(5);
    } catch (const std::exception &error) {
        compare_here();
    }
    CHECK_EQ(differences(7), 0);
}

TEST(exception_thrown_again) {
    try {
        try {
            fail(2);
        } catch (...) {
            compare_here();
            throw;
        }
    } catch (const std::runtime_error &) {
        compare_here();
    }
    CHECK_EQ(differences(5), 0);
}

TEST(virtual_calls_and_lambdas) {
    std::vector<int> values = {5, 3, 9, 1, 7};
    Sorter sorter;
    Base *volatile base = &sorter;
    CHECK_EQ(base->visit(values), 1);
    std::function<int(int)> recurse = [&](int depth) {
        if (depth == 0)
            compare_here();
        return depth ? recurse(depth - 1) + 1 : 0;
    };
    CHECK_EQ(recurse(50), 50);
    std::map<int, Cleanup> map;
    for (int i = 0; i < 20; i++)
        map[i];
    map.clear();
    CHECK_EQ(differences(25), 0);
}

TEST(threads_of_the_standard_library) {
    std::thread thread([] {
        try {
            fail(3);
        } catch (...) {
            compare_here();
        }
    });
    thread.join();
    CHECK_EQ(differences(5), 0);
}

UNIT_MAIN()
