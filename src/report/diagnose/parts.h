// Between diagnose.c, which reads the events of a recording, and rules.c, which judges what was
// seen.
//
// An examination is filled in one reading, and is constant when the rules see it.
#ifndef QUERN_REPORT_DIAGNOSE_PARTS_H
#define QUERN_REPORT_DIAGNOSE_PARTS_H

#include "base/map.h"
#include "report/diagnose/growth.h"

enum {
    MOMENTS = 64,
    CAPACITY_STEPS = 3, // a buffer is one that was enlarged so often
};
#define CAPACITY_BYTES (256ull << 10) // a smaller buffer is not worth a word

struct site {
    uint64_t last;                       // when it last allocated
    uint64_t enlarged;                   // when a large buffer was enlarged last
    uint64_t kept_bytes, kept_blocks;    // in enlarged buffers, at the end
    uint64_t old_blocks;                 // at the end, from before the peak
    uint64_t idle_bytes, idle_blocks;    // at the end, of threads that do nothing any more
    uint64_t idle_threads, gone_threads; // these threads, and those of them that have ended
    uint64_t gone_first, began_last;     // when the first of them ended, and the last one began
};

// Times are 0 where it has not happened, or is not known.
struct thread_use {
    uint64_t first, last; // when it did something with the heap
    uint64_t ran;         // when it was last seen to have run
    uint64_t ended;
};

struct examination {
    const struct heap_file *file;
    uint64_t end, peak_time;
    struct site *sites;
    size_t site_count;
    struct thread_use *threads;
    size_t thread_count;
    struct growth *growth;
    struct heap_sink growth_sink;
    uint64_t totals[MOMENTS];  // live bytes, at equal distances of time
    size_t moment;             // the next one
    uint64_t late_allocations; // in the second half of the run
    struct map_integers idle;  // pairs of a site and an idle thread
    uint64_t live_bytes;
    uint64_t resident; // at the last sample: private memory, where that is known
};

// diagnose/rules.c
void diagnose_sites(const struct examination *, struct diagnoses *);
void diagnose_whole(const struct examination *, struct diagnoses *);

#endif
