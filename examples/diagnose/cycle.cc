// Parents and children own each other, so nobody ever goes. Fixed: children only know their
// parents.
#include <memory>
#include <vector>

extern "C" {
#include "common.h"
}

struct Node {
    std::vector<std::shared_ptr<Node>> children;
    std::shared_ptr<Node> owner;
    std::weak_ptr<Node> parent;
};

static void build() {
    auto parent = std::make_shared<Node>();
    auto child = std::make_shared<Node>();
    parent->children.push_back(child);
    if (IS_FIXED)
        child->parent = parent;
    else
        child->owner = parent;
}

int main() {
    for (int i = 0; i < 10; i++)
        build();
    return 0;
}
