// The index of a recording: what its events come to, behind them, so that whoever wants sums, the
// peak or the heap over time need not read a hundred million of them.
//
// It holds only what follows from events. Everything else (stacks, threads, mappings, samples,
// regions, marks) is read where it stands, in passing over the events, which are counted. So every
// byte of the file has been unpacked and checked before an index is used; one that does not agree
// with what was found is not used, and the events are read as if there were none.
//
// A file has an index if it was closed and is not small, and if no detail has been merged.
// Supervisor context; shared by the writer, the reader and nobody else.
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

// Writes an index at the end of a file of so many bytes. 0, or the number of an error. Nothing is
// written if it would be too large.
int recording_index_write(int fd, uint64_t position, const struct recording_index_parts *parts);
// The index at the end of a file; NULL: there is none that makes sense. The place in the file is
// not changed.
struct recording_index *recording_index_read(int fd);
// Puts what it says where reading all events would have put it. False if it does not agree with
// what is there; the timeline may be NULL.
bool recording_index_apply(const struct recording_index *index, struct summary *summary,
                           struct timeline *timeline);
// Whether a chunk with this magic is an index.
bool recording_index_is_one(uint32_t magic);
void recording_index_free(struct recording_index *index);

#endif
