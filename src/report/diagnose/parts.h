// Between diagnose.c, which looks, and diagnose/rules.c, which judges.
#ifndef QUERN_REPORT_DIAGNOSE_PARTS_H
#define QUERN_REPORT_DIAGNOSE_PARTS_H

#include "report/diagnose/diagnose.h"

enum {
    MOMENTS = 64,
    LAST = MOMENTS - 3, // that counts: at its end a program may free all it has
    CAPACITY_STEPS = 3, // a buffer is one that was enlarged so often
};
#define CAPACITY_BYTES (256ull << 10) // a smaller buffer is not worth a word

// What moments are counted by. Time alone is not enough: on a busy machine a program advances by
// fits and starts, and one that frees everything in the end may take a while for that. Nor are
// allocations alone: a program may make most of them when it starts.
enum axis { BY_TIME, BY_ALLOCATIONS, AXES };

struct moments {
    size_t next;
    uint64_t totals[MOMENTS]; // live bytes
    uint64_t events[MOMENTS]; // so far
    uint64_t frees[MOMENTS];  // of these
    uint64_t times[MOMENTS];
};

struct site {
    uint64_t live_bytes;              // while looking; then at the end
    uint64_t *series[AXES];           // live bytes at each moment; NULL: too little for that
    uint64_t enlarged;                // when a large buffer was enlarged last
    uint64_t kept_bytes, kept_blocks; // in enlarged buffers, at the end
    uint64_t old_blocks;              // at the end, from before the peak
    uint64_t idle_bytes, idle_blocks; // at the end, of threads that do nothing any more
    char *holder;                     // of most blocks at the end, in words; NULL: not known
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
    struct moments moments[AXES];
    uint64_t live_bytes, events, allocations, frees;
    uint64_t last_event; // when that was
    uint64_t resident;   // at the last sample
};

// diagnose/rules.c
void diagnose_sites(const struct examination *, struct diagnoses *);
void diagnose_growth(const struct examination *, struct diagnoses *);
double diagnose_rise(const struct examination *); // of everything, in bytes a second
void diagnose_whole(const struct examination *, struct diagnoses *);

#endif
