// A recording opened for a report: read once from beginning to end, summed up, its addresses ready
// to be named.
//
// Whoever needs more than the sums gives sinks of its own, which see the same events.
// Supervisor context.
#ifndef QUERN_REPORT_HEAP_FILE_H
#define QUERN_REPORT_HEAP_FILE_H

#include "profile/recording/recording.h"
#include "profile/heap/summary.h"
#include "profile/heap/timeline.h"
#include "report/heap/names.h"

#define HEAP_FILE_SINKS 4 // at most so many of the caller's

struct heap_file {
    struct recording_info info;
    struct summary summary;
    struct symbols *symbols;
    struct heap_names *names;
};

// Whether this is the beginning of a recording.
bool heap_file_is_one(const char *start, size_t size);
// Reads from the descriptor, which stays open. NULL, or what is wrong, to be freed. The file is to
// be freed in either case.
char *heap_file_read(int fd, struct heap_file *file, const struct heap_sink *sinks, size_t count);
// The same for whoever needs no more than sums, and the heap over time, which may be NULL: an index
// saves reading all events. The sink, which may be NULL, is told of events only if they are read.
char *heap_file_read_sums(int fd, struct heap_file *file, struct timeline *timeline,
                          const struct heap_sink *watch);
// The same with one sink of the caller's only, to which `own` is what the file itself needs told:
// the caller stands in between.
char *heap_file_read_through(int fd, struct heap_file *file, const struct heap_sink *sink,
                             struct heap_sink *own);
void heap_file_free(struct heap_file *file);
// What is to be said of a recording that does not hold the whole run, to be freed; NULL: it does.
char *heap_file_notice(const struct heap_file *file);

// A frame as reports without source lines show it: its function, else [its module], else [unknown].
// To be freed.
char *heap_file_label(const struct symbol_frame *frame);
// The last part of a path.
const char *heap_file_base(const char *path);

#endif
