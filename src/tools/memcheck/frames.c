// The stack pointer has moved: what lies below it is released.
#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/shadow.h"

enum { RED_ZONE = 128 };

uint64_t memcheck_max_frame = 2000000;

void memcheck_stack_moved(uint64_t from, uint64_t to) {
    if (to <= from || to - from > memcheck_max_frame)
        return;
    // The red zone below goes with it, as far as it is not the new one.
    uint64_t below = from - RED_ZONE, end = to - RED_ZONE < from ? to - RED_ZONE : from;
    if (below < end)
        shadow_make_undefined(below, end - below);
    shadow_make_undefined(from, to - from);
}
