// The marks of a program in a recording (include/quern/heap.h): points on the timeline, each with
// the size of the heap at that moment, and scopes, each with the sums of the program's heap events.
//
// Words:
//   point   a marker, or a requested snapshot
//   scope   a named part of a thread's work. The scopes of a thread are nested, and all that the
//           thread does counts for every open scope. A scope that is open at the end ends there
//
// Invariant: points are in order of time. Beyond MARKS_POINTS of them, and MARKS_SCOPES names, the
// others are counted only. Supervisor context.
#ifndef QUERN_PROFILE_MARKS_H
#define QUERN_PROFILE_MARKS_H

#include "profile/heap/heap.h"

#define MARKS_POINTS 65536
#define MARKS_SCOPES 4096
#define MARKS_DEPTH  64 // scopes of a thread that are open at once

struct marks_point {
    enum heap_mark_kind kind; // a point or a snapshot
    uint32_t thread;
    uint64_t time;
    uint64_t live_bytes, live_blocks, allocated; // blocks so far
    char *name;
};

struct marks_count {
    uint64_t allocated, allocated_bytes; // resizes count as allocations of what they add
    uint64_t freed_bytes;
};

struct marks_scope {
    char *name;
    uint64_t entered;
    uint64_t time; // nanoseconds in it
    uint64_t most; // maximum of allocations in one pass
    struct marks_count count;
};

struct marks {
    struct marks_point *points;
    size_t count;
    struct marks_scope *scopes; // in the order in which they were first entered
    size_t scope_count;
    uint64_t left_out; // points and scopes beyond the limits
    struct marks_thread {
        struct marks_count count; // since the first scope of the run began
        size_t depth;             // may be more than MARKS_DEPTH
        struct {
            size_t scope; // SIZE_MAX: none
            uint64_t time;
            struct marks_count count;
        } open[MARKS_DEPTH];
    } * *threads; // by number; NULL: has no scope yet
    size_t thread_count;
};

// The totals are the current ones.
void marks_add(struct marks *marks, const struct heap_mark *mark, uint64_t live_bytes,
               uint64_t live_blocks, uint64_t allocated);
void marks_event(struct marks *marks, const struct heap_event *event);
void marks_end(struct marks *marks, uint64_t time);
void marks_free(struct marks *marks);

#endif
