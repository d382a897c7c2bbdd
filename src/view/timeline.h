// How large a heap was over time, in a bounded number of steps however long the run is.
//
// A first reading does not know when the run ends: steps begin short, and whenever there are too
// many of them, each two become one. A step keeps the most that was held in it, and what was held
// at its end. Supervisor context.
#ifndef QUERN_VIEW_TIMELINE_H
#define QUERN_VIEW_TIMELINE_H

#include "profile/heap.h"

#define VIEW_TIMELINE_STEPS 1024

struct view_timeline {
    uint64_t length; // of a step, nanoseconds
    size_t count;
    struct view_timeline_step {
        uint64_t most, last; // bytes of the heap
        uint64_t resident;   // bytes; 0: no sample
    } steps[VIEW_TIMELINE_STEPS];
    uint64_t held;
    size_t now; // the step in hand, and where it begins and ends
    uint64_t now_from, now_to;
    uint64_t end;
};

void view_timeline_sink(struct view_timeline *timeline, struct heap_sink *sink);

#endif
