// What the target half of exp-bbv hands over to the supervisor half: two kinds of memory files,
// which begin with different magic numbers.
//
//   totals    one per process. The target half counts in it, so the supervisor has the numbers
//             whatever ends the process.
//   records   blocks and intervals in the order in which they came. A file that is full is followed
//             by the next one; the supervisor reads a file when it gets the next, or at the end.
//
// A record is a number of words. The first one is its kind:
//   BBV_BLOCK      number, address                           a block has got its number
//   BBV_COUNTS     pairs, then so many times number, count   a part of an interval
//   BBV_INTERVAL   thread                                    the interval of this thread is
//   complete
// Nothing stands between the parts of an interval. `used` grows when a record is complete.
#ifndef QUERN_TOOLS_BBV_BBV_H
#define QUERN_TOOLS_BBV_BBV_H

#include <stdint.h>

#define BBV_TOTALS_MAGIC  0x736c61746f54424full
#define BBV_RECORDS_MAGIC 0x7364726f63655242ull

enum {
    BBV_THREADS = 4096,        // numbers of threads, from 1 on
    BBV_RECORD_WORDS = 131070, // of a file: it has 1 MiB
};

enum bbv_kind { BBV_BLOCK = 1, BBV_COUNTS = 2, BBV_INTERVAL = 3 };

struct bbv_totals {
    uint64_t instructions;
    uint64_t reps;        // steps of repeated string instructions, as Valgrind makes them
    uint64_t unique_reps; // repeated string instructions
    uint64_t fldcws;
};

struct bbv_totals_file {
    uint64_t magic;
    uint64_t is_incomplete; // there were more blocks or threads than there is room for
    struct bbv_totals threads[BBV_THREADS]; // by number
};

struct bbv_records_file {
    uint64_t magic;
    uint64_t used; // words
    uint64_t words[BBV_RECORD_WORDS];
};

#endif
