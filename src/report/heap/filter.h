// A part of a recording: what is left when only some moments, blocks or places count.
//
// A filter stands between the reader and the sinks. Blocks that do not pass are not told of; that
// something happened is (HEAP_SKIPPED), so that sinks can tell what came straight after what.
//   window    blocks allocated from `from` on and before `to`; what happens at `to` or later has
//             not happened yet, so that what is left is what was alive at `to`
//   size      by the size that was first asked for
//   lifetime  from allocation to release, or to the end for a block that was not freed
//   function, library   of any frame that is shown; comma-separated patterns
// Lifetimes, functions and libraries are known only once everything has been read: the recording is
// then read twice. Memory for lifetimes is a bit for each block. Supervisor context.
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
