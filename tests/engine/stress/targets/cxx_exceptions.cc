// C++ exceptions across many frames, through destructors, rethrown, nested, in many threads.
#include "stress.h"
#include <exception>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static thread_local long destroyed;

struct Guard {
    int level;
    explicit Guard(int l) : level(l) {}
    ~Guard() { destroyed += level; }
};

struct Odd : std::runtime_error {
    int value;
    explicit Odd(int v) : std::runtime_error("odd " + std::to_string(v)), value(v) {}
};

static NOINLINE int descend(int depth, int kind) {
    Guard guard(depth);
    if (depth == 0) {
        switch (kind % 4) {
        case 0:
            throw kind;
        case 1:
            throw Odd(kind);
        case 2:
            return std::stoi("not a number");
        default:
            std::vector<int> v;
            return v.at(5);
        }
    }
    try {
        return descend(depth - 1, kind) + 1;
    } catch (const Odd &o) {
        if (depth % 7 == 0)
            throw;
        throw Odd(o.value + 1);
    }
}

static uint64_t work(int rounds) {
    uint64_t h = 0;
    for (int i = 0; i < rounds; i++) {
        try {
            descend(5 + i % 20, i);
        } catch (int v) {
            h = stress_mix(h, (uint64_t)v);
        } catch (const Odd &o) {
            h = stress_mix(h, (uint64_t)o.value + strlen(o.what()));
        } catch (const std::exception &e) {
            h = stress_mix(h, strlen(e.what()));
        }
    }
    return stress_mix(h, (uint64_t)destroyed);
}

int main() {
    printf("%016llx\n", (unsigned long long)work(500));
    std::vector<std::thread> threads;
    std::vector<uint64_t> results(8);
    for (unsigned i = 0; i < 8; i++)
        threads.emplace_back([&results, i] { results[i] = work(150); });
    for (auto &t : threads)
        t.join();
    for (uint64_t r : results)
        printf("%016llx\n", (unsigned long long)r);
    std::exception_ptr kept;
    std::thread([&kept] {
        try {
            descend(3, 1);
        } catch (...) {
            kept = std::current_exception();
        }
    }).join();
    try {
        std::rethrow_exception(kept);
    } catch (const std::exception &e) {
        puts(e.what());
    }
    fflush(stdout);
    std::set_terminate([] { _exit(11); });
    throw Odd(1);
}
