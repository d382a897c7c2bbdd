// Strings of the old kind: a pointer to the characters, behind a header.
#define _GLIBCXX_USE_CXX11_ABI 0
#include <string>

#include "target.h"

static std::string *volatile kept;

static void __attribute__((noinline)) make() {
    static void *place[sizeof(std::string) / sizeof(void *)];
    kept = new (place) std::string("a text that is long enough to be somewhere else");
    new std::string("nobody has this one, and what it holds");
}
int main() {
    make();
    wipe();
    return 0;
}
