// A string is built anew for each comparison in a loop. Fixed: one is reused.
#include <string>

extern "C" {
#include "common.h"
}

static volatile unsigned found;

static void search(int number) {
    std::string name = "a key that is too long for the string itself " + std::to_string(number);
    found = found + (name.find("77") != std::string::npos);
}

int main() {
    std::string reused;
    for (int i = 0; i < 200000; i++) {
        if (!IS_FIXED) {
            search(i);
            continue;
        }
        reused.assign("a key that is too long for the string itself ");
        char digits[16];
        int size = 0;
        for (int rest = i; rest || !size; rest /= 10)
            digits[size++] = static_cast<char>('0' + rest % 10);
        while (size)
            reused.push_back(digits[--size]);
        found = found + (reused.find("77") != std::string::npos);
    }
    return 0;
}
