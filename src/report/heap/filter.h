// A part of a recording: what is left when only some moments, blocks or places count.
//
// A filter stands between the reader and the sinks. It drops events of blocks that do not pass, and
// sends HEAP_SKIPPED instead, so that sinks know which events follow each other directly.
//   window    blocks allocated from `from` on and before `to`. Events at `to` or later are ignored,
//             so that the blocks that remain are those alive at `to`
//   size      by the size that was first requested
//   lifetime  from allocation to release, or to the end for a block that was not freed
//   function, library   of any frame that is shown; comma-separated patterns
// Lifetimes, functions and libraries are known only at the end, so the recording is read twice for
// these. Lifetimes take one bit of memory per block. Supervisor context.
#ifndef QUERN_REPORT_HEAP_FILTER_H
#define QUERN_REPORT_HEAP_FILTER_H

#include "report/heap/file.h"

struct heap_filter {
    uint64_t from, to; // nanoseconds; the end of each range is not in it
    uint64_t size_from, size_to;
    uint64_t life_from, life_to;    // nanoseconds
    const char *function, *library; // NULL: any
};

// Lets everything pass.
#define HEAP_FILTER_ALL                                                                            \
    { .to = UINT64_MAX, .size_to = UINT64_MAX, .life_to = UINT64_MAX }

// As heap_file_read. The filter may be NULL; the descriptor must allow to go back to the start.
char *heap_filter_read(int fd, struct heap_file *file, const struct heap_filter *filter,
                       const struct heap_sink *sinks, size_t count);

#endif
