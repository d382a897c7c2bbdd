// The stack pointer has moved: what lies below it is released.
#include "tools/memcheck/memcheck.h"
#include "tools/memcheck/shadow.h"

uint64_t memcheck_max_frame = 2000000;

void memcheck_stack_moved(uint64_t from, uint64_t to) {
    if (to > from && to - from <= memcheck_max_frame)
        shadow_make_undefined(from, to - from);
}
