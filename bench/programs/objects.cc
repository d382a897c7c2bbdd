// Maps of strings to vectors and calls through virtual functions: short blocks, indirect calls,
// allocation.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

struct Node {
    virtual ~Node() = default;
    virtual uint64_t value(uint64_t x) const = 0;
};
struct Leaf : Node {
    uint64_t constant;
    explicit Leaf(uint64_t c) : constant(c) {}
    uint64_t value(uint64_t x) const override { return x ^ constant; }
};
struct Sum : Node {
    std::unique_ptr<Node> left, right;
    uint64_t value(uint64_t x) const override { return left->value(x) + right->value(x * 3); }
};
struct Choice : Sum {
    uint64_t value(uint64_t x) const override
    {
        return x & 4 ? left->value(x >> 1) : right->value(x + 7);
    }
};

static std::unique_ptr<Node> grow(int depth, uint64_t seed)
{
    if (depth == 0)
        return std::make_unique<Leaf>(seed * 2654435761u);
    std::unique_ptr<Sum> node;
    if (seed & 1)
        node = std::make_unique<Sum>();
    else
        node = std::make_unique<Choice>();
    node->left = grow(depth - 1, seed * 5 + 1);
    node->right = grow(depth - 1, seed * 7 + 2);
    return node;
}

int main(int argc, char **argv)
{
    long rounds = std::atol(argv[1]);
    auto tree = grow(8, 1);
    uint64_t h = 0;
    for (long i = 0; i < rounds; i++)
        h += tree->value(static_cast<uint64_t>(i) ^ (h >> 7));
    std::map<std::string, std::vector<long>> index;
    for (long i = 0; i < rounds * 3; i++)
        index["key " + std::to_string((i * 7919) % 20011)].push_back(i);
    for (const auto &entry : index)
        h = h * 31 + entry.second.size() + entry.first.size();
    std::printf("%016llx\n", static_cast<unsigned long long>(h));
    return 0;
}
