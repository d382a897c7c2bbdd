// Internals of the writer of recordings, shared by recording/write.c, recording/chunks.c and
// recording/merge.c. No other file includes this.
#ifndef QUERN_PROFILE_RECORDING_WRITER_H
#define QUERN_PROFILE_RECORDING_WRITER_H

#include <zstd.h>

#include "base/map.h"
#include "profile/heap/classes.h"
#include "profile/recording/recording.h"
#include "profile/heap/timeline.h"

struct recording_writer {
    int fd;
    int error;
    uint64_t size;
    uint64_t told; // bytes before compression
    ZSTD_CCtx *packer;
    uint8_t *plain;
    struct column {
        uint8_t *bytes;
        size_t used;
    } columns[COLUMN_COUNT];
    uint8_t *packed; // a chunk: its header, then the frame
    size_t packed_room;
    uint64_t waiting_since; // 0: unknown
    uint64_t flushed;       // events before what waits
    uint64_t time;          // as last written, in time units
    uint32_t thread;        // whose turn it is
    uint64_t turn;          // records in it so far
    int lane;               // its first column
    uint64_t events;
    uint64_t regions;
    struct classes classes;
    struct recent {
        uint64_t count;                     // allocations of the thread
        uint64_t numbers[RECORDING_RECENT]; // of the blocks, by count
    } * recent;                             // by thread
    size_t recent_count;
    struct map_integers pcs;            // known ones; they are written as numbers from 1 on
    uint64_t last_pcs[HEAP_FRAMES_MAX]; // of the stack told before
    size_t last_count;
    struct heap_sample last_sample;
    bool is_first_kept;                // the first chunk is written, and will be once more
    size_t chunk_size;                 // bytes of columns after which a chunk is written
    uint32_t stacks;                   // the highest number mentioned
    uint32_t last_new, last_described; // stacks of the latest new class and description
    // As a reader will count them: events, and what is alive after each.
    uint64_t ordinal;
    uint64_t live, peak;   // bytes
    uint64_t peak_ordinal; // of the event after which most bytes were alive
    // For the index, with times as they are written.
    const struct summary *sums; // NULL: there will be none
    struct timeline timeline;
    uint64_t highest; // maximum of live bytes since the time last advanced
    uint64_t noted;   // events that are in the timeline
    uint64_t peak_time;
    bool is_merging;                  // within a step
    uint64_t most;                    // maximum size of the file in bytes; 0: no limit
    uint64_t latest;                  // time of the latest event, in nanoseconds
    uint64_t step_length;             // nanoseconds, of the last merge; 0: there was none
    struct recording_process process; // `command` is the writer's own
    struct recording_merges merges;
    // By thread: the block of its last event, if that was an allocation before detail was merged;
    // 0: none.
    uint64_t *carried;
    size_t carried_count;
};

// Everything up to writer_step_ends is merged. Outside of a step only.
void writer_step_begins(struct recording_writer *writer, uint64_t time);
void writer_step_ends(struct recording_writer *writer, uint64_t time);
// `count` blocks of this stack, thread and about this size, of `bytes` in all, were allocated and
// freed.
void writer_merged(struct recording_writer *writer, uint64_t time, const struct heap_block *block,
                   uint64_t count, uint64_t temporary, uint64_t bytes);
void writer_corrected(struct recording_writer *writer, uint64_t time,
                      const struct heap_correction *correction);
// A writer that begins a new file for the same process.
struct recording_writer *writer_again(int fd, const struct recording_process *process,
                                      size_t chunk_size);
// Frees it; the file is not closed.
void writer_free(struct recording_writer *writer);

#endif
