#include "engine/cache/breakpoints.h"

unsigned breakpoint_count;
static uint64_t breakpoints[BREAKPOINTS];

static unsigned place_of(uint64_t pc) {
    unsigned i = 0;
    while (i < breakpoint_count && breakpoints[i] != pc)
        i++;
    return i;
}

bool breakpoint_find(uint64_t pc) {
    return place_of(pc) < breakpoint_count;
}

bool breakpoint_add(uint64_t pc) {
    if (breakpoint_find(pc))
        return true;
    if (breakpoint_count == BREAKPOINTS)
        return false;
    breakpoints[breakpoint_count++] = pc;
    return true;
}

bool breakpoint_remove(uint64_t pc) {
    unsigned i = place_of(pc);
    if (i == breakpoint_count)
        return false;
    breakpoints[i] = breakpoints[--breakpoint_count];
    return true;
}

uint64_t breakpoint_get(unsigned index) {
    return breakpoints[index];
}
