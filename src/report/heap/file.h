// A recording opened for a report: read once from beginning to end, with its sums, and ready to
// name its addresses.
//
// A caller that needs more than the sums passes sinks of its own, which receive the same events.
// Supervisor context.
#ifndef QUERN_REPORT_HEAP_FILE_H
#define QUERN_REPORT_HEAP_FILE_H

#include "profile/recording/recording.h"
#include "profile/heap/summary.h"
#include "profile/heap/timeline.h"
#include "report/heap/names.h"

#define HEAP_FILE_SINKS 4 // maximum of sinks that a caller passes

struct heap_file {
    struct recording_info info;
    struct summary summary;
    struct symbols *symbols;
    struct heap_names *names;
    bool is_indexed; // the sums are from the index of the file, and the file agrees with it
};

// Whether this is the beginning of a recording.
bool heap_file_is_one(const char *start, size_t size);
// Reads from the descriptor, which stays open. NULL, or what is wrong, to be freed. The file is to
// be freed in either case.
char *heap_file_read(int fd, struct heap_file *file, const struct heap_sink *sinks, size_t count);
// The same for callers that need only the sums and the heap over time (NULL: not needed). With an
// index, events are not read at all; `watch` (NULL: none) receives them only if they are.
char *heap_file_read_sums(int fd, struct heap_file *file, struct timeline *timeline,
                          const struct heap_sink *watch);
// The same with a single sink, which stands between the reader and the file: it must pass on to
// `own` the events that the sums are made of.
char *heap_file_read_through(int fd, struct heap_file *file, const struct heap_sink *sink,
                             struct heap_sink *own);
// The same for a recording that is being written (recording_follow). The sums and names are those of
// the chunks read so far whenever `wait` is called.
char *heap_file_follow(int fd, struct heap_file *file, const struct recording_wait *wait);
void heap_file_free(struct heap_file *file);
// A notice that the recording does not hold the whole run, to be freed; NULL: it does.
char *heap_file_notice(const struct heap_file *file);

// The last part of a path.
const char *heap_file_base(const char *path);

#endif
