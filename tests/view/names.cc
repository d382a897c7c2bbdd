// What pictures are taken of, too: names that do not fit, deep and broad trees, some megabytes.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace warehouse::inventory {

template <typename Key, typename Value> struct index_of_everything {
    std::map<Key, std::vector<Value>> shelves;
    __attribute__((noinline)) void put(const Key &key, Value value) {
        shelves[key].push_back(std::move(value));
    }
};

struct node {
    std::vector<std::shared_ptr<node>> children;
    std::string label;
};

__attribute__((noinline)) std::shared_ptr<node> build_a_tree_of_labels(int depth, int &count) {
    auto made = std::make_shared<node>();
    made->label = "a label that is too long to be kept in place, number " + std::to_string(count++);
    for (int i = 0; depth && i < 3; i++)
        made->children.push_back(build_a_tree_of_labels(depth - 1, count));
    return made;
}

using row = std::pair<std::string, std::function<int(int)>>;

__attribute__((noinline)) size_t sort_and_forget(index_of_everything<std::string, row> &index) {
    size_t sum = 0;
    for (auto &[key, rows] : index.shelves) {
        auto copy = rows;
        std::sort(copy.begin(), copy.end(),
                  [](const row &a, const row &b) { return a.first < b.first; });
        sum += copy.size() + key.size();
    }
    return sum;
}

} // namespace warehouse::inventory

int main(int argc, char **argv) {
    using namespace warehouse::inventory;
    int count = 0;
    auto tree = build_a_tree_of_labels(6, count);
    auto index = std::make_unique<index_of_everything<std::string, row>>();
    for (int i = 0; i < 6000; i++)
        index->put(
            "shelf number " + std::to_string(i % 97) + " in a hall",
            {std::string((size_t)(i % 200), 'x'), [i, count](int add) { return i + count + add; }});
    size_t sum = 0;
    for (int i = 0; i < (argc > 1 ? atoi(argv[1]) : 3); i++)
        sum += sort_and_forget(*index);
    if (sum)
        (void)index.release(); // lost
    return 0;
}
