// Recursion of a given depth, without frame pointers.
#include <stdlib.h>

#include "work.h"

__attribute__((noinline)) static unsigned long descend(int depth) {
    if (depth == 0) {
        turn(300000000);
        return sink;
    }
    return descend(depth - 1) + (unsigned long)depth;
}

int main(int count, char **words) {
    return descend(count > 1 ? atoi(words[1]) : 200) == 0;
}
