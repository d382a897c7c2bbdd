// How large a heap was over time, in a bounded number of steps however long the run is.
//
// A first reading does not know when the run ends. So steps begin short, and whenever there are too
// many of them, each two become one. A step keeps the maximum of the bytes held in it, and the
// bytes held at its end. The length of steps depends only on the latest time. Supervisor context.
#ifndef QUERN_PROFILE_TIMELINE_H
#define QUERN_PROFILE_TIMELINE_H

#include "profile/heap/heap.h"

#define TIMELINE_STEPS 1024

struct timeline {
    uint64_t length; // of a step, nanoseconds
    size_t count;
    struct timeline_step {
        uint64_t most, last; // bytes of the heap
        uint64_t resident;   // bytes; 0: no sample
    } steps[TIMELINE_STEPS];
    uint64_t held;
    size_t now; // the current step, and where it begins and ends
    uint64_t now_from, now_to;
    uint64_t end;
};

void timeline_sink(struct timeline *timeline, struct heap_sink *sink);
// Adds all events of one time: the maximum of bytes held, and the bytes held last.
void timeline_note(struct timeline *timeline, uint64_t time, uint64_t most, uint64_t last);
void timeline_end(struct timeline *timeline, uint64_t time);

#endif
