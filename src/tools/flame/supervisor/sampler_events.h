// What the sampler by perf consists of: its events, which sampler_events.c opens, closes and hands
// over, and the records in their rings, which sampler_perf.c reads. Nobody else includes it.
#ifndef QUERN_SUPERVISOR_SAMPLER_EVENTS_H
#define QUERN_SUPERVISOR_SAMPLER_EVENTS_H

#include <linux/perf_event.h>

#include "tools/flame/supervisor/sampler_parts.h"

#define SAMPLER_RECORD_MAX 65536

struct ring {
    int fd; // EVENT_WIDE_NEWS if that is permitted, else EVENT_NEWS: to it the ring belongs
    uint64_t id, switches_id; // of events, in their records
    int cpu;
    int news;                  // -1: it is the one above, or has been handed over
    int clock, wide, switches; // -1: none
    struct perf_event_mmap_page *page;
    uint64_t head; // as read at the start of a round
    uint64_t tail;
};

struct sampler_perf {
    struct sampler_sink sink;
    pid_t pid; // the main process
    struct ring *rings;
    size_t ring_count;
    size_t ring_bytes;
    size_t stack_bytes;
    unsigned frequency;
    bool off_cpu;
    bool is_off;          // CPU time is not sampled now
    bool is_wide;         // the rings belong to events of CPUs
    uint64_t handed_over; // when these took over; 0: they have not
    int counter;          // EVENT_COUNT; -1: nobody watches
    uint64_t watched, at; // its value, and when it was read
    uint64_t watch_ns;    // until it is read again
    int64_t waits;        // of threads at that time; -1: not looked up
    struct sampler_counts counts;
    _Alignas(8) uint8_t record[SAMPLER_RECORD_MAX];
};

// Looks whether threads come and go so often that the events of CPUs must take over.
void sampler_events_watch(struct sampler_perf *, uint64_t now);
// Nothing of use is sampled any more.
void sampler_events_stop(const struct sampler_perf *);

#endif
