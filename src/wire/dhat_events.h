// Applies the events in the logs of threads to the sums and peaks of points. The target does this
// under a lock whenever a log is full. The supervisor does it for the rest after a process was
// killed.
//
// Events of one log are applied in the order of the log, those of several logs by their stamps. The
// value of a point at the global peak is stored when the point changes next; until then the point
// still has that value. Peaks are numbered for this.
//
// The code trusts nothing in a log except that the memory exists. General registers only.
#ifndef QUERN_WIRE_DHAT_EVENTS_H
#define QUERN_WIRE_DHAT_EVENTS_H

#include <stdbool.h>

#include "wire/dhat_counts.h"

static inline void dhat_settle(const struct dhat_header *h, struct dhat_point_counts *point) {
    if (__builtin_expect(point->peak == h->peak, 1))
        return;
    point->peak_bytes = point->bytes;
    point->peak_blocks = point->blocks;
    point->peak = h->peak;
}

// Called before the sum becomes smaller, and at the end.
static inline void dhat_look_for_peak(struct dhat_header *h) {
    if (h->bytes == h->max_bytes)
        h->peak++;
}

// The last of several equal peaks counts for the whole heap, and the first for a point.
static inline void dhat_look_for_maximum(struct dhat_header *h, struct dhat_point_counts *point) {
    if (point->bytes > point->max_bytes) {
        point->max_bytes = point->bytes;
        point->max_blocks = point->blocks;
    }
    if (h->bytes < h->max_bytes)
        return;
    h->max_bytes = h->bytes;
    h->max_blocks = h->blocks;
    h->peak_time = h->time;
}

static inline void dhat_add(struct dhat_point_counts *point, uint64_t size) {
    point->total_bytes += size;
    point->total_blocks++;
}

static inline void dhat_apply_made(struct dhat_header *h, struct dhat_point_counts *point,
                                   const struct dhat_event *event) {
    dhat_settle(h, point);
    dhat_add(point, event->size);
    h->blocks++;
    h->bytes += event->size;
    point->blocks++;
    point->bytes += event->size;
    point->lifetimes -= h->time;
    dhat_look_for_maximum(h, point);
}

static inline void dhat_apply_resized(struct dhat_header *h, struct dhat_point_counts *point,
                                      const struct dhat_event *event) {
    uint64_t before = event->reads;
    if (event->size < before)
        dhat_look_for_peak(h);
    dhat_settle(h, point);
    dhat_add(point, event->size);
    h->bytes += event->size - before;
    point->bytes += event->size - before;
    dhat_look_for_maximum(h, point);
}

static inline void dhat_apply_gone(struct dhat_header *h, struct dhat_point_counts *point,
                                   const struct dhat_event *event) {
    dhat_look_for_peak(h);
    dhat_settle(h, point);
    h->blocks--;
    h->bytes -= event->size;
    point->blocks--;
    point->bytes -= event->size;
    point->lifetimes += h->time;
    point->reads += event->reads;
    point->writes += event->writes;
}

static inline void dhat_apply(struct dhat_header *h, struct dhat_point_counts *points,
                              const struct dhat_event *event) {
    uint32_t number = __atomic_load_n(&event->point, __ATOMIC_RELAXED);
    h->time += event->ticks;
    if (number >= h->points)
        return;
    struct dhat_point_counts *point = &points[number];
    if (event->kind == DHAT_MADE)
        dhat_apply_made(h, point, event);
    else if (event->kind == DHAT_GONE)
        dhat_apply_gone(h, point, event);
    else if (event->kind == DHAT_RESIZED)
        dhat_apply_resized(h, point, event);
    else
        dhat_add(point, event->size);
}

// ---- several logs ------------------------------------------------------------------------------

// A log with pending events: an element of a heap by stamp, the smallest first.
struct dhat_pending {
    uint64_t stamp; // of the next one
    uint64_t next, end;
    uint32_t log;
};

static inline const struct dhat_event *dhat_event_at(const struct dhat_log *log, uint64_t number) {
    return &log->events[number % DHAT_LOG_EVENTS];
}

static inline void dhat_sift_down(struct dhat_pending *heap, uint32_t count, uint32_t at) {
    struct dhat_pending it = heap[at];
    for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && heap[child + 1].stamp < heap[child].stamp)
            child++;
        if (it.stamp <= heap[child].stamp)
            break;
        heap[at] = heap[child];
    }
    heap[at] = it;
}

// Finds the logs that have events with stamps below `until`.
static inline uint32_t dhat_find_pending(const struct dhat_log *logs, uint32_t count,
                                         struct dhat_pending *heap, uint64_t until) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t next = logs[i].applied, end = __atomic_load_n(&logs[i].written, __ATOMIC_ACQUIRE);
        if (next == end || end - next > DHAT_LOG_EVENTS)
            continue;
        uint64_t stamp = dhat_event_at(&logs[i], next)->stamp;
        if (stamp < until)
            heap[found++] = (struct dhat_pending){stamp, next, end, i};
    }
    for (uint32_t i = found / 2; i-- > 0;)
        dhat_sift_down(heap, found, i);
    return found;
}

// Applies the events with stamps below `until`. `heap` has room for all logs. If `done` is not
// NULL, it is called for each log with the number of its applied events.
static inline void dhat_merge(struct dhat_header *h, struct dhat_point_counts *points,
                              const struct dhat_log *logs, uint32_t log_count,
                              struct dhat_pending *heap, uint64_t until,
                              void (*done)(uint32_t log, uint64_t applied)) {
    uint32_t count = dhat_find_pending(logs, log_count, heap, until);
    while (count > 0) {
        struct dhat_pending it = heap[0];
        const struct dhat_log *log = &logs[it.log];
        uint64_t other = until - 1;
        for (uint32_t i = 1; i < 3 && i < count; i++)
            other = heap[i].stamp < other ? heap[i].stamp : other;
        do {
            dhat_apply(h, points, dhat_event_at(log, it.next++));
            if (it.next == it.end)
                break;
            it.stamp = dhat_event_at(log, it.next)->stamp;
        } while (it.stamp <= other);
        heap[0] = it;
        if (it.next == it.end || it.stamp >= until) {
            if (done)
                done(it.log, it.next);
            heap[0] = heap[--count];
        }
        if (count > 1)
            dhat_sift_down(heap, count, 0);
    }
}

#endif
