// The index of a recording: the sums of its events, stored behind them. A reader that needs sums,
// the peak or the heap over time need not read a hundred million events.
//
// The index contains only what follows from events. The reader takes everything else (stacks,
// threads, mappings, samples, regions, marks) from the chunks. It skips and counts the events
// there. So it has unpacked and checked every byte of the file before it uses an index. If the
// index does not agree with the counts, the reader ignores it and reads the events.
//
// A file has an index if it was closed and is not small, and if no detail has been merged.
// Supervisor context; only the writer and the reader use it.
#ifndef QUERN_PROFILE_RECORDING_INDEX_H
#define QUERN_PROFILE_RECORDING_INDEX_H

#include "profile/recording/recording.h"
#include "profile/heap/summary.h"
#include "profile/heap/timeline.h"

// What an index is made of besides the sums.
struct recording_index_parts {
    const struct summary *sums;
    const struct timeline *timeline; // as the file's times give it
    uint64_t peak_time;              // likewise, nanoseconds
    uint32_t stacks;                 // the highest number mentioned
};

struct recording_index {
    uint32_t site_count; // one more than the highest number of a stack
    struct summary_site *sites;
    struct summary_site total;
    uint64_t freed, resized, truncated;
    uint64_t peak_time, peak_resident;
    uint64_t step_length;
    size_t step_count;
    struct timeline_step steps[TIMELINE_STEPS]; // without what is resident
    size_t point_count;
    struct recording_index_point {
        uint64_t live_bytes, live_blocks, allocated;
    } * points;
    size_t scope_count;
    struct recording_index_scope {
        uint64_t most;
        struct marks_count count;
    } * scopes;
};

// Writes an index at `position`, the end of the file. Returns 0 or an error number. Writes nothing
// if the index would be too large.
int recording_index_write(int fd, uint64_t position, const struct recording_index_parts *parts);
// The index at the end of a file; NULL: there is no valid one. Does not move the file position.
struct recording_index *recording_index_read(int fd);
// Fills summary and timeline as reading all events would. False if the index does not agree with
// them; the timeline may be NULL.
bool recording_index_apply(const struct recording_index *index, struct summary *summary,
                           struct timeline *timeline);
// Whether a chunk with this magic is an index.
bool recording_index_is_one(uint32_t magic);
void recording_index_free(struct recording_index *index);

#endif
