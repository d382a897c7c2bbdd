// C++: containers, exceptions, smart pointers, virtual functions, arrays with cookies.
//
// case cxx_string_leak -DWAY=1
// case cxx_vector_over -DWAY=2
// case cxx_vector_over_O2 -DWAY=2 -O2
// case cxx_map_leak -DWAY=3
// case cxx_shared_cycle -DWAY=4
// case cxx_exception_leak -DWAY=5
// case cxx_exception_clean -DWAY=6 clean
// case cxx_uninitialised_member -DWAY=7
// case cxx_uninitialised_member_O2 -DWAY=7 -O2
// case cxx_virtual_after_delete -DWAY=8
// case cxx_iterator_invalid -DWAY=9
// case cxx_array_cookie -DWAY=10
// case cxx_array_cookie_heuristic_off -DWAY=10 --leak-check-heuristics=none
// case cxx_multiple_inheritance -DWAY=11
// case cxx_multiple_inheritance_off -DWAY=11 --leak-check-heuristics=none
// case cxx_old_string -DWAY=12
// case cxx_old_string_off -DWAY=12 --leak-check-heuristics=none
// case cxx_throw_uninitialised -DWAY=13
// case cxx_stream -DWAY=14 clean
// case cxx_containers -DWAY=15 clean
// case cxx_containers_O2 -DWAY=15 -O2 clean
// case cxx_containers_clang_O2 clang -DWAY=15 -O2 clean
// case cxx_string_view_dead -DWAY=16 -std=c++17
// case cxx_unique_released -DWAY=17
// case cxx_delete_base -DWAY=18
// case cxx_placement -DWAY=19
// case cxx_template_frames -DWAY=20
// case cxx_template_frames_mangled -DWAY=20 --demangle=no
// case cxx_lambda -DWAY=21
// case cxx_static_object -DWAY=22
// case cxx_thread -DWAY=24
// case cxx_sort_uninitialised -DWAY=25
// case cxx_exception_object_held -DWAY=26
// case cxx_rethrow_across_frames -DWAY=27 clean
// case cxx_string_over -DWAY=28
// case cxx_set_freed_node -DWAY=29
// case cxx_namespace -DWAY=30
// case cxx_namespace_clang clang -DWAY=30
// case cxx_inlined_O2 -DWAY=31 -O2
// case cxx_inlined_off -DWAY=31 -O2 --read-inline-info=no
// case cxx_inlined_xml -DWAY=31 -O2 xml
// case cxx_no_freeres -DWAY=33 --run-cxx-freeres=no unmarked
// case cxx_leak_xml -DWAY=3 xml
// case cxx_vector_bool -DWAY=34
// case cxx_function_leak -DWAY=35
// case roundtrip_cxx_map -DWAY=3 roundtrip
// case roundtrip_cxx_templates -DWAY=20 roundtrip
// case roundtrip_cxx_inlined -DWAY=31 -O2 roundtrip
// case roundtrip_cxx_exception -DWAY=5 roundtrip
#include <algorithm>
#include <functional>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>
#if WAY == 16
#include <string_view>
#endif

volatile int kept;
static void *global;

struct member {
    member() : set(1) {}
    int set, forgotten;
    bool decide() const { return forgotten > 3; } // bug
};

struct first {
    virtual ~first() {}
    virtual int one() { return 1; }
    long a = 1;
};
struct second {
    virtual ~second() {}
    virtual int two() { return 2; }
    long b = 2;
};
struct joined : first, second {
    int two() override { return 3; }
    long c = 3;
};
struct counted {
    ~counted() { kept++; }
    long value = 5;
};
struct knot {
    std::shared_ptr<knot> other;
    int value = 0;
};

template <class T> struct holder {
    T *values;
    explicit holder(int n) : values(new T[n]) {} // leak
    ~holder() { delete[] values; }
    __attribute__((noinline)) T get(int i) { return values[i]; } // bug
};

namespace outer {
namespace {
struct hidden {
    __attribute__((noinline)) static int read(const int *p) { return p[10]; } // bug
};
} // namespace
namespace inner {
__attribute__((noinline)) int call(const int *p) { return hidden::read(p); } // bug
} // namespace inner
} // namespace outer

static inline int third(const int *p) { return p[10]; } // bug
static inline int fourth(const int *p) { return third(p) + 1; } // bug

__attribute__((noinline)) static void thrower(bool tidy)
{
    char *lost = new char[40]; // leak
    std::unique_ptr<char[]> guard(tidy ? lost : nullptr);
    throw std::runtime_error("thrown");
}

__attribute__((noinline)) static void deep_thrower(int depth)
{
    std::string local(100, 'x');
    if (depth == 0)
        throw std::out_of_range(local);
    deep_thrower(depth - 1);
}

static void way()
{
#if WAY == 1
    auto *text = new std::string(100, 'x'); // leak
    kept = text->size();
#elif WAY == 2
    std::vector<int> numbers(10);
    for (int i = 0; i <= 10; i++)
        kept += numbers[i]; // bug
#elif WAY == 3
    auto *map = new std::map<int, std::string>; // leak
    for (int i = 0; i < 10; i++)
        (*map)[i] = std::string(20 + i, 'x'); // leak
#elif WAY == 4
    auto one = std::make_shared<knot>(); // leak
    one->other = std::make_shared<knot>(); // leak
    one->other->other = one;
#elif WAY == 5 || WAY == 6
    try {
        thrower(WAY == 6); // leak
    } catch (const std::exception &e) {
        kept = e.what()[0];
    }
#elif WAY == 7
    auto *object = new member;
    if (object->decide()) // bug
        kept = 1;
    delete object;
#elif WAY == 8
    first *object = new joined;
    delete object;
    kept = object->one(); // bug
#elif WAY == 9
    std::vector<int> numbers = {1, 2, 3};
    auto it = numbers.begin();
    numbers.push_back(4);
    kept = *it; // bug
#elif WAY == 10
    global = new counted[5]; // leak
#elif WAY == 11
    global = static_cast<second *>(new joined); // leak
#elif WAY == 12
    // The layout of reference-counted strings: length, capacity, count, then the text.
    long *text = (long *)::operator new(24 + 41); // leak
    text[0] = 30;
    text[1] = 40;
    text[2] = 0;
    global = text + 3;
#elif WAY == 13
    try {
        int *value = new int;
        throw *value;
    } catch (int value) {
        if (value) // bug
            kept = 1;
    }
#elif WAY == 14
    std::ostringstream out;
    out << 1 << " " << 2.5 << " text" << std::endl;
    kept = out.str().size();
    std::cout << out.str();
#elif WAY == 15
    std::map<std::string, std::vector<int>> map;
    std::unordered_map<int, std::string> hash;
    std::list<double> list;
    for (int i = 0; i < 200; i++) {
        map[std::to_string(i % 17)].push_back(i);
        hash[i] = std::string(i, 'y');
        list.push_front(i / 3.0);
    }
    list.sort();
    kept = map.size() + hash.size() + list.size();
#elif WAY == 16
    std::string_view view;
    {
        std::string text(100, 'x');
        view = text;
    }
    kept = view[50]; // bug
#elif WAY == 17
    std::unique_ptr<int[]> numbers(new int[7]); // leak
    kept = numbers.release() != nullptr;
#elif WAY == 18
    int *numbers = new int[4];
    delete numbers; // bug
#elif WAY == 19
    char *room = new char[sizeof(member)];
    member *object = new (room) member;
    if (object->decide()) // bug
        kept = 1;
    delete[] room;
#elif WAY == 20
    holder<std::pair<int, double>> h(3);
    kept = h.get(3).first; // bug
#elif WAY == 21
    int *numbers = new int[4];
    std::function<int(int)> f = [numbers](int i) { return numbers[i]; }; // bug
    kept = f(4); // bug
    delete[] numbers;
#elif WAY == 22
    static std::vector<std::string> texts;
    texts.emplace_back(50, 'z');
    auto *lost = new std::vector<std::string>(texts); // leak
#elif WAY == 24
    std::thread thread([] {
        int *numbers = new int[3]; // leak
        kept = numbers[3]; // bug
    });
    thread.join();
#elif WAY == 25
    int *numbers = new int[5];
    std::sort(numbers, numbers + 5); // bug
    delete[] numbers;
#elif WAY == 26
    std::exception_ptr *held = new std::exception_ptr; // leak
    try {
        throw std::runtime_error("a text that is long enough to be on the heap"); // leak
    } catch (...) {
        *held = std::current_exception();
    }
#elif WAY == 27
    for (int i = 0; i < 5; i++)
        try {
            try {
                deep_thrower(i * 3);
            } catch (const std::logic_error &) {
                throw;
            }
        } catch (const std::out_of_range &e) {
            kept += e.what()[0];
        }
#elif WAY == 28
    std::string text(20, 'x');
    kept = text.data()[21]; // bug
    kept = text.data()[30]; // bug
    text.shrink_to_fit();
    kept = text.data()[40]; // bug
#elif WAY == 29
    std::set<int> set = {1, 2, 3};
    const int *value = &*set.find(2);
    set.erase(2);
    kept = *value; // bug
#elif WAY == 30
    int *numbers = new int[10];
    kept = outer::inner::call(numbers); // bug
    delete[] numbers;
#elif WAY == 31
    int *numbers = new int[10];
    global = numbers;
    kept = fourth(numbers); // bug
    delete[] numbers;
#elif WAY == 33
    std::cout << "text\n";
#elif WAY == 34
    std::vector<bool> flags(100);
    bool *fresh = new bool[1];
    flags[50] = fresh[0]; // bug
    delete[] fresh;
#elif WAY == 35
    auto big = std::make_shared<std::vector<int>>(100); // leak
    new std::function<void()>([big] { kept = (*big)[0]; }); // leak
#endif
}

int main()
{
    way(); // bug
    return 0;
}
