// A C++ name with everything in it.
#include <string>

#include "work.h"

namespace space {
template <typename T> struct Holder {
    __attribute__((noinline)) void grind(const std::string &text, T value) {
        turn(300000000);
        sink = sink + text.size() + value;
    }
};
} // namespace space

int main() {
    space::Holder<unsigned> holder;
    holder.grind("text", 3);
    return 0;
}
