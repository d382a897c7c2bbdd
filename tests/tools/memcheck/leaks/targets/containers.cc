// What containers of the library hold, and containers that are lost.
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "target.h"

struct Node {
    std::shared_ptr<Node> next;
    std::string name;
};
static std::map<int, std::string> *volatile kept;

static void __attribute__((noinline)) make() {
    kept = new std::map<int, std::string>;
    for (int i = 0; i < 20; i++)
        (*kept)[i] = std::string(i * 5, 'x');
    auto *lost = new std::vector<std::string>;
    for (int i = 0; i < 10; i++)
        lost->push_back(std::string(40, 'y'));
    new std::list<int>(5, 7);
    auto a = std::make_shared<Node>(), b = std::make_shared<Node>(); // hold each other
    a->next = b;
    b->next = a;
    a->name = std::string(50, 'z');
}
int main() {
    make();
    wipe();
    return 0;
}
