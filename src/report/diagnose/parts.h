// Between diagnose.c, which reads the events of a recording, and rules.c, which judges what was
// seen.
//
// An examination is filled in one reading, and is constant when the rules see it.
#ifndef QUERN_REPORT_DIAGNOSE_PARTS_H
#define QUERN_REPORT_DIAGNOSE_PARTS_H

#include "report/diagnose/growth.h"

enum {
    MOMENTS = 64,
    CAPACITY_STEPS = 3, // a buffer is one that was enlarged so often
};
#define CAPACITY_BYTES (256ull << 10) // a smaller buffer is not worth a word

struct site {
    uint64_t last;                    // when it last allocated
    uint64_t enlarged;                // when a large buffer was enlarged last
    uint64_t kept_bytes, kept_blocks; // in enlarged buffers, at the end
    uint64_t old_blocks;              // at the end, from before the peak
    uint64_t idle_bytes, idle_blocks; // at the end, of threads that do nothing any more
};

struct thread_use {
    uint64_t last;  // when it last did something with the heap
    uint64_t bytes; // of its blocks, at the end
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
    uint64_t totals[MOMENTS]; // live bytes, at equal distances of time
    size_t moment;            // the next one
    uint64_t live_bytes;
    uint64_t resident; // at the last sample
};

// diagnose/rules.c
void diagnose_sites(const struct examination *, struct diagnoses *);
void diagnose_whole(const struct examination *, struct diagnoses *);

#endif
